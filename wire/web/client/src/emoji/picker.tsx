// The emoji picker: a field to search in and a grid that the arrow keys move in.
import { useEffect, useMemo, useState } from "preact/hooks";
import type { EmojiChoice } from "../api/types.ts";
import { t } from "../i18n/text.ts";
import { EmojiGlyph } from "./glyph.tsx";
import { allEmoji, loadEmoji, popular, searchEmoji } from "./data.ts";
import type { Emoji } from "../store/state.ts";

const columns = 8;
const firstShown = 160; // emoji drawn before the user scrolls or searches

export function EmojiPicker({ choose }: { choose: (e: EmojiChoice) => void }) {
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const [shown, setShown] = useState(firstShown);
  useEffect(() => void loadEmoji(), []);
  const all = allEmoji();
  const list = useMemo(() => (query ? searchEmoji(query, 200) : popularFirst(all)).slice(0, shown), [query, shown, all.length]);
  const keys = (e: KeyboardEvent): void => {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[e.key];
    if (step && (query === "" || e.key.endsWith("Down") || e.key.endsWith("Up"))) {
      e.preventDefault();
      e.stopPropagation();
      setAt(Math.max(0, Math.min(list.length - 1, at + step)));
    }
    if (e.key === "Enter" && list[at]) {
      e.preventDefault();
      choose(list[at]);
    }
  };
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
      <div
        class="emoji-grid"
        role="listbox"
        aria-label={t("Emoji")}
        onScroll={(e) => {
          const el = e.currentTarget;
          if (el.scrollTop + el.clientHeight > el.scrollHeight - 200) setShown((n) => n + firstShown);
        }}
      >
        {list.map((e, i) => (
          <button
            key={e.reaction_type + e.emoji_code}
            type="button"
            role="option"
            aria-selected={i === at}
            aria-label={e.emoji_name.replace(/_/g, " ")}
            title={`:${e.emoji_name}:`}
            class={i === at ? "current" : ""}
            onMouseMove={(m) => (m.movementX || m.movementY) && setAt(i)}
            onClick={() => choose(e)}
          >
            <EmojiGlyph emoji={e} />
          </button>
        ))}
      </div>
      <div class="emoji-name">{list[at] ? `:${list[at].emoji_name}:` : t("Nothing found")}</div>
    </div>
  );
}

function popularFirst(all: Emoji[]): Emoji[] {
  const rank = (e: Emoji): number => {
    const i = popular.indexOf(e.emoji_code);
    return i < 0 ? popular.length : i;
  };
  return [...all].sort((a, b) => rank(a) - rank(b));
}
