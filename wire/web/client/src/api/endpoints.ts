// One typed function for each call that several parts of the client use.
import { request } from "./client.ts";
import type * as answers from "./schema.ts";
import type { EmojiChoice, Message, RegisterAnswer, Term } from "./types.ts";

// capabilities are the newer forms of events that this client understands: all of them.
const capabilities = {
  notification_settings_null: true,
  bulk_message_deletion: true,
  user_avatar_url_field_optional: true,
  stream_typing_notifications: true,
  user_settings_object: true,
  linkifier_url_template: true,
  user_list_incomplete: true,
  include_deactivated_groups: true,
  archived_channels: true,
  empty_topic_name: true,
  simplified_presence_events: true,
  individual_emoji_changes: true,
  short_user_list: true,
};

export const registerParams = {
  apply_markdown: true,
  client_gravatar: false,
  slim_presence: true,
  include_subscribers: "partial",
  idle_queue_timeout: 12 * 3600, // seconds: a laptop that slept for some hours keeps its queue
  client_capabilities: capabilities,
};

export function register(signal?: AbortSignal): Promise<RegisterAnswer> {
  return request("/register", { method: "POST", params: registerParams, repeatable: true, timeout: 60_000, signal });
}

// dismissHint stores that the user does not want to see a hint again, on no device.
export function dismissHint(onboarding_step: string): Promise<unknown> {
  return request("/users/me/onboarding_steps", { method: "POST", params: { onboarding_step } });
}

// registerAsVisitor returns what visitors without an account can see. They get no event queue.
export function registerAsVisitor(): Promise<RegisterAnswer> {
  const params = { apply_markdown: true, slim_presence: true, client_capabilities: capabilities };
  return request("/register", { method: "POST", params, repeatable: true });
}

export interface Poll {
  queue: string;
  last: number;
  now: boolean; // answer at once, even without events
  timeout: number;
  signal: AbortSignal;
}

export function pollEvents(p: Poll): Promise<answers.GetEventsAnswer> {
  const params = { queue_id: p.queue, last_event_id: p.last, dont_block: p.now || undefined };
  return request("/events", { params, repeatable: false, timeout: p.timeout, signal: p.signal });
}

export function deleteQueue(queue: string): Promise<unknown> {
  return request("/events", { method: "DELETE", params: { queue_id: queue }, keepalive: true });
}

export interface MessagesQuery {
  anchor: number | "newest" | "oldest" | "first_unread" | "date";
  anchor_date?: string;
  before: number;
  after: number;
  narrow: Term[];
}

export function getMessages(q: MessagesQuery, signal?: AbortSignal): Promise<answers.GetMessagesAnswer> {
  const params = {
    anchor: String(q.anchor),
    anchor_date: q.anchor_date,
    num_before: q.before,
    num_after: q.after,
    narrow: q.narrow,
    apply_markdown: true,
    client_gravatar: false,
    allow_empty_topic_name: true,
  };
  return request("/messages", { params, signal });
}

export type Destination = { channel: number; topic: string } | { people: number[] };

// addressOf returns the parameters that name the destination of a message.
export function addressOf(to: Destination): Record<string, unknown> {
  if ("channel" in to) return { type: "channel", to: to.channel, topic: to.topic };
  return { type: "direct", to: to.people };
}

export interface Sending {
  to: Destination;
  content: string;
  queue: string;
  localID: string;
}

export function sendMessage(s: Sending): Promise<answers.PostMessagesAnswer> {
  const { content, queue: queue_id, localID: local_id } = s;
  const params = { ...addressOf(s.to), content, queue_id, local_id, read_by_sender: true };
  return request("/messages", { method: "POST", params });
}

export function changeFlags(op: "add" | "remove", flag: string, messages: number[]): Promise<unknown> {
  return request("/messages/flags", { method: "POST", params: { op, flag, messages }, repeatable: true });
}

// changeFlagsOfNarrow changes a flag of up to 5,000 messages of a narrow, the anchor and older ones. With a message as the
// anchor, this one is left out.
export function changeFlagsOfNarrow(op: "add" | "remove", flag: string, narrow: Term[], anchor: number | "newest"): Promise<answers.PostMessagesFlagsNarrowAnswer> {
  const include_anchor = anchor === "newest";
  const params = { op, flag, narrow, anchor: String(anchor), include_anchor, num_before: 5000, num_after: 0 };
  return request("/messages/flags/narrow", { method: "POST", params, repeatable: true, timeout: 60_000 });
}

