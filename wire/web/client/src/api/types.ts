// Types of the protocol under the names that the client uses. schema.ts is made from the server's description of its
// answers and events; what the client changes about its types is stated here.
import type * as schema from "./schema.ts";

export type {
  Attachment,
  Bot,
  Domain,
  Draft,
  Emoji as RealmEmoji,
  Event as ServerEvent,
  Export,
  Folder as ChannelFolder,
  FoundMessage as Message,
  GroupValue as GroupSetting,
  Integration,
  Invite,
  Linkifier,
  OwnBot,
  PastMessage as Version,
  PermissionRule as Limits,
  Playground,
  Presence,
  ProfileField,
  Reaction,
  Reminder,
  ScheduledMessage,
  Snippet,
  Status as UserStatus,
  Submessage,
  UserSettings,
  UserTopic,
} from "./schema.ts";

export type EventType = schema.Event["type"];

// EventOf is an event of one type.
export type EventOf<T extends EventType> = Extract<schema.Event, { type: T }>;

// RegisterAnswer is the answer of register. It describes what the client has asked for, which is everything.
export type RegisterAnswer = Partial<schema.PostRegisterAnswer>;

// UserGroup has a member_count if only some of its members are known.
export type UserGroup = schema.Group & { member_count?: number };

// User is an account. The lists of the registration imply is_active.
export type User = schema.RegisteredUser & { is_active: boolean; is_system_bot?: boolean };

// Channel lacks the number of subscribers after the user has left it.
export type Channel = Omit<schema.Channel, "subscriber_count"> & { subscriber_count?: number };

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

// Subscription is the caller's own part of a subscribed channel.
export type Subscription = Pick<schema.Subscription, "stream_id" | (typeof personal)[number]>;

// ChannelObject is a channel as the server sends it: alone, with its subscribers, or as a part of a subscription.
export type ChannelObject = schema.Channel & Partial<schema.Subscription>;

// EmojiChoice names an emoji.
export type EmojiChoice = Omit<schema.Reaction, "user_id">;

// NamesOf are the names of the members with values of a type, or null.
export type NamesOf<T, V> = { [K in keyof T]-?: [NonNullable<T[K]>, V] extends [V, NonNullable<T[K]>] ? K : never }[keyof T];

// SettingOf is the name of a setting of the user with values of a type.
export type SettingOf<V> = NamesOf<schema.UserSettings, V>;

export interface Term {
  operator: string;
  operand: string | number | number[];
  negated?: boolean;
}

export const Role = { owner: 100, admin: 200, moderator: 300, member: 400, guest: 600 } as const;

export const ColorScheme = { system: 1, dark: 2, light: 3 } as const;

// FieldType has the types of profile fields that the client treats in a special way.
export const FieldType = { longText: 2, choice: 3, date: 4, link: 5, users: 6, account: 7 } as const;

export const TopicPolicy = { inherit: 0, muted: 1, unmuted: 2, followed: 3 } as const;
