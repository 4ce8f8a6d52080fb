// Recent conversations: one line for each, with filters and an order.
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { getMessages } from "../api/endpoints.ts";
import type { Message } from "../api/types.ts";
import { errorText } from "../api/client.ts";
import { t } from "../i18n/text.ts";
import { storeMessages } from "../store/lists.ts";
import { conversationOfMessage, hashOf, isTopicMuted, narrowTo, placeKey, resolvedMark, type Conversation } from "../store/narrow.ts";
import { topicName, userName, userNames } from "../store/queries.ts";
import { peopleKey } from "../store/state.ts";
import { change, peek, read } from "../store/store.ts";
import { openUserCard } from "../people/card.tsx";
import { Avatar } from "../ui/avatar.tsx";
import { channelIcon, Icon } from "../ui/icons.tsx";
import { formatAgo } from "../ui/time.ts";
import { Header } from "./header.tsx";

const fetched = 1000; // messages that the list is made from
let fetching: Promise<void> | null = null; // in flight

function load(): Promise<void> {
  if (peek().recent.some((id) => !peek().messages.has(id))) fetching = null; // some were dropped to bound the memory
  fetching ??= getMessages({ anchor: "newest", before: fetched, after: 0, narrow: [] })
    .then((a) => {
      change((c) => {
        c.state.recent = a.messages.map((m) => m.id);
        storeMessages(c, a.messages);
      });
    })
    .catch((err: unknown) => {
      fetching = null;
      throw err;
    });
  return fetching;
}

interface Line {
  key: string;
  place: Conversation;
  last: Message;
  senders: number[];
  unread: number;
  muted: boolean;
  mine: boolean; // the user has written one of the fetched messages
}

const maxFaces = 4;

function lines(): Line[] {
  const s = peek();
  const me = s.me.user_id;
  const all = new Map<string, Line>();
  const sorted = [...read("messages").values()].sort((a, b) => b.id - a.id);
  const u = read("unread");
  void read("topicPolicies");
  for (const m of sorted) {
    const place = conversationOfMessage(m, me);
    if ("channel" in place && !s.subscriptions.has(place.channel)) continue;
    const key = placeKey(place, me);
    let line = all.get(key);
    if (!line) {
      const unread = "channel" in place ? u.inTopic(place.channel, place.topic).size : u.withPeople(peopleKey(place.people, me)).size;
      const muted = "channel" in place && isTopicMuted(s, place.channel, place.topic);
      all.set(key, (line = { key, place, last: m, senders: [], unread, muted, mine: false }));
    }
    if (m.sender_id === me) line.mine = true;
    if (line.senders.length < maxFaces && !line.senders.includes(m.sender_id)) line.senders.push(m.sender_id);
  }
  return [...all.values()];
}

type Filter = "unread" | "mine" | "direct" | "muted";

// filters is view state that this browser keeps: those that are pressed. Muted conversations are shown only with theirs.
const filters = signal<ReadonlySet<Filter>>(new Set(JSON.parse(localStorage.getItem("recent-filters") ?? "[]") as Filter[]));
filters.subscribe((v) => localStorage.setItem("recent-filters", JSON.stringify([...v])));

function toggle(f: Filter): void {
  const now = new Set(filters.value);
  if (!now.delete(f)) now.add(f);
  filters.value = now;
}

function filterNames(): [Filter, string][] {
  return [
    ["unread", t("Unread")],
    ["mine", t("Participated")],
    ["direct", t("Direct messages")],
    ["muted", t("With muted ones")],
  ];
}

function fits(l: Line, q: string): boolean {
  const on = filters.value;
  if (l.muted && !on.has("muted")) return false;
  if (on.has("unread") && l.unread === 0) return false;
  if (on.has("mine") && !l.mine) return false;
  if (on.has("direct") && "channel" in l.place) return false;
  return !q || nameOf(l.place).toLowerCase().includes(q);
}

type Column = "name" | "unread" | "time";

// order is view state: the column that sorts the list, and whether in the other direction than at first.
const order = signal<{ by: Column; back: boolean }>({ by: "time", back: false });

function compare(a: Line, b: Line): number {
  const { by, back } = order.value;
  const sign = back ? -1 : 1;
  if (by === "name") return sign * nameOf(a.place).localeCompare(nameOf(b.place));
  if (by === "unread" && a.unread !== b.unread) return sign * (b.unread - a.unread);
  return (by === "time" ? sign : 1) * (b.last.id - a.last.id);
}

