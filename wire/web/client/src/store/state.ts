// The state of the client as plain data: the content of the registration and of the events, and the fetched messages.
// Nothing here uses the browser, so tests run it in Node.
import {
  type Channel,
  type ChannelFolder,
  type Draft,
  type Message,
  type Presence,
  type ProfileField,
  type RealmEmoji,
  type RegisterAnswer,
  type Reminder,
  type ScheduledMessage,
  type Snippet,
  type Subscription,
  TopicPolicy,
  type User,
  type UserGroup,
  type UserStatus,
  type UserTopic,
} from "../api/types.ts";
import type { MessageList } from "./lists.ts";
import type { Outgoing } from "./outgoing.ts";
import { getOrInsert, Unread, type Place } from "./unread.ts";
import type { EmojiChoice } from "../api/endpoints.ts";

export interface Members {
  ids: Set<number>;
  complete: boolean; // else only some of the subscribers are known
}

export interface Me {
  user_id: number;
  email: string;
  delivery_email: string;
  full_name: string;
  avatar_url: string;
  avatar_url_medium: string;
  avatar_source: string;
  is_owner: boolean;
  is_admin: boolean;
  is_moderator: boolean;
  is_guest: boolean;
}

// Emoji is one that the user can choose. The first of its names is emoji_name.
export interface Emoji extends EmojiChoice {
  names: string[];
}

export interface TopicInfo {
  name: string;
  max_id: number;
}

// Values are settings and limits under their names on the wire.
export type Values = Record<string, any>;

// Connection: "lost" means that the server has not answered for a while, and that the page shows this.
export type Connection = "starting" | "live" | "trying" | "lost";

export interface State {
  connection: Connection;
  queue: { id: string; last: number; newest: number }; // newest is the message that registration or events named last
  me: Me;
  realm: Values; // the members realm_* and server_*, and limits
  settings: Values; // user_settings
  defaults: Values; // realm_user_settings_defaults
  users: Map<number, User>;
  groups: Map<number, UserGroup>;
  channels: Map<number, Channel>;
  subscriptions: Map<number, Subscription>;
  members: Map<number, Members>; // of channels
  folders: Map<number, ChannelFolder>;
  topics: Map<number, Map<string, TopicInfo>>; // of channels whose topics were fetched, by name in lower case
  topicPolicies: Map<number, Map<string, UserTopic>>;
  conversations: Map<string, number>; // direct conversations with their newest message
  unread: Unread;
  oldUnreadMissing: boolean;
  starred: Set<number>;
  messages: Map<number, Message>;
  lists: Map<string, MessageList>;
  shown: string; // the key of the list on the screen
  recent: number[]; // the messages that the recent conversations were made from
  outgoing: Map<string, Outgoing>;
  unsentReads: Set<number>; // messages that the user has read, and the server does not know it yet
  ownUnread: Set<number>; // messages that this page has marked as unread, until the event comes
  presences: Map<number, Presence>;
  presenceID: number; // of the last presence update
  statuses: Map<number, UserStatus>;
  typing: Map<string, Map<number, number>>; // by place: users with the time in ms until which they count as typing
  typingEdits: Map<number, Map<number, number>>; // by message
  mutedUsers: Map<number, number>;
  alertWords: string[];
  emoji: Map<string, RealmEmoji>;
  unicodeEmoji: Emoji[]; // empty until they are fetched
  linkifiers: Values[];
  playgrounds: Values[];
  profileFields: ProfileField[];
  domains: Map<string, Values>;
  bots: Map<number, Values>;
  drafts: Map<number, Draft>;
  scheduled: Map<number, ScheduledMessage>;
  reminders: Map<number, Reminder>;
  snippets: Map<number, Snippet>;
  navigation: Map<string, Values>;
  devices: Map<string, Values>;
  attachments: Map<number, Values> | null; // null until they are fetched
  uploadSpaceUsed: number;
  defaultChannels: number[];
  defaultChannelGroups: Values[];
  onboarding: Values[];
  exports: Values[];
  exportConsents: Map<number, boolean>;
  invitesVersion: number; // grows when the invitations must be fetched again
}

// Part is a part of the state that components read and reducers change as one.
export type Part = keyof State;

// Change is the state while something changes it: touch names each part that changed.
export interface Change {
  state: State;
  now: number; // milliseconds
  touch(part: Part): void;
}

