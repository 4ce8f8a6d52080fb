// The search field: a text with operators, and suggestions for the word at its end.
import { useState } from "preact/hooks";
import { matches } from "../ui/matches.ts";
import { plural, t } from "../i18n/text.ts";
import { goTo, routes } from "../store/router.ts";
import { withoutPosition } from "../store/narrow.ts";
import { topicName } from "../store/queries.ts";
import { peek, read } from "../store/store.ts";
import { loadTopics } from "../store/topics.ts";
import { Icon } from "../ui/icons.tsx";
import { titleOf } from "./header.tsx";
import { encodeOperand, parseSearch, searchText } from "./search_text.ts";

interface Offer {
  text: string; // of the whole field
  word: string;
  detail: string;
  open?: boolean; // an operator that still needs its operand
}

const maxOffers = 10;

const fixed: [string, () => string][] = [
  ["is:unread", () => t("Unread messages")],
  ["is:mentioned", () => t("Messages that mention you")],
  ["is:starred", () => t("Starred messages")],
  ["is:dm", () => t("Direct messages")],
  ["is:followed", () => t("Messages in followed topics")],
  ["is:resolved", () => t("Messages in resolved topics")],
  ["is:alerted", () => t("Messages with your alert words")],
  ["is:muted", () => t("Messages in muted topics")],
  ["has:link", () => t("Messages with links")],
  ["has:image", () => t("Messages with images")],
  ["has:attachment", () => t("Messages with files")],
  ["has:reaction", () => t("Messages with reactions")],
  ["in:home", () => t("Messages in the combined feed")],
  ["channels:public", () => t("Messages in all public channels")],
];

const open: [string, () => string][] = [
  ["channel:", () => t("Messages in a channel")],
  ["topic:", () => t("Messages in a topic")],
  ["sender:", () => t("Messages from a person")],
  ["dm:", () => t("Direct messages with people")],
  ["dm-including:", () => t("Direct messages that include people")],
  ["near:", () => t("Messages near one with this number")],
];

// offersFor returns suggestions for the last word of a text.
function offersFor(text: string): Offer[] {
  const s = peek();
  const head = text.slice(0, text.length - /\S*$/.exec(text)![0].length);
  const last = text.slice(head.length);
  const minus = last.startsWith("-") ? "-" : "";
  const word = last.slice(minus.length).toLowerCase();
  const offer = (w: string, detail: string, isOpen = false): Offer => ({ text: head + minus + w, word: minus + w, detail, open: isOpen });
  const m = /^(channel|stream|topic|sender|from|dm|dm-including):(.*)$/.exec(word);
  if (m) return operands(m[1]!, m[2]!.replace(/\+/g, " "), head, s).map(([name, detail]) => offer(`${m[1]}:${encodeOperand(name)}`, detail));
  const operators = [...open.map(([w, d]) => offer(w, d(), true)), ...fixed.map(([w, d]) => offer(w, d()))];
  if (!word) return head ? operators : operators.filter((o) => !/near|muted|in:/.test(o.word));
  const channels = [...s.channels.values()].filter((c) => !c.is_archived && matches(c.name, word)).slice(0, 3);
  const users = [...s.users.values()].filter((u) => u.is_active && matches(u.full_name, word)).slice(0, 3);
  return [
    { text, word: last, detail: t("Search for these words") },
    ...operators.filter((o) => o.word.startsWith(minus + word) || o.word.includes(":" + word)),
    ...channels.map((c) => offer(`channel:${encodeOperand(c.name)}`, t("Messages in a channel"))),
    ...users.map((u) => offer(`dm:${encodeOperand(u.full_name)}`, t("Direct messages with {name}", { name: u.full_name }))),
    ...users.map((u) => offer(`sender:${encodeOperand(u.full_name)}`, t("Messages from {name}", { name: u.full_name }))),
  ];
}

