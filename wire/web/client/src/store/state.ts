// The state of the client as plain data: the content of the registration and of the events, and the fetched messages.
// Nothing here uses the browser, so tests run it in Node.
import {
  type Bot,
  type Channel,
  type ChannelFolder,
  type ChannelObject,
  type Domain,
  type Draft,
  type EmojiChoice,
  type Export,
  type GroupSetting,
  type Linkifier,
  type Message,
  type NamesOf,
  personal,
  type Playground,
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
  type UserSettings,
  type UserStatus,
  type UserTopic,
} from "../api/types.ts";
import type { MessageList } from "./lists.ts";
import type { Outgoing } from "./outgoing.ts";
import { getOrInsert, Unread, type Place } from "./unread.ts";

let onMissing: (id: number) => void = () => {}; // registry

// whenMissing calls fn with each user that is read and not known. Only large organizations have such users.
export function whenMissing(fn: (id: number) => void): void {
  onMissing = fn;
}

// Users is the known users by id.
export class Users extends Map<number, User> {
  override get(id: number): User | undefined {
    const u = super.get(id);
    if (u === undefined) onMissing(id);
    return u;
  }
}

export interface Members {
  ids: Set<number>;
  complete: boolean; // else only some of the subscribers are known
}

// Me is the user.
type Me = Required<Pick<RegisterAnswer, keyof typeof noUser>>;

const noUser = {
  user_id: 0,
  delivery_email: "",
  full_name: "",
  avatar_source: "",
  is_owner: false,
  is_admin: false,
  is_guest: false,
};

// Emoji is one that the user can choose. The first of its names is emoji_name.
export interface Emoji extends EmojiChoice {
  names: string[];
}

export interface TopicInfo {
  name: string;
  max_id: number;
}

// RealmValues are settings and limits of the organization under their names on the wire.
export type RealmValues = Partial<Pick<RegisterAnswer, RealmName>> & { deactivated?: boolean };

// Connection: "lost" means that the server has not answered for a while, and that the page shows this.
export type Connection = "starting" | "live" | "trying" | "lost";

export interface State {
  connection: Connection;
  queue: { id: string; last: number; newest: number }; // newest is the message that registration or events named last
  me: Me;
  realm: RealmValues;
  settings: Partial<UserSettings>;
  defaults: Partial<UserSettings>; // of new users
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
  starred: Set<number>;
  messages: Map<number, Message>;
  lists: Map<string, MessageList>;
  shown: string; // the key of the list on the screen
  recent: number[]; // the messages that the recent conversations were made from
  outgoing: Map<string, Outgoing>;
  arrived: { localID: string; id: number } | null; // the last message of this page that the queue has delivered
  unsentReads: Set<number>; // messages that the user has read, and the server does not know it yet
  ownUnread: Set<number>; // messages that this page has marked as unread, until the event comes
  presences: Map<number, Presence>;
  presenceID: number; // of the last presence update
  statuses: Map<number, UserStatus>;
  typing: Map<string, Map<number, number>>; // by place: users with the time in ms until which they count as typing
  mutedUsers: Map<number, number>;
  alertWords: string[];
  emoji: Map<string, RealmEmoji>;
  unicodeEmoji: Emoji[]; // empty until they are fetched
  linkifiers: Linkifier[];
  playgrounds: Playground[];
  profileFields: ProfileField[];
  domains: Map<string, Domain>;
  bots: Map<number, Bot>;
  drafts: Map<number, Draft>;
  scheduled: Map<number, ScheduledMessage>;
  reminders: Map<number, Reminder>;
  snippets: Map<number, Snippet>;
  uploadSpaceUsed: number;
  defaultChannels: number[];
  exports: Export[];
  exportConsents: Map<number, boolean>;
  invitesVersion: number; // grows when the invitations must be fetched again
  hints: string[]; // hints that the user has not dismissed ("onboarding steps" in the protocol)
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
    me: noUser,
    realm: {},
    settings: {},
    defaults: {},
    users: new Users(),
    groups: new Map(),
    channels: new Map(),
    subscriptions: new Map(),
    members: new Map(),
    folders: new Map(),
    topics: new Map(),
    topicPolicies: new Map(),
    conversations: new Map(),
    unread: new Unread(),
    starred: new Set(),
    messages: new Map(),
    lists: new Map(),
    shown: "",
    recent: [],
    outgoing: new Map(),
    arrived: null,
    unsentReads: new Set(),
    ownUnread: new Set(),
    presences: new Map(),
    presenceID: -1,
    statuses: new Map(),
    typing: new Map(),
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
    uploadSpaceUsed: 0,
    defaultChannels: [],
    exports: [],
    exportConsents: new Map(),
    invitesVersion: 0,
    hints: [],
  };
}

export const parts = Object.keys(emptyState()) as Part[];

// fromRegister returns the state that an answer of register describes.
export function fromRegister(r: RegisterAnswer): State {
  const s = emptyState();
  s.queue = { id: r.queue_id ?? "", last: r.last_event_id ?? -1, newest: r.max_message_id ?? -1 };
  s.me = { ...noUser };
  for (const name of Object.keys(noUser) as (keyof Me)[]) copy(s.me, r, name);
  for (const name of Object.keys(r)) if (isRealmName(name)) copy<RealmValues, RealmName>(s.realm, r, name);
  s.settings = r.user_settings ?? {};
  s.defaults = r.realm_user_settings_defaults ?? {};
  addPeople(s, r);
  addChannels(s, r);
  addUnread(s, r);
  addLists(s, r);
  return s;
}