export function emptyState(): State {
  return {
    connection: "starting",
    queue: { id: "", last: -1, newest: -1 },
    me: {} as Me,
    realm: {},
    settings: {},
    defaults: {},
    users: new Map(),
    groups: new Map(),
    channels: new Map(),
    subscriptions: new Map(),
    members: new Map(),
    folders: new Map(),
    topics: new Map(),
    topicPolicies: new Map(),
    conversations: new Map(),
    unread: new Unread(),
    oldUnreadMissing: false,
    starred: new Set(),
    messages: new Map(),
    lists: new Map(),
    shown: "",
    recent: [],
    outgoing: new Map(),
    unsentReads: new Set(),
    ownUnread: new Set(),
    presences: new Map(),
    presenceID: -1,
    statuses: new Map(),
    typing: new Map(),
    typingEdits: new Map(),
    mutedUsers: new Map(),
    alertWords: [],
    emoji: new Map(),
    unicodeEmoji: [],
    linkifiers: [],
    playgrounds: [],
    profileFields: [],
    domains: new Map(),
    bots: new Map(),
    drafts: new Map(),
    scheduled: new Map(),
    reminders: new Map(),
    snippets: new Map(),
    navigation: new Map(),
    devices: new Map(),
    attachments: null,
    uploadSpaceUsed: 0,
    defaultChannels: [],
    defaultChannelGroups: [],
    onboarding: [],
    exports: [],
    exportConsents: new Map(),
    invitesVersion: 0,
  };
}

export const parts = Object.keys(emptyState()) as Part[];

const meFields = [
  "user_id",
  "email",
  "delivery_email",
  "full_name",
  "avatar_url",
  "avatar_url_medium",
  "avatar_source",
  "is_owner",
  "is_admin",
  "is_moderator",
  "is_guest",
] as const;

// personal are the members of a subscription that belong to the user, not to the channel.
export const personal = [
  "color",
  "is_muted",
  "pin_to_top",
  "desktop_notifications",
  "audible_notifications",
  "push_notifications",
  "email_notifications",
  "wildcard_mentions_notify",
] as const;

// fromRegister returns the state that an answer of register describes.
export function fromRegister(r: RegisterAnswer): State {
  const s = emptyState();
  s.queue = { id: r.queue_id, last: r.last_event_id, newest: r.max_message_id ?? -1 };
  const me: Values = {};
  for (const k of meFields) me[k] = r[k];
  s.me = me as Me;
  for (const [k, v] of Object.entries(r)) {
    if (isRealmValue(k, v)) s.realm[k] = v;
  }
  s.settings = r.user_settings ?? {};
  s.defaults = r.realm_user_settings_defaults ?? {};
  addPeople(s, r);
  addChannels(s, r);
  addUnread(s, r);
  addLists(s, r);
  return s;
}

// withOwn adds to a new registration what this page has from before and no registration contains.
export function withOwn(now: State, old: State): State {
  const { connection, outgoing, messages, unsentReads, ownUnread, unicodeEmoji, recent, shown } = old;
  // Events may have been missed: each list is fetched again when it is next shown.
  const lists = new Map([...old.lists].map(([key, list]) => [key, { ...list, stale: true, loading: "" as const }]));
  return { ...now, connection, outgoing, messages, unsentReads, ownUnread, unicodeEmoji, recent, shown, lists };
}

const flatPrefixes = ["realm_", "server_", "max_", "password_", "can_", "settings_"];
const flatNames = [
  "zulip_version",
  "zulip_feature_level",
  "event_queue_longpoll_timeout_seconds",
  "gif_rating_policy_options",
  "custom_profile_field_types",
  "jitsi_server_url",
  "development_environment",
  "giphy_api_key",
  "tenor_api_key",
  "klipy_api_key",
  "has_zoom_token",
  "has_webex_token",
];

// tables are the members realm_* with a part of their own.
const tables = new Set([
  "realm_users",
  "realm_non_active_users",
  "realm_user_groups",
  "realm_bots",
  "realm_emoji",
  "realm_domains",
  "realm_linkifiers",
  "realm_playgrounds",
  "realm_default_streams",
  "realm_default_stream_groups",
  "realm_user_settings_defaults",
  "realm_filters",
  "max_message_id",
]);

function isRealmValue(name: string, value: unknown): boolean {
  return value !== undefined && !tables.has(name) && (flatPrefixes.some((p) => name.startsWith(p)) || flatNames.includes(name));
}

function addPeople(s: State, r: RegisterAnswer): void {
  for (const u of r.realm_users ?? []) s.users.set(u.user_id, { ...u, is_active: true });
  for (const u of r.realm_non_active_users ?? []) s.users.set(u.user_id, { ...u, is_active: false });
  for (const u of r.cross_realm_bots ?? []) s.users.set(u.user_id, { ...u, is_active: true, is_system_bot: true });
  for (const g of r.realm_user_groups ?? []) s.groups.set(g.id, g);
  for (const b of r.realm_bots ?? []) s.bots.set(b.user_id, b);
  for (const [id, p] of Object.entries(r.presences ?? {})) s.presences.set(Number(id), p as Presence);
  s.presenceID = r.presence_last_update_id ?? -1;
  for (const [id, x] of Object.entries(r.user_status ?? {})) s.statuses.set(Number(id), x as UserStatus);
  for (const x of r.muted_users ?? []) s.mutedUsers.set(x.id, x.timestamp);
}

