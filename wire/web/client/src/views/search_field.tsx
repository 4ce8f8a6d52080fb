// The search field, which is also the switcher: it offers places, commands and filters for its text. Filters become pills,
// which can be edited and removed.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Term } from "../api/types.ts";
import { plural, t } from "../i18n/text.ts";
import { goTo, routes } from "../store/router.ts";
import { withoutPosition } from "../store/narrow.ts";
import { peek, read } from "../store/store.ts";
import { Avatar } from "../ui/avatar.tsx";
import { Icon } from "../ui/icons.tsx";
import { titleOf } from "./header.tsx";
import { loadTopicsOfChannels, offersFor, textOf, type Offer } from "./search_offers.ts";
import { operandText, parseSearch, takeTerms } from "./search_text.ts";

// shownSearch returns the terms of the view if it is a search.
function shownSearch(): Term[] {
  const terms = routes.value.view.terms;
  return terms && titleOf(terms).icon === "search" ? withoutPosition(terms) : [];
}

export function SearchField() {
  const [pills, setPills] = useState<Term[]>([]);
  const [text, setText] = useState("");
  const [shown, setShown] = useState(false);
  const [at, setAt] = useState(0); // -1: none is chosen
  const input = useRef<HTMLInputElement>(null);
  void read("topics");
  const offers = shown ? offersFor(pills, text) : [];
  const reset = (): void => {
    const terms = shownSearch();
    const words = terms.filter((x) => x.operator === "search");
    setPills(terms.filter((x) => x.operator !== "search"));
    setText(words.map((x) => (x.negated ? "-" : "") + String(x.operand)).join(" "));
    setAt(words.length || terms.length ? -1 : 0);
  };
  // The field of a search shows it, also after the back button.
  const address = JSON.stringify(shownSearch());
  useEffect(() => {
    if (document.activeElement !== input.current) reset();
  }, [address]);
  const leave = (): void => {
    setShown(false);
    input.current?.blur();
  };
  const search = (terms: Term[]): void => {
    if (!terms.length) return;
    leave();
    goTo(terms);
    reset();
  };
  const type = (value: string, before: Term[] = pills): void => {
    const { terms, rest } = takeTerms(value, peek());
    setPills([...before, ...terms]);
    setText(rest);
    setAt(rest.trim() || !(before.length + terms.length) ? 0 : -1);
    setShown(true);
    if (rest.trim() && !before.length) loadTopicsOfChannels();
  };
  const choose = (o: Offer): void => {
    if (o.open !== undefined) return type(o.open);
    if (o.filters) return search(o.filters);
    leave();
    setText("");
    setPills([]);
    void o.run?.();
  };
  const edit = (i: number): void => {
    const term = pills[i]!;
    const others = pills.filter((_, k) => k !== i);
    input.current?.focus(); // first: the focus shows the search of the view again
    type(`${text.trim() ? text.trim() + " " : ""}${textOf(term)}`, others);
  };
  const keys = (e: KeyboardEvent): void => {
    const step = e.key === "ArrowDown" ? 1 : e.key === "ArrowUp" ? -1 : 0;
    if (step && offers.length) setAt(at < 0 && step < 0 ? offers.length - 1 : (at + step + offers.length) % offers.length);
    else if (step) setShown(true);
    else if (e.key === "Enter" && !e.isComposing) {
      if (offers[at]) choose(offers[at]);
      else search([...pills, ...parseSearch(text, peek())]);
    } else if (e.key === "Tab" && !e.shiftKey && offers[at] && (offers[at].filters || offers[at].open !== undefined)) goOn(offers[at]);
    else if (e.key === "Backspace" && text === "" && pills.length) edit(pills.length - 1);
    else if (e.key === "Escape") {
      if (shown && offers.length) setShown(false);
      else leave();
    } else return;
    e.preventDefault();
    e.stopPropagation();
  };
  // goOn takes a filter into the field without searching yet.
  const goOn = (o: Offer): void => {
    if (o.open !== undefined) return type(o.open);
    const terms = o.filters!;
    setPills(terms.filter((x) => x.operator !== "search"));
    setText(terms.filter((x) => x.operator === "search").map((x) => String(x.operand)).join(" "));
    setAt(-1);
  };
  const expanded = offers.length > 0;
  return (
    <search
      class="search"
      onFocusOut={(e) => {
        if (!e.currentTarget.contains(e.relatedTarget as Node | null)) setShown(false);
      }}
      onMouseDown={(e) => {
        if ((e.target as Element).matches("input, button, button *")) return;
        e.preventDefault();
        input.current?.focus();
      }}
    >
      <Icon name="search" size={15} />
      {pills.map((x, i) => (
        <Pill key={textOf(x)} term={x} edit={() => edit(i)} remove={() => type(text, pills.filter((_, k) => k !== i))} />
      ))}
      <input
        ref={input}
        type="text"
        data-search
        role="combobox"
        placeholder={pills.length ? "" : t("Search or go to…")}
        aria-label={t("Search")}
        aria-autocomplete="list"
        aria-expanded={expanded}
        aria-controls={expanded ? "search-offers" : undefined}
        aria-activedescendant={at >= 0 && offers[at] ? `search-offer-${at}` : undefined}
        autocomplete="off"
        spellcheck={false}
        value={text}
        onFocus={() => {
          if (!shown) reset();
          setShown(true);
        }}
        onInput={(e) => type(e.currentTarget.value)}
        onKeyDown={keys}
      />
      {pills.length || text ? (
        <button
          type="button"
          class="icon-button small search-clear"
          aria-label={t("Clear the search")}
          title={t("Clear the search")}
          onMouseDown={(e) => e.preventDefault()}
          onClick={() => {
            input.current?.focus();
            type("", []);
          }}
        >
          <Icon name="close" size={13} />
        </button>
      ) : (
        <kbd aria-hidden="true">Ctrl K</kbd>
      )}
      {expanded && (
        <div class="completions search-offers" role="listbox" id="search-offers" aria-label={t("Suggestions")}>
          {offers.map((o, i) => (
            <OfferRow key={o.word + o.detail + i} id={`search-offer-${i}`} offer={o} current={i === at} choose={() => choose(o)} />
          ))}
        </div>
      )}
      <span class="visually-hidden" role="status">
        {expanded ? plural(offers.length, "{count} suggestion", "{count} suggestions") : ""}
      </span>
    </search>
  );
}

