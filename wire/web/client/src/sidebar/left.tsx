// The column of views, direct messages, channels and topics.
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import type { Channel } from "../api/types.ts";
import { newDirect, openCompose } from "../compose/state.ts";
import { t } from "../i18n/text.ts";
import { go, hash, routes } from "../store/router.ts";
import { hashOf, hashOfChannel, hashOfTopics, isTopicMuted, narrowTo, operandOfFirst, resolvedMark } from "../store/narrow.ts";
import { channelCount, homeCount, presenceOf, topicName, userNames, type Count } from "../store/queries.ts";
import { peopleKey, peopleOf, type TopicInfo } from "../store/state.ts";
import { peek, read } from "../store/store.ts";
import { loadTopics } from "../store/topics.ts";
import { getOrInsert } from "../store/unread.ts";
import { channelIcon, Icon, type IconName } from "../ui/icons.tsx";
import { closeAfterLink, leftOpen } from "../ui/layout.ts";
import { ColumnEdge } from "./column_edge.tsx";
import { columnKeys } from "./column_keys.ts";
import { openMainMenu } from "./main_menu.tsx";
import { openChannelMenu, openTopicMenu } from "./menus.tsx";

const filter = signal(""); // view state
// closed is view state that this browser keeps: the keys of the sections that show only their heading.
const closed = signal<Set<string>>(new Set(JSON.parse(localStorage.getItem("closed-sections") ?? "[]") as string[]));
closed.subscribe((v) => localStorage.setItem("closed-sections", JSON.stringify([...v])));

function toggle(section: string): void {
  const now = new Set(closed.value);
  if (!now.delete(section)) now.add(section);
  closed.value = now;
}

const handleKeys = columnKeys("a.side-link:not(.more)", () => (filter.value = ""));

export function Left() {
  const realm = read("realm");
  return (
    <nav class={`left ${leftOpen.value ? "open" : ""}`} tabIndex={-1} aria-label={t("Channels and views")} onClick={closeAfterLink} onKeyDown={handleKeys}>
      <header class="left-head">
        <img class="realm-icon" src={realm.realm_icon_url} alt="" width={28} height={28} />
        <strong class="grow">{realm.realm_name}</strong>
        <button type="button" class="icon-button" data-main-menu aria-haspopup="menu" aria-label={t("Main menu")} title={t("Main menu")} onClick={(e) => openMainMenu(e.currentTarget)}>
          <Icon name="gear" />
        </button>
      </header>
      <div class="left-filter">
        <Icon name="search" size={14} />
        <input type="search" data-channel-filter placeholder={t("Filter")} aria-label={t("Filter channels and people")} value={filter.value} onInput={(e) => (filter.value = e.currentTarget.value)} />
      </div>
      <ColumnEdge />
      <div class="left-scroll">
        {!filter.value && <Views />}
        <Direct />
        <Channels />
      </div>
    </nav>
  );
}

function Views() {
  const starred = read("starred").size;
  return (
    <ul class="views">
      <ViewLink href="#inbox" icon="inbox" label={t("Inbox")} count={homeCount()} />
      <ViewLink href="#recent" icon="recent" label={t("Recent conversations")} />
      <ViewLink href="#feed" icon="feed" label={t("Combined feed")} />
      <ViewLink href="#narrow/is/mentioned" icon="at" label={t("Mentions")} count={read("unread").mentions.size} accent />
      <ViewLink href="#narrow/is/starred" icon="star" label={t("Starred messages")} count={read("settings").starred_message_counts ? starred : 0} quiet />
      {read("drafts").size > 0 && <ViewLink href="#drafts" icon="edit" label={t("Drafts")} count={read("drafts").size} quiet />}
      {read("scheduled").size > 0 && <ViewLink href="#scheduled" icon="clock" label={t("Scheduled messages")} count={read("scheduled").size} quiet />}
      {read("reminders").size > 0 && <ViewLink href="#reminders" icon="bell" label={t("Reminders")} count={read("reminders").size} quiet />}
    </ul>
  );
}

