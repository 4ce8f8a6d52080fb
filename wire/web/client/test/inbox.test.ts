// The inbox lists the conversations with unread messages that the choice of topics and the filter let through.
import assert from "node:assert/strict";
import { test } from "node:test";
import { TopicPolicy } from "../src/api/types.ts";
import { setTopicPolicy } from "../src/store/state.ts";
import { change } from "../src/store/store.ts";
import { inboxFolders, unreadOf, type TopicChoice } from "../src/views/inbox_data.ts";

const people = [
  [1, "Ann Lee"],
  [2, "Bo Park"],
] as const;

const channels = [
  { stream_id: 10, name: "general", folder_id: null },
  { stream_id: 11, name: "garden", folder_id: 5 },
  { stream_id: 12, name: "board", folder_id: null, pin_to_top: true },
  { stream_id: 13, name: "noise", folder_id: null, is_muted: true },
];

change((c) => {
  const s = c.state;
  for (const [user_id, full_name] of people) s.users.set(user_id, { user_id, full_name } as never);
  s.me.user_id = 1;
  for (const x of channels) {
    s.channels.set(x.stream_id, x as never);
    s.subscriptions.set(x.stream_id, { is_muted: false, pin_to_top: false, ...x } as never);
  }
  s.folders.set(5, { id: 5, name: "Outside", order: 3 } as never);
  const topics = [
    { stream_id: 10, topic_name: "✔ lamp", visibility_policy: TopicPolicy.muted },
    { stream_id: 11, topic_name: "bees", visibility_policy: TopicPolicy.followed },
  ];
  for (const x of topics) setTopicPolicy(s, x as never);
  s.unread.add(1, { people: "2" }, false);
  s.unread.add(2, { channel: 10, topic: "Lunch" }, false);
  s.unread.add(3, { channel: 10, topic: "Lunch" }, true);
  s.unread.add(4, { channel: 10, topic: "✔ lamp" }, false);
  s.unread.add(5, { channel: 11, topic: "bees" }, false);
  s.unread.add(6, { channel: 12, topic: "budget" }, false);
  s.unread.add(7, { channel: 13, topic: "chatter" }, false);
  c.touch("unread");
});

function listed(choice: TopicChoice, filter = ""): string[] {
  return inboxFolders(choice, filter).flatMap((f) => [f.title, ...f.sections.flatMap((x) => [`#${x.title}`, ...x.rows.map((row) => row.label)])]);
}

test("the standard view has no muted topics, and groups channels: pinned ones, folders, others", () => {
  assert.deepEqual(listed("unmuted"), [
    ...["", "#Direct messages", "Bo Park"],
    ...["Pinned channels", "#board", "budget"],
    ...["Outside", "#garden", "bees"],
    ...["Other channels", "#general", "Lunch"],
  ]);
});

test("all topics are listed with the muted channels last, or only the followed ones", () => {
  assert.deepEqual(listed("all").slice(9), ["Other channels", "#general", "Lunch", "lamp", "#noise", "chatter"]);
  assert.deepEqual(listed("followed"), ["", "#Direct messages", "Bo Park", "Outside", "#garden", "bees"]);
});

test("a muted topic with a mention is in the standard view", () => {
  change((c) => c.state.unread.add(7, { channel: 13, topic: "chatter" }, true));
  assert.deepEqual(listed("unmuted").slice(-2), ["#noise", "chatter"]);
  change((c) => c.state.unread.add(7, { channel: 13, topic: "chatter" }, false));
});

test("all words of the filter are in the names of a channel and its topic, or of people", () => {
  assert.deepEqual(listed("unmuted", "gen LUN"), ["", "#general", "Lunch"]);
  assert.deepEqual(listed("unmuted", "bo"), ["", "#Direct messages", "Bo Park", "Pinned channels", "#board", "budget"]);
  assert.deepEqual(listed("unmuted", "lunch garden"), []);
});

test("without folders in the inbox their channels are among the others", () => {
  change((c) => (c.state.settings = { ...c.state.settings, web_inbox_show_channel_folders: false }));
  assert.deepEqual(listed("unmuted").slice(6), ["Other channels", "#garden", "bees", "#general", "Lunch"]);
});

test("the unread messages of a channel are those of its rows", () => {
  const general = inboxFolders("unmuted", "general").flatMap((f) => f.sections);
  assert.deepEqual(unreadOf(general), [2, 3]);
});
