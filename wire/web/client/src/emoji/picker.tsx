// The emoji picker: a field to search in, the categories, and a grid that the arrow keys move in. Those that the user has
// chosen last come first.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { EmojiChoice } from "../api/types.ts";
import { t } from "../i18n/text.ts";
import { EmojiGlyph, emojiText } from "./glyph.tsx";
import { categoryOf, categoryTitles } from "./categories.ts";
import { allEmoji, loadEmoji, popular, searchEmoji } from "./data.ts";
import type { Emoji } from "../store/state.ts";

const columns = 8;
const firstShown = 160; // emoji drawn before the user scrolls or searches
const maxRecent = 2 * columns;
const recentKey = "recent-emoji";

// recentCodes returns the emoji that the user has chosen last in this browser.
function recentCodes(): string[] {
  try {
    const list: unknown = JSON.parse(localStorage.getItem(recentKey) ?? "[]");
    return Array.isArray(list) ? list.map(String) : [];
  } catch {
    return [];
  }
}

function remember(code: string): void {
  const list = [code, ...recentCodes().filter((x) => x !== code)].slice(0, maxRecent);
  localStorage.setItem(recentKey, JSON.stringify(list));
}

interface Part {
  name: string;
  title: string;
  list: Emoji[];
}

// partsOf puts all emoji into the parts of the picker.
function partsOf(all: Emoji[]): Part[] {
  const byCode = new Map(all.map((e) => [e.emoji_code, e]));
  const known = (codes: string[]): Emoji[] => codes.flatMap((code) => byCode.get(code) ?? []);
  const recent = known(recentCodes());
  const own = all.filter((e) => e.reaction_type !== "unicode_emoji");
  const parts: Part[] = [
    { name: "recent", title: t("Recently used"), list: recent },
    { name: "popular", title: t("Popular"), list: known(popular) },
    { name: "own", title: t("Custom emoji"), list: own },
  ];
  const unicode = all.filter((e) => e.reaction_type === "unicode_emoji");
  for (const [name, title] of categoryTitles()) parts.push({ name, title, list: unicode.filter((e) => categoryOf(e.emoji_code) === name) });
  return parts.filter((p) => p.list.length > 0);
}

export function EmojiPicker({ choose }: { choose: (e: EmojiChoice) => void }) {
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const [shown, setShown] = useState(firstShown);
  const grid = useRef<HTMLDivElement>(null);
  useEffect(() => void loadEmoji(), []);
  const all = allEmoji();
  const parts = useMemo(() => (query ? [{ name: "found", title: t("Found"), list: searchEmoji(query, 200) }] : partsOf(all)), [query, all.length]);
  const flat = useMemo(() => parts.flatMap((p) => p.list), [parts]);
  const pick = (e: Emoji): void => {
    remember(e.emoji_code);
    choose(e);
  };
  const move = (to: number): void => {
    const next = Math.max(0, Math.min(flat.length - 1, to));
    setShown((n) => Math.max(n, next + firstShown));
    setAt(next);
  };
  useEffect(() => grid.current?.querySelector(".current")?.scrollIntoView({ block: "nearest" }), [at, parts]);
  const keys = (e: KeyboardEvent): void => {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[e.key];
    if (step && (query === "" || e.key.endsWith("Down") || e.key.endsWith("Up"))) {
      e.preventDefault();
      e.stopPropagation();
      move(at + step);
    }
    if (e.key === "Enter" && flat[at] && !(e.target as Element).matches("[data-category]")) {
      e.preventDefault();
      pick(flat[at]);
    }
  };
  const toPart = (name: string): void => {
    const i = parts.findIndex((p) => p.name === name);
    move(parts.slice(0, i).reduce((n, p) => n + p.list.length, 0));
    requestAnimationFrame(() => grid.current?.querySelector(`[data-part="${name}"]`)?.scrollIntoView({ block: "start" }));
  };
  let index = 0;
  return (
    <div class="emoji-picker" onKeyDown={keys}>
      <input
        class="input"
        type="search"
        placeholder={t("Search emoji")}
        aria-label={t("Search emoji")}
        value={query}
        autofocus
        onInput={(e) => {
          setQuery(e.currentTarget.value);
          setAt(0);
        }}
      />
      {!query && (
        <div class="emoji-categories" role="group" aria-label={t("Categories")}>
          {categoryTitles().map(([name, title, code]) => (
            <button key={name} type="button" class="icon-button small" data-category={name} aria-label={title} title={title} onClick={() => toPart(name)}>
              <span class="emoji-glyph">{emojiText(code)}</span>
            </button>
          ))}
        </div>
      )}
      <div
        ref={grid}
        class="emoji-grid"
        role="listbox"
        aria-label={t("Emoji")}
        onScroll={(e) => {
          const el = e.currentTarget;
          if (el.scrollTop + el.clientHeight > el.scrollHeight - 200) setShown((n) => n + firstShown);
        }}
      >
        {parts.map((p) => {
          const first = index;
          index += p.list.length;
          const drawn = p.list.slice(0, Math.max(0, shown - first));
          if (drawn.length === 0) return null;
          return (
            <div key={p.name} role="group" aria-label={p.title} class="emoji-part" data-part={p.name}>
              <span class="emoji-title" aria-hidden="true">
                {p.title}
              </span>
              {drawn.map((e, i) => (
                <button
                  key={e.reaction_type + e.emoji_code}
                  type="button"
                  role="option"
                  aria-selected={first + i === at}
                  aria-label={e.emoji_name.replace(/_/g, " ")}
                  title={`:${e.emoji_name}:`}
                  class={first + i === at ? "current" : ""}
                  onMouseMove={(m) => (m.movementX || m.movementY) && setAt(first + i)}
                  onClick={() => pick(e)}
                >
                  <EmojiGlyph emoji={e} />
                </button>
              ))}
            </div>
          );
        })}
      </div>
      <div class="emoji-name">{flat[at] ? `:${flat[at].emoji_name}:` : t("Nothing found")}</div>
    </div>
  );
}
