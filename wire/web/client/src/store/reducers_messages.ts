// Reducers of messages: their arrival, edits, moves, deletion, flags, reactions, and typing notices.
import type { EventOf, Message, Reaction } from "../api/types.ts";
import { dropMessages, newMessage, refilter } from "./lists.ts";
import { conversationOfMessage, placeKey, recipientIDs, resolvedMark, type Conversation, type Matched } from "./narrow.ts";
import { unknownOp, type Reducer } from "./reducer.ts";
import { peopleKey, type Change, type State } from "./state.ts";
import { getOrInsert, type Place } from "./unread.ts";

export const arrived: Reducer<"message"> = (c, e) => {
  const s = c.state;
  const m: Message = { ...e.message, flags: e.flags };
  s.queue.newest = Math.max(s.queue.newest, m.id);
  if (m.stream_id !== undefined && !s.channels.has(m.stream_id)) return; // the notice of an archived channel
  s.messages.set(m.id, m);
  c.touch("messages");
  if (!m.flags.includes("read")) addUnread(c, m);
  if (m.flags.includes("starred")) {
    s.starred.add(m.id);
    c.touch("starred");
  }
  recordNewest(c, m);
  newMessage(c, m);
  stopTyping(c, m);
  if (e.local_message_id !== undefined && s.outgoing.delete(e.local_message_id)) {
    s.arrived = { localID: e.local_message_id, id: m.id };
    c.touch("outgoing");
  }
};

function placeOf(m: Message, me: number): Place {
  if (m.type === "stream") return { channel: m.stream_id!, topic: m.subject };
  return { people: peopleKey(recipientIDs(m), me) };
}

function addUnread(c: Change, m: Message): void {
  c.state.unread.add(m.id, placeOf(m, c.state.me.user_id), mentionsMe(m.flags));
  c.touch("unread");
}

// mentionsMe reports whether the flags of a message say that it mentions the user.
function mentionsMe(flags: string[]): boolean {
  return flags.some((f) => f === "mentioned" || f === "stream_wildcard_mentioned" || f === "topic_wildcard_mentioned");
}

// recordNewest records the message as the newest one of its topic or direct conversation.
export function recordNewest(c: Change, m: Message): void {
  const place = placeOf(m, c.state.me.user_id);
  if ("people" in place) {
    if ((c.state.conversations.get(place.people) ?? -1) < m.id) {
      c.state.conversations.set(place.people, m.id);
      c.touch("conversations");
    }
    return;
  }
  const topics = c.state.topics.get(place.channel);
  if (!topics) return;
  const topic = topics.get(place.topic.toLowerCase());
  if (!topic || topic.max_id < m.id) topics.set(place.topic.toLowerCase(), { name: place.topic, max_id: m.id });
  c.touch("topics");
}

export const updated: Reducer<"update_message"> = (c, e) => {
  const id = e.message_id;
  const { rendered_content } = e;
  const edited = !e.rendering_only;
  if (rendered_content !== undefined) {
    changeMessage(c, id, (m) => ({
      ...m,
      content: rendered_content,
      is_me_message: e.is_me_message ?? false,
      last_edit_timestamp: edited ? e.edit_timestamp : m.last_edit_timestamp,
      flags: edited ? e.flags : m.flags,
    }));
    if (edited) setMentioned(c, id, e.flags);
  }
  if (isMove(e)) moved(c, e);
  else refilter(c, [id]);
};

type Update = EventOf<"update_message">;

// Move is an event about messages that were moved from a channel, to another one or to another topic.
export type Move = Extract<Update, { orig_subject: string }>;

export function isMove(e: Update): e is Move {
  return "orig_subject" in e;
}

function moved(c: Change, e: Move): void {
  // The destination of messages that are not known here is enough to find the lists that they belong to.
  let to: Matched = {
    id: e.message_id,
    type: "stream",
    stream_id: e.new_stream_id ?? e.stream_id,
    subject: e.subject ?? e.orig_subject,
    flags: e.flags,
    sender_id: 0,
    display_recipient: "",
  };
  for (const id of e.message_ids) {
    moveUnread(c, id, e);
    changeMessage(c, id, (m) => (to = movedMessage(c.state, m, e)));
  }
  c.state.topics.delete(e.stream_id);
  if (e.new_stream_id !== undefined) c.state.topics.delete(e.new_stream_id);
  c.touch("topics");
  refilter(c, e.message_ids, to);
}

function setMentioned(c: Change, id: number, flags: string[]): void {
  if (!c.state.unread.places.has(id)) return;
  if (mentionsMe(flags)) c.state.unread.mentions.add(id);
  else c.state.unread.mentions.delete(id);
  c.touch("unread");
}

function moveUnread(c: Change, id: number, e: Move): void {
  const u = c.state.unread;
  const place = u.places.get(id);
  if (!place || !("channel" in place)) return;
  const channel = e.new_stream_id ?? place.channel;
  // Messages in channels without a subscription count as read.
  if (!c.state.subscriptions.has(channel)) u.remove(id);
  else u.add(id, { channel, topic: e.subject ?? place.topic }, u.mentions.has(id));
  c.touch("unread");
}

function movedMessage(s: State, m: Message, e: Move): Message {
  const now: Message = { ...m };
  if (e.subject !== undefined) {
    now.subject = e.subject;
    now.topic_links = e.topic_links ?? [];
  }
  if (e.new_stream_id !== undefined) {
    now.stream_id = e.new_stream_id;
    now.display_recipient = s.channels.get(e.new_stream_id)?.name ?? "";
  }
  if (e.new_stream_id !== undefined || e.subject === undefined || !isResolution(e.orig_subject, e.subject)) now.last_moved_timestamp = e.edit_timestamp;
  return now;
}