function ViewLink(p: { href: string; icon: IconName; label: string; count?: number; quiet?: boolean; accent?: boolean }) {
  const now = hash.value === p.href;
  return (
    <li>
      <a href={p.href} class={`side-link ${now ? "current" : ""}`} aria-current={now ? "page" : undefined}>
        <Icon name={p.icon} size={16} />
        <span class="grow">{p.label}</span>
        <CountBadge n={p.count ?? 0} quiet={p.quiet} accent={p.accent} />
      </a>
    </li>
  );
}

// CountBadge is in the accent colour for mentions and direct messages, which want an answer.
function CountBadge({ n, quiet, mention, accent }: { n: number; quiet?: boolean; mention?: boolean; accent?: boolean }) {
  if (!n) return null;
  return (
    <>
      {mention && <span class="mention-mark">@</span>}
      <span class={`count ${quiet ? "quiet" : mention || accent ? "accent" : ""}`} aria-label={t("{count} unread", { count: n })}>
        {n > 999 ? "999+" : n}
      </span>
    </>
  );
}

function SectionHead(p: { id: string; title: string; href?: string; children?: preact.ComponentChildren; count?: Count }) {
  const isClosed = closed.value.has(p.id);
  return (
    <h2 class="side-head">
      <button type="button" class="side-toggle" aria-expanded={!isClosed} onClick={() => toggle(p.id)}>
        <Icon name={isClosed ? "chevronRight" : "chevronDown"} size={13} />
        <span>{p.title}</span>
      </button>
      <span class="grow" />
      {isClosed && p.count && <CountBadge n={p.count.shown} mention={p.count.mentions > 0} accent={p.id === "direct"} />}
      {p.children}
    </h2>
  );
}

const directShown = 8; // conversations before "more"

function Direct() {
  const [all, setAll] = useState(false);
  const s = peek();
  const u = read("unread");
  const current = routes.value.view.terms;
  const dm = current && operandOfFirst(current, "dm");
  const currentKey = Array.isArray(dm) ? peopleKey(dm, s.me.user_id) : "";
  const q = filter.value.trim().toLowerCase();
  let keys = [...read("conversations")].sort((a, b) => b[1] - a[1]).map(([k]) => k);
  if (currentKey && !keys.includes(currentKey)) keys.unshift(currentKey);
  const names = new Map(keys.map((k) => [k, userNames(peopleOf(k))]));
  if (q) keys = keys.filter((k) => names.get(k)!.toLowerCase().includes(q));
  const shown = all || q ? keys.slice(0, 200) : keys.filter((k, i) => i < directShown || u.direct.has(k) || k === currentKey);
  let total = 0;
  for (const ids of u.direct.values()) total += ids.size;
  const isClosed = closed.value.has("direct") && !q;
  if (q && keys.length === 0) return null;
  return (
    <section>
      <SectionHead id="direct" title={t("Direct messages")} count={{ shown: total, muted: 0, mentions: 0 }}>
        <a class="icon-button small" href="#narrow/is/dm" title={t("All direct messages")} aria-label={t("All direct messages")}>
          <Icon name="feed" size={14} />
        </a>
      </SectionHead>
      {!isClosed && (
        <ul>
          {shown.map((k) => {
            const ids = peopleOf(k);
            return (
              <li key={k}>
                <a href={hashOf(narrowTo({ people: ids }), s)} class={`side-link ${k === currentKey ? "current" : ""} ${u.withPeople(k).size ? "unread" : ""}`} aria-current={k === currentKey ? "page" : undefined}>
                  {ids.length === 1 ? <span class={`presence ${presenceOf(ids[0]!)}`} /> : <Icon name="people" size={14} />}
                  <span class="grow">{names.get(k)}</span>
                  <CountBadge n={u.withPeople(k).size} accent />
                </a>
              </li>
            );
          })}
          {keys.length === 0 && (
            <li>
              <button type="button" class="side-link more" onClick={newDirect}>
                <Icon name="plus" size={14} /> {t("New direct message")}
              </button>
            </li>
          )}
          {shown.length < keys.length && (
            <li>
              <button type="button" class="side-link more" onClick={() => setAll(true)}>
                {t("More conversations")}
              </button>
            </li>
          )}
        </ul>
      )}
    </section>
  );
}

