// Actions of the user with messages. Each changes the state at once and sends a request; if the request fails, a notice
// shows the error, and the change is undone.
import { errorText } from "../api/client.ts";
import * as api from "../api/endpoints.ts";
import type { EmojiChoice, Message, Reaction, Term } from "../api/types.ts";
import { plural } from "../i18n/text.ts";
import { notify } from "./notices.ts";
import { afterCatchUp } from "./connection.ts";
import { recipientIDs } from "./narrow.ts";
import { flags as applyFlags, reaction as applyReaction, reactionKey, type UnreadDetails } from "./reducers_messages.ts";
import { change, peek } from "./store.ts";

const readPause = 400; // milliseconds in which messages are collected
const readBatch = 1000; // messages of one request

let reading: Promise<unknown> = Promise.resolve(); // in flight: the last request that marks messages as read
let readTimer: ReturnType<typeof setTimeout> | undefined; // in flight

// setFlag changes a flag in the state as the event will.
function setFlag(op: "add" | "remove", flag: string, ids: number[]): void {
  if (op === "add") return change((c) => applyFlags(c, { op, flag, messages: ids, all: false }));
  const message_details: Record<string, UnreadDetails> = {};
  for (const id of ids) {
    const m = peek().messages.get(id);
    if (m) message_details[id] = unreadDetails(m);
  }
  const messages = flag === "read" ? ids.filter((id) => message_details[id]) : ids;
  change((c) => applyFlags(c, { op, flag, messages, message_details }));
}

function unreadDetails(m: Message): UnreadDetails {
  const mentioned = m.flags.includes("mentioned");
  if (m.type === "stream") return { type: "stream", stream_id: m.stream_id!, topic: m.subject, mentioned };
  return { type: "private", user_ids: recipientIDs(m), mentioned };
}

// markRead marks messages as read. The server is told a moment later, for many messages at once.
export function markRead(ids: Iterable<number>): void {
  const fresh = [...ids].filter((id) => peek().unread.places.has(id));
  if (fresh.length === 0) return;
  setFlag("add", "read", fresh);
  for (const id of fresh) peek().unsentReads.add(id);
  readTimer ??= setTimeout(() => void flushRead(), readPause);
}

async function flushRead(): Promise<void> {
  readTimer = undefined;
  const ids = [...peek().unsentReads].slice(0, readBatch);
  if (ids.length === 0) return;
  for (const id of ids) peek().unsentReads.delete(id);
  const asked = reading.then(() => api.changeFlags("add", "read", ids));
  reading = asked.catch(() => {});
  try {
    await asked;
  } catch {
    // Again when the server is back, without those that the user has marked as unread since.
    for (const id of ids) if (!peek().unread.places.has(id)) peek().unsentReads.add(id);
    return;
  }
  if (peek().unsentReads.size) readTimer ??= setTimeout(() => void flushRead(), readPause);
}

afterCatchUp(() => {
  // A new registration does not contain the marks that this page has not sent yet.
  setFlag("add", "read", [...peek().unsentReads]);
  readTimer ??= setTimeout(() => void flushRead(), 0);
});

// attempt waits for a request. If it fails, attempt calls undo, shows the failure and returns undefined.
export async function attempt<T>(work: Promise<T>, undo?: () => void): Promise<T | undefined> {
  try {
    return await work;
  } catch (err) {
    undo?.();
    notify(errorText(err), "error");
    return undefined;
  }
}

// markUnread marks messages as unread. Reading them may not have been sent yet, or is on its way: it must not win.
export function markUnread(ids: number[]): void {
  for (const id of ids) peek().unsentReads.delete(id);
  for (const id of ids) if (!peek().unread.places.has(id)) peek().ownUnread.add(id);
  setFlag("remove", "read", ids);
  void attempt(reading.then(() => api.changeFlags("remove", "read", ids)), () => {
    takeOwnUnread(ids);
    setFlag("add", "read", ids);
  });
}

// takeOwnUnread reports whether this page has marked the messages of an event as unread, and forgets that.
export function takeOwnUnread(ids: number[]): boolean {
  return ids.filter((id) => peek().ownUnread.delete(id)).length === ids.length;
}

// markNarrow marks all messages of a narrow as read, or as unread.
export function markNarrow(op: "add" | "remove", terms: Term[]): void {
  void attempt(changeAll(op, terms)).then((count) => {
    if (count !== undefined) notify(plural(count, "{count} message was changed.", "{count} messages were changed."));
  });
}

// changeAll goes from the newest message to the oldest. One request changes only some thousand messages.
async function changeAll(op: "add" | "remove", terms: Term[]): Promise<number> {
  let count = 0;
  const narrow = op === "add" ? [...terms, { operator: "is", operand: "unread" }] : terms;
  for (let anchor: number | "newest" = "newest"; ; ) {
    const a = await api.changeFlagsOfNarrow(op, "read", narrow, anchor);
    count += a.updated_count;
    if (a.found_oldest || a.first_processed_id === null) return count;
    anchor = a.first_processed_id;
  }
}

export function toggleStar(m: Message): void {
  toggleFlag(m, "starred");
}

// toggleCollapsed hides or shows the text of a message.
export function toggleCollapsed(m: Message): void {
  toggleFlag(m, "collapsed");
}

const lastRequest = new Map<number, Promise<unknown>>(); // in flight: of each message

// inOrder sends the requests about one message one after the other: a star that is set and removed at once would be set in
// the end if the second request overtook the first.
function inOrder<T>(id: number, ask: () => Promise<T>): Promise<T> {
  const work = (lastRequest.get(id) ?? Promise.resolve()).then(ask, ask);
  lastRequest.set(id, work);
  const ended = (): void => void (lastRequest.get(id) === work && lastRequest.delete(id));
  work.then(ended, ended);
  return work;
}

function toggleFlag(m: Message, flag: string): void {
  const op = m.flags.includes(flag) ? "remove" : "add";
  setFlag(op, flag, [m.id]);
  void attempt(inOrder(m.id, () => api.changeFlags(op, flag, [m.id])), () => setFlag(op === "add" ? "remove" : "add", flag, [m.id]));
}

// toggleReaction adds or removes the user's own reaction.
export function toggleReaction(m: Message, emoji: EmojiChoice): void {
  const own: Reaction = { ...emoji, user_id: peek().me.user_id };
  const op = m.reactions.some((r) => reactionKey(r) === reactionKey(own)) ? "remove" : "add";
  const apply = (op: "add" | "remove"): void => change((c) => applyReaction(c, { ...own, op, message_id: m.id }));
  apply(op);
  void attempt(inOrder(m.id, () => api.react(op, m.id, emoji)), () => apply(op === "add" ? "remove" : "add"));
}

export function remove(id: number): Promise<unknown> {
  return attempt(api.deleteMessage(id));
}