function openCard(e: MouseEvent, user: number): void {
  if (e.ctrlKey || e.metaKey || e.shiftKey) return; // opens the conversation in another tab or window
  e.preventDefault();
  openUserCard(user, e.currentTarget as Element);
}

const firstShown = 60;

export function Recent() {
  const [error, setError] = useState("");
  const [ready, setReady] = useState(false);
  const [filter, setFilter] = useState("");
  const [shown, setShown] = useState(firstShown);
  useEffect(() => {
    load().then(
      () => setReady(true),
      (err: unknown) => setError(errorText(err)),
    );
  }, []);
  const q = filter.trim().toLowerCase();
  const all = ready ? lines().filter((l) => fits(l, q)).sort(compare) : [];
  return (
    <>
      <Header>
        <span class="view-icon">
          <Icon name="recent" />
        </span>
        <h1 class="view-title">{t("Recent conversations")}</h1>
      </Header>
      <div
        class="page"
        onScroll={(e) => {
          const el = e.currentTarget;
          if (el.scrollTop + el.clientHeight > el.scrollHeight - 400) setShown((n) => n + firstShown);
        }}
      >
        <div class="recent-tools">
          {filterNames().map(([name, label]) => (
            <button key={name} type="button" class="button small quiet toggle" aria-pressed={filters.value.has(name)} onClick={() => toggle(name)}>
              {label}
            </button>
          ))}
          <input class="input" type="search" data-recent-filter placeholder={t("Filter")} aria-label={t("Filter")} value={filter} onInput={(e) => setFilter(e.currentTarget.value)} />
        </div>
        {error && <p role="alert">{error}</p>}
        {all.length > 0 && (
          <div class="recent-heads" role="group" aria-label={t("Sort by")}>
            <Sort by="name" label={t("Conversation")} />
            <Sort by="unread" label={t("Unread")} />
            <Sort by="time" label={t("Latest message")} />
          </div>
        )}
        <ul class="recent">
          {all.slice(0, shown).map((l) => (
            <li key={l.key} class={l.muted ? "muted" : ""}>
              <a class={`recent-line ${l.unread ? "unread" : ""}`} href={hashOf(narrowTo(l.place), peek())} data-list-item>
                <span class="recent-place">
                  {"channel" in l.place ? <ChannelName id={l.place.channel} /> : <Icon name="message" size={15} />}
                  <span class="recent-topic">{"channel" in l.place ? topicName(l.place.topic.replace(resolvedMark, "✓ ")) : userNames(l.place.people)}</span>
                </span>
                {l.unread > 0 && <span class={`count ${"channel" in l.place ? "" : "accent"}`}>{l.unread}</span>}
                <span class="faces">
                  {l.senders.map((id) => (
                    <Avatar key={id} id={id} size={20} label={userName(id)} onClick={(e) => openCard(e, id)} />
                  ))}
                </span>
                <time>{formatAgo(l.last.timestamp)}</time>
              </a>
            </li>
          ))}
        </ul>
        {ready && all.length === 0 && <Empty reset={() => setFilter("")} filtered={q !== "" || filters.value.size > 0} />}
      </div>
    </>
  );
}

function Sort({ by, label }: { by: Column; label: string }) {
  const now = order.value.by === by;
  return (
    <button type="button" class="sort" data-sort={by} aria-pressed={now} onClick={() => (order.value = { by, back: now && !order.value.back })}>
      {label}
      {now && <Icon name={order.value.back ? "up" : "down"} size={12} />}
    </button>
  );
}

function Empty({ filtered, reset }: { filtered: boolean; reset: () => void }) {
  const clear = (): void => {
    filters.value = new Set();
    reset();
  };
  return (
    <div class="empty-view">
      <p class="empty-title">{filtered ? t("No conversation fits the filters.") : t("There are no conversations yet.")}</p>
      {filtered ? (
        <button type="button" class="button quiet" onClick={clear}>
          {t("Show all conversations")}
        </button>
      ) : (
        <a class="button quiet" href="#channels/all">
          {t("Browse channels")}
        </a>
      )}
    </div>
  );
}

function nameOf(place: Conversation): string {
  if ("people" in place) return userNames(place.people);
  return `${peek().channels.get(place.channel)?.name ?? ""} ${topicName(place.topic)}`;
}

function ChannelName({ id }: { id: number }) {
  const c = read("channels").get(id);
  return (
    <span class="recent-channel">
      <span class="channel-mark" style={{ color: read("subscriptions").get(id)?.color }}>
        <Icon name={channelIcon(c)} size={14} />
      </span>
      <span>{c?.name}</span>
    </span>
  );
}