function operands(operator: string, query: string, head: string, s: ReturnType<typeof peek>): [string, string][] {
  if (operator === "channel" || operator === "stream") {
    const list = [...s.channels.values()].filter((c) => matches(c.name, query));
    return list.sort((a, b) => a.name.localeCompare(b.name)).map((c) => [c.name, c.description.slice(0, 60)]);
  }
  if (operator === "topic") {
    const channel = parseSearch(head, s).find((x) => x.operator === "channel")?.operand ?? routes.value.view.terms?.find((x) => x.operator === "channel")?.operand;
    if (typeof channel !== "number") return [];
    void loadTopics(channel);
    const list = [...(read("topics").get(channel)?.values() ?? [])].filter((x) => x.name.toLowerCase().includes(query));
    return list.sort((a, b) => b.max_id - a.max_id).map((x) => [x.name, topicName(x.name)]);
  }
  const before = operator.startsWith("dm") ? query.slice(0, query.lastIndexOf(",") + 1) : "";
  const wanted = query.slice(before.length);
  const list = [...s.users.values()].filter((u) => u.is_active && matches(u.full_name, wanted));
  return list.sort((a, b) => a.full_name.localeCompare(b.full_name)).slice(0, maxOffers).map((u) => [before + u.full_name, u.email]);
}

export function SearchField() {
  const [text, setText] = useState("");
  const [shown, setShown] = useState(false);
  const [at, setAt] = useState(-1); // -1: none is chosen
  const offers = shown ? offersFor(text).slice(0, maxOffers) : [];
  const run = (value: string): void => {
    const terms = parseSearch(value, peek());
    if (!terms.length) return;
    setShown(false);
    goTo(terms);
    (document.activeElement as HTMLElement | null)?.blur();
  };
  const choose = (o: Offer): void => {
    setAt(-1);
    if (o.open) return setText(o.text);
    setText(o.text);
    run(o.text);
  };
  const focus = (): void => {
    const terms = routes.value.view.terms;
    setText(terms && titleOf(terms).icon === "search" ? searchText(withoutPosition(terms)) + " " : "");
    setAt(-1);
    setShown(true);
  };
  const keys = (e: KeyboardEvent): void => {
    const step = e.key === "ArrowDown" ? 1 : e.key === "ArrowUp" ? -1 : 0;
    if (step && offers.length) {
      setShown(true);
      setAt(at < 0 && step < 0 ? offers.length - 1 : (at + step + offers.length) % offers.length);
    } else if (e.key === "Enter" && !e.isComposing) {
      if (offers[at]) choose(offers[at]);
      else run(text);
    } else if (e.key === "Tab" && offers[at]) {
      setText(offers[at].text + (offers[at].open ? "" : " "));
      setAt(-1);
    } else if (e.key === "Escape") {
      if (!shown || !offers.length) (e.currentTarget as HTMLElement).blur();
      setShown(false);
    } else return;
    e.preventDefault();
    e.stopPropagation();
  };
  const expanded = offers.length > 0;
  return (
    <search class="search">
      <Icon name="search" size={15} />
      <input
        type="text"
        data-search
        role="combobox"
        placeholder={t("Search")}
        aria-label={t("Search")}
        aria-autocomplete="list"
        aria-expanded={expanded}
        aria-controls={expanded ? "search-offers" : undefined}
        aria-activedescendant={at >= 0 && offers[at] ? `search-offer-${at}` : undefined}
        autocomplete="off"
        spellcheck={false}
        value={text}
        onFocus={focus}
        onBlur={() => setShown(false)}
        onInput={(e) => {
          setText(e.currentTarget.value);
          setShown(true);
          setAt(-1);
        }}
        onKeyDown={keys}
      />
      {expanded && (
        <div class="completions search-offers" role="listbox" id="search-offers" aria-label={t("Suggestions")}>
          {offers.map((o, i) => (
            <div
              key={o.word + o.detail}
              id={`search-offer-${i}`}
              role="option"
              aria-selected={i === at}
              class={i === at ? "current" : ""}
              onMouseDown={(e) => {
                e.preventDefault();
                choose(o);
              }}
            >
              <span>{o.word}</span>
              <small>{o.detail}</small>
            </div>
          ))}
        </div>
      )}
      <span class="visually-hidden" role="status">
        {expanded ? plural(offers.length, "{count} suggestion", "{count} suggestions") : ""}
      </span>
    </search>
  );
}
