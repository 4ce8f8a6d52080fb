// Recent conversations: one line for each, the newest first.
import { useEffect, useState } from "preact/hooks";
import { getMessages } from "../api/endpoints.ts";
import type { Message } from "../api/types.ts";
import { errorText } from "../api/client.ts";
import { t } from "../i18n/text.ts";
import { storeMessages } from "../store/lists.ts";
import { conversationOfMessage, hashOf, isTopicMuted, narrowTo, placeKey, resolvedMark, type Conversation } from "../store/narrow.ts";
import { avatarOf, topicName, userName, userNames } from "../store/queries.ts";
import { peopleKey } from "../store/state.ts";
import { change, peek, read } from "../store/store.ts";
import { openUserCard } from "../people/card.tsx";
import { channelIcon, Icon } from "../ui/icons.tsx";
import { formatAgo } from "../ui/time.ts";
import { Header } from "./header.tsx";

const fetched = 1000; // messages that the list is made from
let fetching: Promise<void> | null = null; // in flight

function load(): Promise<void> {
  if (peek().recent.some((id) => !peek().messages.has(id))) fetching = null; // some were dropped to bound the memory
  fetching ??= getMessages({ anchor: "newest", before: fetched, after: 0, narrow: [{ operator: "in", operand: "home" }] })
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
    if ("channel" in place && (!s.subscriptions.has(place.channel) || isTopicMuted(s, place.channel, place.topic))) continue;
    const key = placeKey(place, me);
    const line = all.get(key);
    if (!line) {
      const unread = "channel" in place ? u.inTopic(place.channel, place.topic).size : u.withPeople(peopleKey(place.people, me)).size;
      all.set(key, { key, place, last: m, senders: [m.sender_id], unread });
    } else if (line.senders.length < maxFaces && !line.senders.includes(m.sender_id)) {
      line.senders.push(m.sender_id);
    }
  }
  return [...all.values()];
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
  const all = ready ? lines().filter((l) => !q || nameOf(l.place).toLowerCase().includes(q)) : [];
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
        <input class="input page-filter" type="search" data-recent-filter placeholder={t("Filter")} aria-label={t("Filter")} value={filter} onInput={(e) => setFilter(e.currentTarget.value)} />
        {error && <p role="alert">{error}</p>}
        <ul class="recent">
          {all.slice(0, shown).map((l) => (
            <li key={l.key}>
              <a class="recent-line" href={hashOf(narrowTo(l.place), peek())} data-list-item>
                <span class="recent-place">
                  {"channel" in l.place ? <ChannelName id={l.place.channel} /> : <Icon name="message" size={15} />}
                  <span class="recent-topic">{"channel" in l.place ? topicName(l.place.topic.replace(resolvedMark, "✓ ")) : userNames(l.place.people)}</span>
                </span>
                {l.unread > 0 && <span class="count">{l.unread}</span>}
                <span class="faces">
                  {l.senders.map((id) => (
                    <img key={id} class="avatar tiny" src={avatarOf(read("users").get(id))} alt={userName(id)} title={userName(id)} onClick={(e) => openCard(e, id)} />
                  ))}
                </span>
                <time>{formatAgo(l.last.timestamp)}</time>
              </a>
            </li>
          ))}
        </ul>
        {ready && all.length === 0 && <p class="empty-title">{t("Nothing here.")}</p>}
      </div>
    </>
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