// copy copies a member of an object, if that has it.
function copy<T, K extends keyof T>(to: T, from: Partial<Pick<T, K>>, name: K): void {
  const value = from[name];
  if (value !== undefined) to[name] = value;
}

// withOwn adds to a new registration what this page has from before and no registration contains.
export function withOwn(now: State, old: State): State {
  const { connection, outgoing, arrived, messages, unsentReads, ownUnread, unicodeEmoji, recent, shown } = old;
  // Events may have been missed: each list is fetched again when it is next shown.
  const lists = new Map([...old.lists].map(([key, list]) => [key, { ...list, stale: true, loading: "" as const }]));
  return { ...now, connection, outgoing, arrived, messages, unsentReads, ownUnread, unicodeEmoji, recent, shown, lists };
}

// SharedState is the part of the state that all tabs of a session have.
export type SharedState = Omit<State, keyof Own>;

type Own = Pick<State, "outgoing" | "arrived" | "messages" | "unsentReads" | "ownUnread" | "recent" | "shown" | "lists">;

// sharedOf returns the state for another tab.
export function sharedOf(s: State): SharedState {
  const { outgoing, arrived, messages, unsentReads, ownUnread, recent, shown, lists, ...shared } = s;
  return shared;
}

// fromShared returns the state of another tab with what this one has of its own. Notes between tabs lose classes.
export function fromShared(shared: SharedState, old: State): State {
  const unread = Object.assign(new Unread(), shared.unread);
  const { unicodeEmoji } = shared.unicodeEmoji.length > 0 ? shared : old;
  const users = new Users(shared.users);
  return { ...withOwn({ ...emptyState(), ...shared, unread, users }, old), unicodeEmoji };
}

type Prefix = "realm_" | "server_" | "max_";

const prefixes: Prefix[] = ["realm_", "server_", "max_"];

const otherNames = [
  "zulip_version",
  "zulip_feature_level",
  "gif_rating_policy_options",
  "settings_send_digest_emails",
  "custom_profile_field_types",
  "giphy_api_key",
  "tenor_api_key",
  "klipy_api_key",
] as const;

// tables are the members with such a prefix and a part of their own.
const tables = [
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
] as const;

// RealmName is the name of a value of the organization.
type RealmName =
  | Exclude<Extract<keyof RegisterAnswer, `${Prefix}${string}`>, (typeof tables)[number]>
  | (typeof otherNames)[number];

// namesUsers tells a permission that names users and groups from other values.
export function namesUsers(value: unknown): value is Exclude<GroupSetting, number> {
  return typeof value === "object" && value !== null && "direct_members" in value;
}

// RealmSetting is the name of a setting of the organization with values of a type, without realm_.
export type RealmSetting<V> = NamesOf<RealmValues, V> extends infer N ? (N extends `realm_${infer S}` ? S : never) : never;

function isRealmName(name: string): name is RealmName {
  const has = (list: readonly string[]): boolean => list.includes(name);
  return !has(tables) && (prefixes.some((p) => name.startsWith(p)) || has(otherNames));
}

function addPeople(s: State, r: RegisterAnswer): void {
  for (const u of r.realm_users ?? []) s.users.set(u.user_id, { ...u, is_active: true });
  for (const u of r.realm_non_active_users ?? []) s.users.set(u.user_id, { ...u, is_active: false });
  for (const u of r.cross_realm_bots ?? []) s.users.set(u.user_id, { ...u, is_active: true, is_system_bot: true });
  for (const g of r.realm_user_groups ?? []) s.groups.set(g.id, g);
  for (const b of r.realm_bots ?? []) s.bots.set(b.user_id, b);
  for (const [id, p] of Object.entries(r.presences ?? {})) if ("active_timestamp" in p) s.presences.set(Number(id), p);
  s.presenceID = r.presence_last_update_id ?? -1;
  for (const [id, x] of Object.entries(r.user_status ?? {})) s.statuses.set(Number(id), x);
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
export function addChannel(s: State, wire: ChannelObject): void {
  const { subscribers, partial_subscribers, ...rest } = wire;
  for (const k of personal) delete rest[k];
  delete rest.in_home_view;
  s.channels.set(rest.stream_id, rest);
  if (subscribers) s.members.set(rest.stream_id, { ids: new Set(subscribers), complete: true });
  else if (partial_subscribers) s.members.set(rest.stream_id, { ids: new Set(partial_subscribers), complete: false });
}

export function subscriptionOf(wire: Subscription): Subscription {
  const { stream_id, color, is_muted, pin_to_top, wildcard_mentions_notify } = wire;
  const { desktop_notifications, audible_notifications, push_notifications, email_notifications } = wire;
  const kinds = { desktop_notifications, audible_notifications, push_notifications, email_notifications, wildcard_mentions_notify };
  return { stream_id, color, is_muted, pin_to_top, ...kinds };
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
  for (const [id, e] of Object.entries(r.realm_emoji ?? {})) s.emoji.set(id, e);
  s.linkifiers = r.realm_linkifiers ?? [];
  s.playgrounds = r.realm_playgrounds ?? [];
  s.profileFields = r.custom_profile_fields ?? [];
  for (const d of r.realm_domains ?? []) s.domains.set(d.domain, d);
  for (const d of r.drafts ?? []) s.drafts.set(d.id, d);
  for (const m of r.scheduled_messages ?? []) s.scheduled.set(m.scheduled_message_id, m);
  for (const x of r.reminders ?? []) s.reminders.set(x.reminder_id, x);
  for (const x of r.saved_snippets ?? []) s.snippets.set(x.id, x);
  s.defaultChannels = r.realm_default_streams ?? [];
  s.hints = (r.onboarding_steps ?? []).map((x) => x.name);
}
