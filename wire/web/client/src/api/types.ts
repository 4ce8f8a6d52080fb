// Types of the protocol: objects as the server sends them, reduced to the fields that the client uses.

export type GroupSetting = number | { direct_members: number[]; direct_subgroups: number[] };

export interface User {
  user_id: number;
  email: string;
  delivery_email?: string | null;
  full_name: string;
  role: number;
  is_bot: boolean;
  bot_type?: number | null;
  bot_owner_id?: number | null;
  is_admin: boolean;
  is_owner: boolean;
  is_guest: boolean;
  is_system_bot?: boolean;
  is_deleted?: boolean;
  is_active: boolean; // set by the store: the lists of the register imply it
  timezone: string;
  date_joined: string;
  avatar_url?: string | null;
  avatar_version: number;
  profile_data?: Record<string, { value: string; rendered_value?: string }>;
}

export interface Channel {
  stream_id: number;
  name: string;
  description: string;
  rendered_description: string;
  date_created: number;
  creator_id: number | null;
  invite_only: boolean;
  is_web_public: boolean;
  is_archived: boolean;
  history_public_to_subscribers: boolean;
  message_retention_days: number | null;
  first_message_id: number | null;
  folder_id: number | null;
  topics_policy: string;
  subscriber_count?: number;
  stream_weekly_traffic?: number | null;
  is_recently_active?: boolean;
  can_add_subscribers_group: GroupSetting;
  can_administer_channel_group: GroupSetting;
  can_create_topic_group: GroupSetting;
  can_delete_any_message_group: GroupSetting;
  can_delete_own_message_group: GroupSetting;
  can_move_messages_out_of_channel_group: GroupSetting;
  can_move_messages_within_channel_group: GroupSetting;
  can_remove_subscribers_group: GroupSetting;
  can_resolve_topics_group: GroupSetting;
  can_send_message_group: GroupSetting;
  can_subscribe_group: GroupSetting;
}

// Subscription is the caller's own part of a subscribed channel.
export interface Subscription {
  stream_id: number;
  color: string;
  is_muted: boolean;
  pin_to_top: boolean;
  desktop_notifications: boolean | null;
  audible_notifications: boolean | null;
  push_notifications: boolean | null;
  email_notifications: boolean | null;
  wildcard_mentions_notify: boolean | null;
}

export interface Reaction {
  user_id: number;
  emoji_name: string;
  emoji_code: string;
  reaction_type: string;
}

export interface Submessage {
  id: number;
  message_id: number;
  sender_id: number;
  msg_type: string;
  content: string;
}

export interface Message {
  id: number;
  type: "stream" | "private";
  sender_id: number;
  sender_email: string;
  sender_full_name: string;
  avatar_url?: string | null;
  client: string;
  content: string;
  timestamp: number;
  is_me_message: boolean;
  reactions: Reaction[];
  submessages: Submessage[];
  flags: string[];
  subject: string;
  stream_id?: number;
  display_recipient: string | { id: number; email: string; full_name: string }[];
  topic_links?: { text: string; url: string }[];
  last_edit_timestamp?: number;
  last_moved_timestamp?: number;
  match_content?: string;
  match_subject?: string;
}

export interface UserGroup {
  id: number;
  name: string;
  description: string;
  members: number[];
  direct_subgroup_ids: number[];
  is_system_group: boolean;
  deactivated: boolean;
  creator_id: number | null;
  date_created: number | null;
  can_add_members_group: GroupSetting;
  can_join_group: GroupSetting;
  can_leave_group: GroupSetting;
  can_manage_group: GroupSetting;
  can_mention_group: GroupSetting;
  can_remove_members_group: GroupSetting;
}

export interface ChannelFolder {
  id: number;
  name: string;
  description: string;
  rendered_description: string;
  is_archived: boolean;
  order: number;
  creator_id: number | null;
  date_created: number | null;
}

export interface RealmEmoji {
  id: string;
  name: string;
  source_url: string;
  still_url: string | null;
  deactivated: boolean;
  author_id: number | null;
}

export interface UserStatus {
  away?: boolean;
  status_text?: string;
  emoji_name?: string;
  emoji_code?: string;
  reaction_type?: string;
}

export interface UserTopic {
  stream_id: number;
  topic_name: string;
  last_updated: number;
  visibility_policy: number;
}

export interface Presence {
  active_timestamp: number;
  idle_timestamp: number;
}

export interface Draft {
  id: number;
  type: "" | "stream" | "private";
  to: number[];
  topic: string;
  content: string;
  timestamp: number;
}

export interface ScheduledMessage {
  scheduled_message_id: number;
  type: "stream" | "private";
  to: number | number[];
  topic?: string;
  content: string;
  rendered_content: string;
  scheduled_delivery_timestamp: number;
  failed: boolean;
}

export interface Reminder {
  reminder_id: number;
  type: "private";
  to: number[];
  content: string;
  rendered_content: string;
  scheduled_delivery_timestamp: number;
  failed: boolean;
  reminder_target_message_id: number;
}

export interface Snippet {
  id: number;
  title: string;
  content: string;
  date_created: number;
}

export interface ProfileField {
  id: number;
  type: number;
  order: number;
  name: string;
  hint: string;
  field_data: string;
  display_in_profile_summary?: boolean;
  required?: boolean;
  editable_by_user?: boolean;
}

export interface Term {
  operator: string;
  operand: string | number | number[];
  negated?: boolean;
}

// ServerEvent is one event of the queue. The other members depend on the type; its reducer reads them.
export interface ServerEvent {
  id: number;
  type: string;
  op?: string;
  [member: string]: any;
}

// RegisterAnswer is the answer of /json/register. fromRegister reads the members.
export type RegisterAnswer = Record<string, any>;

export const Role = { owner: 100, admin: 200, moderator: 300, member: 400, guest: 600 } as const;

export const ColorScheme = { system: 1, dark: 2, light: 3 } as const;

// FieldType has the types of profile fields that the client treats in a special way.
export const FieldType = { longText: 2, choice: 3, date: 4, link: 5, users: 6, account: 7 } as const;

export const TopicPolicy = { inherit: 0, muted: 1, unmuted: 2, followed: 3 } as const;