function OfferRow({ id, offer: o, current, choose }: { id: string; offer: Offer; current: boolean; choose: () => void }) {
  const el = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (current) el.current?.scrollIntoView({ block: "nearest" });
  }, [current]);
  return (
    <div
      ref={el}
      id={id}
      role="option"
      aria-selected={current}
      class={current ? "current" : ""}
      onMouseDown={(e) => {
        e.preventDefault();
        choose();
      }}
    >
      {o.user !== undefined ? (
        <Avatar id={o.user} size={20} />
      ) : (
        <span class="completion-icon" style={o.color ? { color: o.color } : undefined}>
          <Icon name={o.icon} size={16} />
        </span>
      )}
      <span>{o.word}</span>
      <small>{o.detail}</small>
    </div>
  );
}

function Pill({ term, edit, remove }: { term: Term; edit: () => void; remove: () => void }) {
  const label = `${term.negated ? "-" : ""}${term.operator}: ${operandText(term, peek())}`;
  const keepFocus = (e: Event): void => e.preventDefault();
  return (
    <span class="pill search-pill">
      <button type="button" class="pill-text" title={t("Edit the filter")} aria-label={t("Edit the filter {filter}", { filter: label })} onMouseDown={keepFocus} onClick={edit}>
        {label}
      </button>
      <button type="button" aria-label={t("Remove {name}", { name: label })} onMouseDown={keepFocus} onClick={remove}>
        <Icon name="close" size={12} />
      </button>
    </span>
  );
}
