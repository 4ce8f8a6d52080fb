// Completions of a text field: a list of offers for the text before the cursor.
import { useEffect, useRef, useState } from "preact/hooks";
import { plural, t } from "../i18n/text.ts";
import { complete } from "./complete.ts";
import { completers, type Match } from "./extras.ts";
import { insert } from "./text_field.ts";

// useCompletion offers completions for the text before the cursor, in the compose box and in editors. The focus stays in
// the text field, which names the current offer for screen readers.
export function useCompletion(field: { current: HTMLTextAreaElement | null }) {
  const [found, setFound] = useState<Match | null>(null);
  const [at, setAt] = useState(0);
  const choose = (i: number, key = ""): void => {
    const offer = found?.offers[i];
    const area = field.current;
    if (!found || !offer || !area) return;
    area.setSelectionRange(found.start, area.selectionStart);
    setFound(null);
    insert(area, offer.keys?.[key] ?? offer.insert);
  };
  const update = (): void => {
    const area = field.current;
    if (!area) return;
    const before = area.value.slice(0, area.selectionStart);
    const show = (match: Match | null): void => {
      setFound(match?.offers.length ? match : null);
      setAt(0);
    };
    const unchanged = (): boolean => area.isConnected && area.value.slice(0, area.selectionStart) === before;
    void complete(completers, before, area.value.slice(area.selectionEnd), show, unchanged);
  };
  const keys = (e: KeyboardEvent): boolean => {
    if (!found || e.isComposing || e.ctrlKey || e.metaKey || e.altKey) return false;
    const step = e.key === "ArrowDown" ? 1 : e.key === "ArrowUp" ? -1 : 0;
    if (step) setAt((at + step + found.offers.length) % found.offers.length);
    else if ((e.key === "Enter" && !e.shiftKey) || e.key === "Tab" || found.offers[at]?.keys?.[e.key]) choose(at, e.key);
    else if (e.key === "Escape") setFound(null);
    else return false;
    e.preventDefault();
    e.stopPropagation();
    return true;
  };
  const list = (
    <>
      {found && (
        <div class="completions" role="listbox" id="compose-offers" aria-label={t("Suggestions")}>
          {found.offers.map((o, i) => (
            <Offer key={o.insert} id={`compose-offer-${i}`} offer={o} current={i === at} choose={() => choose(i)} />
          ))}
        </div>
      )}
      <span class="visually-hidden" role="status">
        {found ? plural(found.offers.length, "{count} suggestion", "{count} suggestions") : ""}
      </span>
    </>
  );
  const aria = {
    "aria-autocomplete": "list" as const,
    "aria-haspopup": "listbox" as const,
    "aria-controls": found ? "compose-offers" : undefined,
    "aria-activedescendant": found ? `compose-offer-${at}` : undefined,
  };
  return { update, keys, list, aria, close: () => setFound(null) };
}

function Offer(p: { id: string; offer: Match["offers"][number]; current: boolean; choose: () => void }) {
  const el = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (p.current) el.current?.scrollIntoView({ block: "nearest" });
  }, [p.current]);
  return (
    <div
      ref={el}
      id={p.id}
      role="option"
      aria-selected={p.current}
      class={p.current ? "current" : ""}
      onMouseDown={(e) => {
        e.preventDefault();
        p.choose();
      }}
    >
      {p.offer.Draw ? <p.offer.Draw /> : <span>{p.offer.label}</span>}
      {p.offer.detail && <small>{p.offer.detail}</small>}
    </div>
  );
}