interface Folder {
  id: string;
  title: string;
  rank: number; // groups are shown in ascending order
  channels: Channel[];
}

function folders(): Folder[] {
  const subscriptions = read("subscriptions");
  const channels = read("channels");
  const useFolders = read("settings").web_left_sidebar_show_channel_folders !== false;
  const all = read("folders");
  const groups = new Map<string, Folder>();
  const q = filter.value.trim().toLowerCase();
  for (const sub of subscriptions.values()) {
    const c = channels.get(sub.stream_id);
    if (!c || c.is_archived || (q && !c.name.toLowerCase().includes(q))) continue;
    const folder = useFolders && c.folder_id !== null ? all.get(c.folder_id) : undefined;
    let group: Folder = { id: "other", title: t("Channels"), rank: Infinity, channels: [] };
    if (sub.pin_to_top) group = { id: "pinned", title: t("Pinned channels"), rank: -1, channels: [] };
    else if (folder) group = { id: `folder-${folder.id}`, title: folder.name, rank: folder.order, channels: [] };
    getOrInsert(groups, group.id, () => group).channels.push(c);
  }
  const other = groups.get("other");
  if (other && groups.size > 1) other.title = t("Other channels");
  const muted = (c: Channel): number => Number(subscriptions.get(c.stream_id)!.is_muted);
  for (const g of groups.values()) g.channels.sort((a, b) => muted(a) - muted(b) || a.name.localeCompare(b.name));
  return [...groups.values()].sort((a, b) => a.rank - b.rank);
}

// channelsInOrder returns the ids of the channels of the column from top to bottom.
export function channelsInOrder(): number[] {
  return folders().flatMap((f) => f.channels.map((c) => c.stream_id));
}

function Channels() {
  const list = folders();
  return (
    <>
      {list.map((f) => (
        <section key={f.id}>
          <SectionHead id={f.id} title={f.title} count={sum(f.channels)} />
          {(!closed.value.has(f.id) || filter.value) && (
            <ul>
              {f.channels.map((c) => (
                <ChannelEntry key={c.stream_id} channel={c} />
              ))}
            </ul>
          )}
        </section>
      ))}
      <a href="#channels/available" class="side-link more">
        <Icon name="plus" size={14} /> {t("Browse channels")}
      </a>
    </>
  );
}

function sum(channels: Channel[]): Count {
  const out: Count = { shown: 0, muted: 0, mentions: 0 };
  for (const c of channels) {
    const n = channelCount(c.stream_id);
    out.shown += n.shown;
    out.mentions += n.mentions;
  }
  return out;
}

function ChannelEntry({ channel: c }: { channel: Channel }) {
  const href = hashOfChannel(c.stream_id, peek());
  const terms = routes.value.view.terms;
  const current = terms && operandOfFirst(terms, "channel") === c.stream_id;
  const topic = terms && current ? operandOfFirst(terms, "topic") : undefined;
  const sub = read("subscriptions").get(c.stream_id)!;
  const count = channelCount(c.stream_id);
  const isCurrent = current && topic === undefined;
  return (
    <li class={`${sub.is_muted ? "muted" : ""} ${current ? "open" : ""}`}>
      <div class="side-row">
        <a href={href} class={`side-link ${isCurrent ? "current" : ""}`} aria-current={isCurrent ? "page" : undefined}>
          <span class="channel-mark" style={{ color: sub.color }}>
            <Icon name={channelIcon(c)} size={15} />
          </span>
          <span class="grow">{c.name}</span>
          <CountBadge n={count.shown || count.muted} quiet={!count.shown} mention={count.mentions > 0} />
        </a>
        <span class="side-actions">
        <button
          type="button"
          class="icon-button small"
          aria-label={t("New topic in {channel}", { channel: c.name })}
          title={t("New topic")}
          onClick={() => {
            go(href);
            openCompose({ channel: c.stream_id });
          }}
        >
          <Icon name="plus" size={14} />
        </button>
        <button type="button" class="icon-button small" aria-haspopup="menu" aria-label={t("Actions of {channel}", { channel: c.name })} onClick={(e) => openChannelMenu(e.currentTarget, c.stream_id)}>
          <Icon name="dots" size={14} />
        </button>
        </span>
      </div>
      {current && <Topics channel={c.stream_id} current={typeof topic === "string" ? topic : null} />}
    </li>
  );
}