export function react(op: "add" | "remove", message: number, emoji: EmojiChoice): Promise<unknown> {
  const method = op === "add" ? "POST" : "DELETE";
  const params = { emoji_name: emoji.emoji_name, emoji_code: emoji.emoji_code, reaction_type: emoji.reaction_type };
  return request(`/messages/${message}/reactions`, { method, params });
}

export interface MessageEdit {
  content?: string;
  prev_content_sha256?: string;
  topic?: string;
  stream_id?: number;
  propagate_mode?: "change_one" | "change_later" | "change_all";
  send_notification_to_old_thread?: boolean;
  send_notification_to_new_thread?: boolean;
}

export function editMessage(id: number, edit: MessageEdit): Promise<unknown> {
  return request(`/messages/${id}`, { method: "PATCH", params: { ...edit } });
}

export function deleteMessage(id: number): Promise<unknown> {
  return request(`/messages/${id}`, { method: "DELETE" });
}

// deleteTopic deletes the messages of a topic; unless complete, some are left.
export function deleteTopic(channel: number, topic: string): Promise<answers.PostStreamsStreamIdDeleteTopicAnswer> {
  return request(`/streams/${channel}/delete_topic`, { method: "POST", params: { topic_name: topic } });
}

// getMessage returns one message, also when it is in no loaded list.
export async function getMessage(id: number): Promise<Message> {
  const params = { apply_markdown: true, client_gravatar: false, allow_empty_topic_name: true };
  return (await request<answers.GetMessagesMessageIdAnswer>(`/messages/${id}`, { params })).message;
}

// getSource returns the Markdown of a message.
export async function getSource(id: number): Promise<string> {
  const params = { apply_markdown: false, allow_empty_topic_name: true };
  return (await request<answers.GetMessagesMessageIdAnswer>(`/messages/${id}`, { params })).raw_content;
}

export function getHistory(id: number): Promise<answers.GetMessagesMessageIdHistoryAnswer> {
  return request(`/messages/${id}/history`, { params: { allow_empty_topic_name: true } });
}

export function getReceipts(id: number): Promise<answers.GetMessagesMessageIdReadReceiptsAnswer> {
  return request(`/messages/${id}/read_receipts`);
}

// matchNarrow returns those of the messages that belong to a narrow.
export function matchNarrow(messages: number[], narrow: Term[]): Promise<answers.GetMessagesMatchesNarrowAnswer> {
  return request("/messages/matches_narrow", { params: { msg_ids: messages, narrow } });
}

export function getTopics(channel: number): Promise<answers.GetUsersMeStreamIdTopicsAnswer> {
  return request(`/users/me/${channel}/topics`, { params: { allow_empty_topic_name: true } });
}

export function renderMarkdown(content: string): Promise<answers.PostMessagesRenderAnswer> {
  return request("/messages/render", { method: "POST", params: { content }, repeatable: true });
}

export function changeSetting(params: Record<string, unknown>): Promise<unknown> {
  return request("/settings", { method: "PATCH", params });
}

export function setTopicPolicy(channel: number, topic: string, policy: number): Promise<unknown> {
  const params = { stream_id: channel, topic, visibility_policy: policy };
  return request("/user_topics", { method: "POST", params });
}

interface SubscriptionChange {
  stream_id: number;
  property: string;
  value: unknown;
}

export function changeSubscription(...changes: SubscriptionChange[]): Promise<unknown> {
  return request("/users/me/subscriptions/properties", { method: "POST", params: { subscription_data: changes } });
}

interface TypingNotice {
  op: "start" | "stop";
  to: Destination;
}

export function sendTyping(n: TypingNotice): Promise<unknown> {
  const place =
    "channel" in n.to
      ? { type: "channel", stream_id: n.to.channel, topic: n.to.topic }
      : { type: "direct", to: n.to.people };
  return request("/typing", { method: "POST", params: { op: n.op, ...place } });
}

// sendPresence also returns the presence of others, of some users if they are given.
export function sendPresence(status: "active" | "idle", last: number, input: boolean, of?: number[]): Promise<answers.PostUsersMePresenceAnswer> {
  const params = { status, ping_only: false, new_user_input: input, last_update_id: last, slim_presence: true, presence_user_ids: of };
  return request("/users/me/presence", { method: "POST", params, repeatable: true });
}
