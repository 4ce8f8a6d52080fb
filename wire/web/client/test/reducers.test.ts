import assert from "node:assert/strict";
import { test } from "node:test";
import type { EventType, Message, RegisterAnswer, ServerEvent } from "../src/api/types.ts";
import { apply } from "../src/store/reducers.ts";
import { openList } from "../src/store/lists.ts";
import { mayBeOutgoing, type Outgoing } from "../src/store/outgoing.ts";
import { hashOf, termsOf } from "../src/store/narrow.ts";
import { fromRegister, type Change, type State } from "../src/store/state.ts";

// start is the state of user 10 with one channel.
function start(): State {
  const unread_msgs = { count: 0, pms: [], streams: [], huddles: [], mentions: [], old_unreads_missing: false };
  const channel = { stream_id: 1, name: "general", subscribers: [10, 11], subscriber_count: 2, color: "#aabbcc", is_muted: false };
  return fromRegister({
    queue_id: "q",
    last_event_id: -1,
    user_id: 10,
    realm_users: [
      { user_id: 10, full_name: "Ann", email: "ann@example.org" },
      { user_id: 11, full_name: "Bo Park", email: "bo@example.org" },
    ],
    streams: [channel],
    subscriptions: [channel],
    user_settings: {},
    unread_msgs,
  } as unknown as RegisterAnswer);
}

function message(id: number, subject: string, more: Partial<Message> = {}): Message {
  const base = { id, type: "stream", stream_id: 1, subject, sender_id: 11, timestamp: id, content: "", display_recipient: "general" };
  return { ...base, reactions: [], submessages: [], flags: [], ...more } as unknown as Message;
}

let last = 0;

function send(s: State, ...events: { type: EventType; [member: string]: unknown }[]): void {
  const numbered = events.map((e) => ({ id: last++, ...e }) as unknown as ServerEvent);
  apply(s, numbered, 0, (e, err) => assert.fail(`${e.type}: ${String(err)}`));
}

function change(s: State): Change {
  return { state: s, now: 0, touch() {} };
}

test("a message arrives in the lists that it belongs to, and is unread until it is marked", () => {
  const s = start();
  const topic = openList(change(s), termsOf("#narrow/channel/1-general/topic/lunch", s)!);
  const other = openList(change(s), termsOf("#narrow/channel/1-general/topic/other", s)!);
  for (const l of [topic, other]) s.lists.set(l.key, { ...l, foundNewest: true, foundOldest: true });
  send(s, { type: "message", message: message(5, "Lunch"), flags: [] });
  assert.deepEqual(s.lists.get(topic.key)!.ids, [5]);
  assert.deepEqual(s.lists.get(other.key)!.ids, []);
  assert.equal(s.unread.inTopic(1, "lunch").size, 1);
  send(s, { type: "update_message_flags", op: "add", flag: "read", messages: [5], all: false });
  assert.equal(s.unread.places.size, 0);
  assert.deepEqual(s.messages.get(5)!.flags, ["read"]);
});

test("messages of a private channel that were read without a subscription are fetched again after subscribing", () => {
  const s = start();
  const list = openList(change(s), termsOf("#narrow/channel/1-general/topic/lunch", s)!);
  s.lists.set(list.key, { ...list, foundNewest: true, foundOldest: true });
  const hidden = { ...s.channels.get(1)!, invite_only: true, subscribers: [10, 11], color: "#aabbcc", is_muted: false };
  send(s, { type: "message", message: message(5, "Lunch"), flags: [] });
  s.subscriptions.delete(1); // a setting lets the user read the channel
  send(s, { type: "subscription", op: "add", subscriptions: [hidden] });
  assert.equal(s.messages.has(5), false);
  assert.equal(s.lists.get(list.key)!.stale, true);
  assert.deepEqual(s.lists.get(list.key)!.ids, []);
});