const topicsShown = 8; // without a filter
const maxTopics = 60; // that a filter finds

function Topics({ channel, current }: { channel: number; current: string | null }) {
  const [query, setQuery] = useState("");
  useEffect(() => void loadTopics(channel), [channel, read("topics").has(channel)]);
  const s = peek();
  const u = read("unread");
  void read("topicPolicies");
  const list: TopicInfo[] = [...(read("topics").get(channel)?.values() ?? [])].sort((a, b) => b.max_id - a.max_id);
  if (current !== null && !list.some((x) => x.name.toLowerCase() === current.toLowerCase())) list.unshift({ name: current, max_id: 0 });
  const important = (x: TopicInfo): boolean =>
    u.inTopic(channel, x.name).size > 0 || x.name.toLowerCase() === current?.toLowerCase();
  const q = query.trim().toLowerCase();
  const found = q ? list.filter((x) => topicName(x.name).toLowerCase().includes(q)) : list;
  const visible = found.filter((x) => q !== "" || !isTopicMuted(s, channel, x.name) || important(x));
  const shown = q ? visible.slice(0, maxTopics) : visible.filter((x, i) => i < topicsShown || important(x)).slice(0, 30);
  return (
    <ul class="topics">
      {list.length > topicsShown && (
        <li>
          <input class="topic-search" type="search" placeholder={t("Filter topics")} aria-label={t("Filter topics")} value={query} onInput={(e) => setQuery(e.currentTarget.value)} />
        </li>
      )}
      {q !== "" && shown.length === 0 && <li class="side-note">{t("Nothing found")}</li>}
      {shown.map((x) => {
        const isCurrent = x.name.toLowerCase() === current?.toLowerCase();
        const ids = u.inTopic(channel, x.name);
        const muted = isTopicMuted(s, channel, x.name);
        const mention = [...ids].some((id) => u.mentions.has(id));
        return (
          <li key={x.name.toLowerCase()} class={`side-row ${muted ? "muted" : ""}`}>
            <a href={hashOf(narrowTo({ channel, topic: x.name }), s)} class={`side-link topic ${isCurrent ? "current" : ""} ${ids.size && !muted ? "unread" : ""} ${x.name === "" ? "empty-topic" : ""}`} aria-current={isCurrent ? "page" : undefined}>
              <span class="grow">
                {x.name.startsWith(resolvedMark) && <Icon name="check" size={12} />}
                {topicName(x.name.replace(resolvedMark, ""))}
              </span>
              <CountBadge n={ids.size} quiet={muted} mention={mention} />
            </a>
            <span class="side-actions">
              <button type="button" class="icon-button small" aria-haspopup="menu" aria-label={t("Actions of the topic")} onClick={(e) => openTopicMenu(e.currentTarget, channel, x.name)}>
                <Icon name="dots" size={14} />
              </button>
            </span>
          </li>
        );
      })}
      {shown.length < visible.length && (
        <li>
          <a class="side-link topic more" href={hashOfTopics(channel, s)}>
            {t("All topics")}
          </a>
        </li>
      )}
    </ul>
  );
}
