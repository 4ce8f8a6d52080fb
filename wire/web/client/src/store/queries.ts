// Questions about the state that many components ask. Each follows the parts that it reads.
import { serverNow } from "../api/clock.ts";
import type { Channel, GroupSetting, NamesOf, User } from "../api/types.ts";
import { t } from "../i18n/text.ts";
import { type Conversation, isTopicMuted } from "./narrow.ts";
import { isComing } from "./people.ts";
import { namesUsers, type RealmSetting, type State } from "./state.ts";
import { peek, read } from "./store.ts";

export function userName(id: number): string {
  return read("users").get(id)?.full_name ?? missingName(id);
}

// missingName is shown for a user that is not known: while it is fetched, dots.
export function missingName(id: number): string {
  return isComing(id) ? "…" : t("Unknown user");
}

export function userNames(ids: readonly number[]): string {
  if (ids.length === 1 && ids[0] === read("me").user_id) return t("{name} (you)", { name: userName(ids[0]!) });
  const names = ids.map(userName).sort((a, b) => a.localeCompare(b));
  return names.join(", ");
}

export function topicName(topic: string): string {
  return topic === "" ? String(read("realm").realm_empty_topic_display_name ?? "general chat") : topic;
}

// placeName returns the name of a conversation.
export function placeName(place: Conversation): string {
  if ("people" in place) return userNames(place.people);
  return `#${read("channels").get(place.channel)?.name ?? ""} › ${topicName(place.topic)}`;
}

export function avatarOf(u: User | undefined, medium = false): string {
  if (!u) return "/static/images/unknown-user-avatar.png";
  if (u.avatar_url && !medium) return u.avatar_url;
  return `/avatar/${u.user_id}${medium ? "/medium" : ""}?version=${u.avatar_version}`;
}

// isInSetting reports whether a user has a permission: the setting names a group, or users and groups.
export function isInSetting(s: State, setting: GroupSetting | undefined, user: number): boolean {
  if (setting === undefined || setting === null) return false;
  if (typeof setting === "number") return isInGroup(s, setting, user);
  return setting.direct_members.includes(user) || setting.direct_subgroups.some((g) => isInGroup(s, g, user));
}

function isInGroup(s: State, group: number, user: number, seen = new Set<number>()): boolean {
  if (seen.has(group)) return false;
  seen.add(group);
  const g = s.groups.get(group);
  if (!g || g.deactivated) return false;
  return g.members.includes(user) || g.direct_subgroup_ids.some((id) => isInGroup(s, id, user, seen));
}

// permissionOf returns a permission of an object, such as a channel, by its name on the wire.
export function permissionOf(o: object, name: string): GroupSetting | undefined {
  const value: unknown = Reflect.get(o, name);
  return typeof value === "number" || namesUsers(value) ? value : undefined;
}

// may reports whether the user has a permission of the organization, such as "can_invite_users_group".
export function may(setting: RealmSetting<GroupSetting>): boolean {
  void read("groups");
  return isInSetting(peek(), read("realm")[`realm_${setting}`], read("me").user_id);
}

// mayInChannel reports whether the user has a permission of a channel.
export function mayInChannel(channel: Channel | undefined, setting: NamesOf<Channel, GroupSetting>): boolean {
  void read("groups");
  return !!channel && isInSetting(peek(), channel[setting], read("me").user_id);
}

export function mayPost(channel: Channel | undefined): boolean {
  return !!channel && !channel.is_archived && mayInChannel(channel, "can_send_message_group");
}

// Counts of unread messages. Muted ones are not in the first number.
export interface Count {
  shown: number;
  muted: number;
  mentions: number;
}

export function channelCount(channel: number): Count {
  const u = read("unread");
  void read("topicPolicies");
  void read("subscriptions");
  const out: Count = { shown: 0, muted: 0, mentions: 0 };
  for (const [topic, ids] of u.topics.get(channel) ?? []) {
    if (isTopicMuted(peek(), channel, topic)) out.muted += ids.size;
    else out.shown += ids.size;
    for (const id of ids) if (u.mentions.has(id)) out.mentions++;
  }
  return out;
}

// homeCount returns the number of unread messages in the combined feed.
export function homeCount(): number {
  const u = read("unread");
  let n = 0;
  for (const ids of u.direct.values()) n += ids.size;
  for (const channel of u.topics.keys()) n += channelCount(channel).shown;
  return n;
}

// presenceOf returns the state that the dot beside a user shows.
export function presenceOf(id: number): "active" | "idle" | "offline" | "bot" {
  const u = read("users").get(id);
  if (u?.is_bot) return "bot";
  const p = read("presences").get(id);
  const realm = read("realm");
  if (id === read("me").user_id) return read("settings").presence_enabled === false ? "offline" : "active";
  if (!p) return "offline";
  const offline = realm.server_presence_offline_threshold_seconds ?? 200;
  const now = serverNow() / 1000;
  if (now - p.active_timestamp < offline) return "active";
  return now - p.idle_timestamp < offline ? "idle" : "offline";
}