// isResolution reports whether a change of topic only adds or removes the mark of resolved topics, which is no move.
function isResolution(from: string, to: string): boolean {
  return from.replace(resolvedMark, "") === to || to.replace(resolvedMark, "") === from;
}

// changeMessage replaces a message, if it is known.
function changeMessage(c: Change, id: number, change: (m: Message) => Message): void {
  const m = c.state.messages.get(id);
  if (!m) return;
  c.state.messages.set(id, change(m));
  c.touch("messages");
}

// deletedIn returns the messages that an event says are deleted.
export function deletedIn(e: EventOf<"delete_message">): number[] {
  return "message_ids" in e ? e.message_ids : [e.message_id];
}

export const deleted: Reducer<"delete_message"> = (c, e) => {
  const ids = deletedIn(e);
  for (const id of ids) {
    c.state.unread.remove(id);
    c.state.starred.delete(id);
  }
  c.touch("unread");
  c.touch("starred");
  if (e.message_type === "stream" && c.state.topics.delete(e.stream_id)) c.touch("topics");
  dropMessages(c, ids);
};

export type UnreadDetails =
  | { type: "stream"; stream_id: number; topic: string; mentioned?: boolean }
  | { type: "private"; user_ids: number[]; mentioned?: boolean };

// FlagChange is what an event says about flags.
type FlagChange =
  | { op: "add"; flag: string; messages: number[]; all: boolean }
  | { op: "remove"; flag: string; messages: number[]; message_details?: Record<string, UnreadDetails> };

export const flags = (c: Change, e: FlagChange): void => {
  const s = c.state;
  const { flag } = e;
  if (e.op !== "add" && e.op !== "remove") unknownOp(e);
  if (e.op === "add" && e.all && flag === "read") {
    s.unread.clear();
    c.touch("unread");
    for (const id of s.messages.keys()) changeMessage(c, id, (m) => withFlag(m, "read", true));
    return;
  }
  for (const id of e.messages) {
    changeMessage(c, id, (m) => withFlag(m, flag, e.op === "add"));
    if (flag === "starred") {
      if (e.op === "add") s.starred.add(id);
      else s.starred.delete(id);
      c.touch("starred");
    } else if (flag === "read" && e.op === "add") {
      s.unread.remove(id);
    } else if (flag === "read" && e.op === "remove") {
      const d = e.message_details?.[id];
      if (!d) throw new Error(`message ${id} is unread again, without message_details`);
      const place = d.type === "private" ? { people: peopleKey(d.user_ids, s.me.user_id) } : { channel: d.stream_id, topic: d.topic };
      s.unread.add(id, place, d.mentioned === true);
    }
  }
  if (flag === "read") c.touch("unread");
  if (flag === "starred") refilter(c, e.messages);
};

function withFlag(m: Message, flag: string, on: boolean): Message {
  if (m.flags.includes(flag) === on) return m;
  return { ...m, flags: on ? [...m.flags, flag] : m.flags.filter((f) => f !== flag) };
}

export function reactionKey(r: Reaction): string {
  return `${r.user_id} ${r.reaction_type} ${r.emoji_code}`;
}

// reaction applies an event, or what it will say.
export const reaction = (c: Change, e: Reaction & { op: "add" | "remove"; message_id: number }): void => {
  const { user_id, emoji_name, emoji_code, reaction_type, op } = e;
  if (op !== "add" && op !== "remove") unknownOp(op);
  const own: Reaction = { user_id, emoji_name, emoji_code, reaction_type };
  changeMessage(c, e.message_id, (m) => {
    const rest = m.reactions.filter((r) => reactionKey(r) !== reactionKey(own));
    return { ...m, reactions: op === "add" ? [...rest, own] : rest };
  });
};

export const submessage: Reducer<"submessage"> = (c, e) => {
  const { submessage_id, message_id, sender_id, msg_type, content } = e;
  changeMessage(c, message_id, (m) => ({
    ...m,
    submessages: [...m.submessages, { id: submessage_id, message_id, sender_id, msg_type, content }],
  }));
};

export const typing: Reducer<"typing"> = (c, e) => {
  const place: Conversation =
    e.message_type === "stream" ? { channel: e.stream_id, topic: e.topic } : { people: e.recipients.map((r) => r.user_id) };
  setTyping(c.state.typing, placeKey(place, c.state.me.user_id), e.sender.user_id, typingUntil(c, e));
  c.touch("typing");
};

// typingUntil returns the time in milliseconds until which a notice counts, 0 if the user has stopped.
function typingUntil(c: Change, e: EventOf<"typing">): number {
  if (e.op === "stop") return 0;
  if (e.op !== "start") unknownOp(e);
  return c.now + (c.state.realm.server_typing_started_expiry_period_milliseconds ?? 15_000);
}

function setTyping<K>(map: Map<K, Map<number, number>>, key: K, user: number, until: number): void {
  const users = getOrInsert(map, key, () => new Map<number, number>());
  if (until) users.set(user, until);
  else users.delete(user);
  if (users.size === 0) map.delete(key);
}

function stopTyping(c: Change, m: Message): void {
  const me = c.state.me.user_id;
  const key = placeKey(conversationOfMessage(m, me), me);
  if (!c.state.typing.has(key)) return;
  setTyping(c.state.typing, key, m.sender_id, 0);
  c.touch("typing");
}
