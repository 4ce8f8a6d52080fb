// What the inbox lists: the conversations with unread messages, grouped by channel and by folder.
import { TopicPolicy } from "../api/types.ts";
import { t } from "../i18n/text.ts";
import { hashOf, hashOfChannel, isTopicMuted, narrowTo, resolvedMark, topicPolicy, type Conversation } from "../store/narrow.ts";
import { topicName, userNames } from "../store/queries.ts";
import { peopleOf } from "../store/state.ts";
import { peek, read } from "../store/store.ts";
import { channelIcon, type IconName } from "../ui/icons.tsx";

// TopicChoice is the choice of topics above the list: the followed ones, those that are not muted, or all. Direct
// messages are always listed. "unmuted" is Zulip's standard view.
export type TopicChoice = "followed" | "unmuted" | "all";

// InboxRow is one conversation with unread messages.
export interface InboxRow {
  key: string;
  place: Conversation;
  label: string;
  href: string;
  ids: ReadonlySet<number>; // the unread messages
  newest: number;
  mention: boolean;
  muted: boolean;
  resolved: boolean;
}

// InboxSection is a channel with its topics, or all direct conversations.
export interface InboxSection {
  key: string;
  channel: number | null; // of direct messages
  title: string;
  href: string;
  color: string | undefined;
  icon: IconName;
  muted: boolean;
  rows: InboxRow[];
}

// InboxFolder is a channel folder. The first one has no title: it holds the direct messages.
export interface InboxFolder {
  key: string;
  title: string;
  rank: number; // folders are shown in ascending order
  sections: InboxSection[];
}

// inboxFolders returns what the inbox lists. Rows are left out unless all words of the filter are in the names of
// their channel and topic, or of their people.
export function inboxFolders(choice: TopicChoice, filter: string): InboxFolder[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (text: string): boolean => words.every((w) => text.toLowerCase().includes(w));
  const folders = new Map<string, InboxFolder>();
  const direct = directSection(fits);
  if (direct) folders.set("direct", { key: "direct", title: "", rank: -2, sections: [direct] });
  for (const id of read("unread").topics.keys()) {
    const section = channelSection(id, choice, fits);
    if (!section) continue;
    const folder = folderOf(id);
    if (!folders.has(folder.key)) folders.set(folder.key, folder);
    folders.get(folder.key)!.sections.push(section);
  }
  const titled = [...folders.values()].filter((f) => f.title);
  // Without folders and pinned channels, the list of all others needs no heading.
  if (titled.length === 1 && titled[0]!.key === "other") titled[0]!.title = "";
  for (const f of folders.values()) {
    f.sections.sort((a, b) => Number(a.muted) - Number(b.muted) || a.title.localeCompare(b.title));
    for (const x of f.sections) x.rows.sort((a, b) => Number(b.mention) - Number(a.mention) || b.newest - a.newest);
  }
  return [...folders.values()].sort((a, b) => a.rank - b.rank);
}

function folderOf(channel: number): InboxFolder {
  if (read("subscriptions").get(channel)?.pin_to_top) return { key: "pinned", title: t("Pinned channels"), rank: -1, sections: [] };
  const id = read("channels").get(channel)?.folder_id;
  const folder = read("settings").web_inbox_show_channel_folders !== false && id ? read("folders").get(id) : undefined;
  if (folder) return { key: `folder-${folder.id}`, title: folder.name, rank: folder.order, sections: [] };
  return { key: "other", title: t("Other channels"), rank: Infinity, sections: [] };
}

function directSection(fits: (text: string) => boolean): InboxSection | null {
  const rows: InboxRow[] = [];
  for (const [people, ids] of read("unread").direct) {
    const users = peopleOf(people);
    const label = userNames(users);
    if (fits(label)) rows.push(rowOf(`direct ${people}`, { people: users }, label, ids, false));
  }
  if (rows.length === 0) return null;
  const href = hashOf([{ operator: "is", operand: "dm" }], peek());
  return { key: "direct", channel: null, title: t("Direct messages"), href, color: undefined, icon: "message", muted: false, rows };
}

function channelSection(id: number, choice: TopicChoice, fits: (text: string) => boolean): InboxSection | null {
  const s = peek();
  const u = read("unread");
  void read("topicPolicies");
  const sub = read("subscriptions").get(id);
  const channel = read("channels").get(id);
  if (!channel) return null;
  const rows: InboxRow[] = [];
  for (const [lower, ids] of u.topics.get(id)!) {
    const any = u.places.get(ids.values().next().value!)!;
    const topic = "topic" in any ? any.topic : lower;
    const row = rowOf(`${id} ${lower}`, { channel: id, topic }, topicName(topic.replace(resolvedMark, "")), ids, isTopicMuted(s, id, topic));
    row.resolved = topic.startsWith(resolvedMark);
    if (choice === "unmuted" && row.muted && !row.mention) continue;
    if (choice === "followed" && topicPolicy(s, id, topic) !== TopicPolicy.followed) continue;
    if (fits(`${channel.name} ${topicName(topic)}`)) rows.push(row);
  }
  if (rows.length === 0) return null;
  return {
    key: String(id),
    channel: id,
    title: channel.name,
    href: hashOfChannel(id, s),
    color: sub?.color,
    icon: channelIcon(channel),
    muted: sub?.is_muted ?? false,
    rows,
  };
}

function rowOf(key: string, place: Conversation, label: string, ids: ReadonlySet<number>, muted: boolean): InboxRow {
  const { mentions } = read("unread");
  let newest = 0;
  let mention = false;
  for (const id of ids) {
    newest = Math.max(newest, id);
    mention ||= mentions.has(id);
  }
  return { key, place, label, href: hashOf(narrowTo(place), peek()), ids, newest, mention, muted, resolved: false };
}

// unreadOf returns the unread messages of sections.
export function unreadOf(sections: readonly InboxSection[]): number[] {
  return sections.flatMap((x) => x.rows.flatMap((row) => [...row.ids]));
}