function addChannels(s: State, r: RegisterAnswer): void {
  for (const c of r.streams ?? []) addChannel(s, c);
  for (const c of r.never_subscribed ?? []) addChannel(s, c);
  for (const c of r.unsubscribed ?? []) addChannel(s, c);
  for (const c of r.subscriptions ?? []) {
    addChannel(s, c);
    s.subscriptions.set(c.stream_id, subscriptionOf(c));
  }
  for (const f of r.channel_folders ?? []) s.folders.set(f.id, f);
  for (const t of r.user_topics ?? []) setTopicPolicy(s, t);
}

// addChannel stores a channel, and its subscribers if the object lists them.
export function addChannel(s: State, wire: Values): void {
  const { subscribers, partial_subscribers, ...rest } = wire;
  for (const k of personal) delete rest[k];
  delete rest.in_home_view;
  delete rest.email_address;
  s.channels.set(rest.stream_id, rest as Channel);
  if (subscribers) s.members.set(rest.stream_id, { ids: new Set(subscribers), complete: true });
  else if (partial_subscribers) s.members.set(rest.stream_id, { ids: new Set(partial_subscribers), complete: false });
}

export function subscriptionOf(wire: Values): Subscription {
  const out: Values = { stream_id: wire.stream_id };
  for (const k of personal) out[k] = wire[k];
  return out as Subscription;
}

export function setTopicPolicy(s: State, t: UserTopic): void {
  const topics = getOrInsert(s.topicPolicies, t.stream_id, () => new Map<string, UserTopic>());
  if (t.visibility_policy === TopicPolicy.inherit) topics.delete(t.topic_name.toLowerCase());
  else topics.set(t.topic_name.toLowerCase(), t);
  if (topics.size === 0) s.topicPolicies.delete(t.stream_id);
}

// peopleKey is the key of a direct conversation: the ids of the other users in ascending order, or the user's own id
// for notes to oneself.
export function peopleKey(ids: Iterable<number>, me: number): string {
  const others = [...new Set(ids)].filter((id) => id !== me).sort((a, b) => a - b);
  return others.length ? others.join(",") : String(me);
}

export function peopleOf(key: string): number[] {
  return key.split(",").map(Number);
}

function addUnread(s: State, r: RegisterAnswer): void {
  const u = r.unread_msgs;
  for (const id of r.starred_messages ?? []) s.starred.add(id);
  const me = s.me.user_id;
  for (const c of r.recent_private_conversations ?? []) {
    s.conversations.set(peopleKey(c.user_ids, me), c.max_message_id);
  }
  if (!u) return;
  s.oldUnreadMissing = u.old_unreads_missing;
  const mentions = new Set<number>(u.mentions);
  const add = (ids: number[], place: Place): void => {
    for (const id of ids) s.unread.add(id, place, mentions.has(id));
  };
  for (const p of u.pms) add(p.unread_message_ids, { people: peopleKey([p.other_user_id], me) });
  for (const p of u.streams) add(p.unread_message_ids, { channel: p.stream_id, topic: p.topic });
  for (const p of u.huddles) {
    add(p.unread_message_ids, { people: peopleKey(p.user_ids_string.split(",").map(Number), me) });
  }
}

function addLists(s: State, r: RegisterAnswer): void {
  s.alertWords = r.alert_words ?? [];
  for (const [id, e] of Object.entries(r.realm_emoji ?? {})) s.emoji.set(id, e as RealmEmoji);
  s.linkifiers = r.realm_linkifiers ?? [];
  s.playgrounds = r.realm_playgrounds ?? [];
  s.profileFields = r.custom_profile_fields ?? [];
  for (const d of r.realm_domains ?? []) s.domains.set(d.domain, d);
  for (const d of r.drafts ?? []) s.drafts.set(d.id, d);
  for (const m of r.scheduled_messages ?? []) s.scheduled.set(m.scheduled_message_id, m);
  for (const x of r.reminders ?? []) s.reminders.set(x.reminder_id, x);
  for (const x of r.saved_snippets ?? []) s.snippets.set(x.id, x);
  for (const v of r.navigation_views ?? []) s.navigation.set(v.fragment, v);
  for (const [id, d] of Object.entries(r.devices ?? {})) s.devices.set(id, d as Values);
  s.uploadSpaceUsed = r.upload_space_used ?? 0;
  s.defaultChannels = r.realm_default_streams ?? [];
  s.defaultChannelGroups = r.realm_default_stream_groups ?? [];
  s.onboarding = r.onboarding_steps ?? [];
}
