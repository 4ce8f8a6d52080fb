// The column of people: those of the conversation first, then all, with their presence.
import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import type { User } from "../api/types.ts";
import { matches } from "../ui/matches.ts";
import { t } from "../i18n/text.ts";
import { StatusEmoji } from "../emoji/glyph.tsx";
import { GuestMark, openUserCard, presenceText } from "../people/card.tsx";
import { hash, routes } from "../store/router.ts";
import { conversationOf, hashOf, narrowTo, operandOfFirst } from "../store/narrow.ts";
import { presenceOf } from "../store/queries.ts";
import { findWhileTyping, isShort } from "../store/people.ts";
import { peek, read } from "../store/store.ts";
import { columnKeys } from "./column_keys.ts";
import { Avatar } from "../ui/avatar.tsx";
import { Icon } from "../ui/icons.tsx";
import { closeAfterLink, closeColumns, closePeople, covered, peopleFloat } from "../ui/layout.ts";

const filter = signal(""); // view state
const firstShown = 80;
const minute = signal(0); // view state
setInterval(() => minute.value++, 60_000); // presence ends without an event

export function People() {
  const [shown, setShown] = useState(firstShown);
  void minute.value;
  void read("presences");
  const users = [...read("users").values()].filter((u) => u.is_active && !u.is_system_bot);
  const q = filter.value.trim().toLowerCase();
  const muted = read("mutedUsers");
  const list = users.filter((u) => !muted.has(u.user_id) && (q ? matches(u.full_name, q) : !u.is_bot));
  const terms = routes.value.view.terms;
  const place = terms && conversationOf(terms);
  const channel = terms && operandOfFirst(terms, "channel");
  const members = typeof channel === "number" ? read("members").get(channel) : undefined;
  const here = place && "people" in place ? new Set(place.people) : members?.ids;
  const rank = (u: User): number => ({ active: 0, idle: 1, bot: 3, offline: 2 })[presenceOf(u.user_id)];
  const ranks = new Map(list.map((u) => [u.user_id, rank(u)]));
  list.sort((a, b) => ranks.get(a.user_id)! - ranks.get(b.user_id)! || a.full_name.localeCompare(b.full_name));
  const inside = here && !q ? list.filter((u) => here.has(u.user_id)) : [];
  const others = here && !q ? list.filter((u) => !here.has(u.user_id)) : list;
  useEffect(() => setShown(firstShown), [q, channel]);
  useEffect(() => {
    if (!peopleFloat.value) return;
    addEventListener("mousedown", closeOutside);
    return () => removeEventListener("mousedown", closeOutside);
  }, [peopleFloat.value]);
  const opened = useRef(hash.value);
  useEffect(() => {
    if (hash.value !== opened.current) closeColumns(); // also when a card has opened a conversation
    opened.current = hash.value;
  }, [hash.value]);
  const title = place && "people" in place ? t("In this conversation") : t("In this channel");
  return (
    <aside class="right" tabIndex={-1} aria-label={t("People")} onClick={closeAfterLink} onKeyDown={keys}>
      <header class="right-head">
        <div class="left-filter grow">
          <Icon name="search" size={14} />
          <input type="search" data-people-filter placeholder={t("Filter people")} aria-label={t("Filter people")} value={filter.value} onInput={(e) => findWhileTyping((filter.value = e.currentTarget.value))} />
        </div>
        <button type="button" class="icon-button only-narrow" aria-label={t("Close")} onClick={closePeople}>
          <Icon name="close" size={16} />
        </button>
      </header>
      <div
        class="right-scroll"
        tabIndex={-1}
        onScroll={(e) => {
          const el = e.currentTarget;
          if (el.scrollTop + el.clientHeight > el.scrollHeight - 300) setShown((n) => n + firstShown);
        }}
      >
        {inside.length > 0 && <Group title={title} users={inside.slice(0, shown)} />}
        <Group title={inside.length || isShort() ? t("Others") : t("Everyone")} users={others.slice(0, shown)} />
        {inside.length + others.length === 0 && <p class="side-note">{t("No users")}</p>}
      </div>
    </aside>
  );
}

const moveKeys = columnKeys("a.side-link", () => (filter.value = ""));

// keys closes a column above the view with Escape; a filter is emptied first.
function keys(e: KeyboardEvent): void {
  moveKeys(e);
  if (e.key !== "Escape" || filter.value || !(covered.value || peopleFloat.value)) return;
  e.preventDefault();
  closePeople();
}

function closeOutside(e: MouseEvent): void {
  if (!(e.target as Element).closest(".right, [data-people], .popover, dialog")) closeColumns();
}

function Group({ title, users }: { title: string; users: User[] }) {
  if (users.length === 0) return null;
  return (
    <section>
      <h2 class="side-head">{title}</h2>
      <ul>
        {users.map((u) => (
          <Person key={u.user_id} user={u} />
        ))}
      </ul>
    </section>
  );
}

function Person({ user: u }: { user: User }) {
  const style = Number(read("settings").user_list_style ?? 3);
  const status = read("statuses").get(u.user_id);
  const me = read("me").user_id;
  const count = read("unread").withPeople(String(u.user_id)).size;
  return (
    <li class="side-row person">
      <a class="side-link" href={hashOf(narrowTo({ people: [u.user_id] }), peek())}>
        {style === 3 && <Avatar id={u.user_id} size={26} />}
        <span class={`presence ${presenceOf(u.user_id)}`} role="img" aria-label={presenceText(u.user_id)} />
        <span class="person-name">
          <span>
            {u.user_id === me ? t("{name} (you)", { name: u.full_name }) : u.full_name} <GuestMark id={u.user_id} />
          </span>
          {style !== 1 && status?.status_text && <small>{status.status_text}</small>}
        </span>
        {status?.emoji_name && (
          <span class="status-emoji">
            <StatusEmoji status={status} />
          </span>
        )}
        {count > 0 && <span class="count accent">{count}</span>}
      </a>
      <span class="side-actions">
        <button type="button" class="icon-button small" aria-label={t("About {name}", { name: u.full_name })} onClick={(e) => openUserCard(u.user_id, e.currentTarget)}>
          <Icon name="dots" size={14} />
        </button>
      </span>
    </li>
  );
}
