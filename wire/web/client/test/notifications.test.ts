// The rules of notifications: which messages the user is told about, by the settings of the user, channel and topic.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { TopicPolicy, type Message, type RegisterAnswer } from "../src/api/types.ts";
import { badgeCount, notificationKinds } from "../src/notify/reasons.ts";
import { soundNames } from "../src/notify/sounds.ts";
import { fromRegister, type State } from "../src/store/state.ts";

const settings = {
  enable_desktop_notifications: true,
  enable_sounds: true,
  enable_stream_desktop_notifications: false,
  enable_stream_audible_notifications: false,
  enable_followed_topic_desktop_notifications: true,
  enable_followed_topic_audible_notifications: false,
  enable_followed_topic_wildcard_mentions_notify: true,
  wildcard_mentions_notify: true,
};

// start is the state of user 10, with one channel and its settings.
function start(channel: object = {}, user: object = {}): State {
  const c = { stream_id: 1, name: "general", subscribers: [10, 11], color: "#aabbcc", is_muted: false, ...channel };
  const unread_msgs = { count: 0, pms: [], streams: [], huddles: [], mentions: [], old_unreads_missing: false };
  const user_settings = { ...settings, ...user };
  return fromRegister({ queue_id: "q", last_event_id: -1, user_id: 10, streams: [c], subscriptions: [c], user_settings, unread_msgs } as unknown as RegisterAnswer);
}

function message(flags: string[] = [], more: object = {}): Message {
  return { id: 5, type: "stream", stream_id: 1, subject: "lunch", sender_id: 11, flags, content: "", ...more } as unknown as Message;
}

function policy(s: State, visibility_policy: number): State {
  s.topicPolicies.set(1, new Map([["lunch", { stream_id: 1, topic_name: "lunch", last_updated: 0, visibility_policy }]]));
  return s;
}

const cases: [string, State, Message, desktop: boolean, sound: boolean][] = [
  ["a message of a channel", start(), message(), false, false],
  ["a channel that notifies", start({ desktop_notifications: true }), message(), true, false],
  ["a channel with sound", start({ audible_notifications: true }), message(), false, true],
  ["all channels notify", start({}, { enable_stream_desktop_notifications: true }), message(), true, false],
  ["all channels but this", start({ desktop_notifications: false }, { enable_stream_desktop_notifications: true }), message(), false, false],
  ["a mention", start(), message(["mentioned"]), true, true],
  ["a mention in a muted channel", start({ is_muted: true }), message(["mentioned"]), true, true],
  ["everyone in a muted channel", start({ is_muted: true }), message(["stream_wildcard_mentioned"]), false, false],
  ["everyone", start(), message(["stream_wildcard_mentioned"]), true, true],
  ["everyone, switched off for the channel", start({ wildcard_mentions_notify: false }), message(["stream_wildcard_mentioned"]), false, false],
  ["everyone, switched off", start({}, { wildcard_mentions_notify: false }), message(["topic_wildcard_mentioned"]), false, false],
  ["an alert word", start(), message(["has_alert_word"]), true, true],
  ["a followed topic", policy(start(), TopicPolicy.followed), message(), true, false],
  ["a followed topic of a muted channel", policy(start({ is_muted: true }), TopicPolicy.followed), message(), true, false],
  ["a muted topic", policy(start({ desktop_notifications: true }), TopicPolicy.muted), message(), false, false],
  ["a direct message", start(), message([], { type: "private" }), true, true],
  ["a direct message, sounds off", start({}, { enable_sounds: false }), message([], { type: "private" }), true, false],
  ["a direct message, desktop off", start({}, { enable_desktop_notifications: false }), message([], { type: "private" }), false, true],
  ["an own message", start(), message(["mentioned"], { sender_id: 10 }), false, false],
  ["a message that was read", start(), message(["mentioned", "read"]), false, false],
];

for (const [name, s, m, desktop, sound] of cases) {
  test(`notifications: ${name}`, () => assert.deepEqual(notificationKinds(s, m), { desktop, sound }));
}

test("messages of muted users are silent", () => {
  const s = start();
  s.mutedUsers.set(11, 1);
  assert.deepEqual(notificationKinds(s, message(["mentioned"])), { desktop: false, sound: false });
});

test("the number on the icon follows its setting", () => {
  const s = start();
  s.unread.add(1, { people: "11" }, false);
  s.unread.add(2, { channel: 1, topic: "lunch" }, false);
  s.unread.add(3, { channel: 1, topic: "lunch" }, true);
  s.unread.add(4, { channel: 1, topic: "other" }, false);
  const counts = (): number[] => [1, 2, 3, 4].map((n) => badgeCount({ ...s, settings: { desktop_icon_count_display: n } }));
  assert.deepEqual(counts(), [4, 2, 2, 0]);
  policy(s, TopicPolicy.followed);
  assert.deepEqual(counts(), [4, 3, 2, 0]);
  policy(s, TopicPolicy.muted);
  assert.deepEqual(counts(), [2, 2, 2, 0]);
});

test("every sound that the server offers can be played", () => {
  const source = readFileSync("../../../actors/realm/user_settings.go", "utf8");
  const list = /NotificationSounds = \[\]string\{([^}]*)\}/.exec(source)![1]!;
  const names = [...list.matchAll(/"([^"]*)"/g)].map((x) => x[1]!);
  assert.deepEqual(names.filter((n) => !soundNames.includes(n)), []);
  assert.equal(names.length, 30);
});