test("moved messages change lists and stay unread in their new topic", () => {
  const s = start();
  const from = openList(change(s), termsOf("#narrow/channel/1/topic/a", s)!);
  const to = openList(change(s), termsOf("#narrow/channel/1/topic/b", s)!);
  for (const l of [from, to]) s.lists.set(l.key, { ...l, foundNewest: true, foundOldest: true });
  send(s, { type: "message", message: message(5, "a"), flags: [] });
  send(s, {
    type: "update_message",
    message_id: 5,
    message_ids: [5],
    stream_id: 1,
    orig_subject: "a",
    subject: "b",
    edit_timestamp: 9,
    flags: [],
    rendering_only: false,
    topic_links: [],
  });
  assert.deepEqual(s.lists.get(from.key)!.ids, []);
  assert.deepEqual(s.lists.get(to.key)!.ids, [5]);
  assert.equal(s.unread.inTopic(1, "a").size, 0);
  assert.equal(s.unread.inTopic(1, "b").size, 1);
  assert.equal(s.messages.get(5)!.last_moved_timestamp, 9);
});

test("the own message that arrives replaces the one that is being sent", () => {
  const s = start();
  s.outgoing.set("7", { localID: "7", queue: "q", to: { channel: 1, topic: "a" }, content: "x", timestamp: 1, state: "unknown" });
  send(s, { type: "message", message: message(5, "a", { sender_id: 10 }), flags: ["read"], local_message_id: "7" });
  assert.equal(s.outgoing.size, 0);
});

const to = { channel: 1, topic: "a" };
const o: Outgoing = { localID: "7", queue: "q", to, content: "x", timestamp: 1, state: "sending" };

test("a fetched message that may be the one being sent is not shown until the answer or the event has come", () => {
  const s = start();
  send(s, { type: "message", message: message(4, "a"), flags: [] });
  const own = message(5, "a", { sender_id: 10 });
  assert.ok(mayBeOutgoing(own, [o], s));
  assert.ok(mayBeOutgoing(own, [{ ...o, state: "unknown" }], s), "the answer was lost");
  assert.ok(!mayBeOutgoing(message(5, "a"), [o], s), "another user sent it");
  assert.ok(!mayBeOutgoing(message(3, "a", { sender_id: 10 }), [o], s), "the queue has had later ones");
  assert.ok(!mayBeOutgoing(own, [{ ...o, state: "sent", id: 5 }], s), "the answer has come");
  assert.ok(!mayBeOutgoing(own, [{ ...o, state: "failed" }], s), "the server has refused it");
  assert.ok(!mayBeOutgoing(own, [], s));
  send(s, { type: "message", message: own, flags: ["read"] });
  assert.ok(!mayBeOutgoing(own, [o], s), "it came from another session");
});

test("the messages that a registration knows are not held back", () => {
  const s = fromRegister({ queue_id: "q", last_event_id: -1, user_id: 10, max_message_id: 5 });
  assert.ok(!mayBeOutgoing(message(5, "a", { sender_id: 10 }), [o], s));
  assert.ok(mayBeOutgoing(message(6, "a", { sender_id: 10 }), [o], s));
});

test("an event that fails does not keep the later ones from being applied", () => {
  const s = start();
  const failed: string[] = [];
  const events = [
    { id: 100, type: "user_group", op: "update", group_id: 99, data: {} },
    { id: 101, type: "no_such_event" },
    { id: 102, type: "alert_words", alert_words: ["lunch"] },
  ] as unknown as ServerEvent[];
  apply(s, events, 0, (e) => failed.push(e.type));
  assert.deepEqual(failed, ["user_group", "no_such_event"]);
  assert.deepEqual(s.alertWords, ["lunch"]);
  assert.equal(s.queue.last, 102);
});

test("addresses of narrows are those of Zulip, in both directions", () => {
  const s = start();
  const cases: [string, string][] = [
    ["#narrow/channel/1-general/topic/a.20b.2Fc", ""],
    ["#narrow/dm/11-Bo-Park", ""],
    ["#narrow/is/starred", ""],
    ["#narrow/channel/1-general/topic/x/near/17", ""],
    ["#narrow/stream/1-general/subject/x", "#narrow/channel/1-general/topic/x"],
    ["#narrow/pm-with/10,11-group", "#narrow/dm/10.2C11-group"],
    ["#narrow/-sender/11/search/a.20b", "#narrow/-sender/11-Bo-Park/search/a.20b"],
  ];
  for (const [hash, canonical] of cases) assert.equal(hashOf(termsOf(hash, s)!, s), canonical || hash);
});
