// The store applies every event that the server can send. events.jsonl has an example of each; a test in Go makes it
// from the server's own descriptions of its events. In the examples every id is 1 and every text is "text".
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { Message, RegisterAnswer, ServerEvent } from "../src/api/types.ts";
import { apply } from "../src/store/reducers.ts";
import { fromRegister, type State } from "../src/store/state.ts";

const events = readFileSync("test/events.jsonl", "utf8").split("\n").filter(Boolean).map((x) => JSON.parse(x) as ServerEvent);

// Of these the page shows nothing; of calls, a window rings that is outside of the store.
const notShown = new Set(["call", "default_stream_groups", "device", "navigation_view", "typing_edit_message"]);

// withoutEffect returns why an event changes nothing in the store, "" if it must change something.
function withoutEffect(e: ServerEvent): string {
  if (e.type === "heartbeat") return "it only answers a poll";
  if (e.type === "web_reload_client") return "the loop of the queue reads it";
  if (e.type === "muted_topics") return "user_topic says the same";
  if (e.type === "subscription" && e.op === "update" && e.property === "in_home_view") return "is_muted says the same";
  if (notShown.has(e.type)) return "the page does not show it";
  if (e.type === "user_status" && !("status_text" in e)) return "it names no field";
  return "";
}

// registration describes an organization in which the things that the examples name exist, with other values. The user
// has the id 9, so that the examples are about another one.
function registration(): RegisterAnswer {
  const channel = { stream_id: 1, name: "old", color: "old", is_muted: false, pin_to_top: false, subscribers: [8, 9], subscriber_count: 2, folder_id: null };
  const person = { full_name: "old", email: "old", is_active: true, is_bot: false, role: 400, profile_data: { 7: { value: "old" } } };
  const unread = { unread_message_ids: [1], topic: "old", stream_id: 1 };
  return {
    queue_id: "q",
    last_event_id: 0,
    user_id: 9,
    realm_users: [{ user_id: 1, ...person }, { user_id: 9, ...person }],
    realm_bots: [{ user_id: 1, default_sending_stream: "old" }],
    realm_user_groups: [{ id: 1, name: "old", members: [8], direct_subgroup_ids: [8], is_system_group: false }],
    streams: [channel],
    subscriptions: [channel],
    channel_folders: [{ id: 1, name: "old", order: 7 }],
    user_topics: [],
    drafts: [{ id: 1, content: "old" }],
    scheduled_messages: [{ scheduled_message_id: 1, content: "old" }],
    reminders: [{ reminder_id: 1 }],
    saved_snippets: [{ id: 1, content: "old" }],
    realm_emoji: { text: { id: "text", name: "old", deactivated: false } },
    realm_domains: [{ domain: "text", allow_subdomains: false }],
    starred_messages: [1],
    user_status: { 1: { status_text: "old" } },
    muted_users: [],
    user_settings: {},
    realm_user_settings_defaults: {},
    unread_msgs: { count: 1, pms: [], streams: [unread], huddles: [], mentions: [], old_unreads_missing: false },
  } as unknown as RegisterAnswer;
}

// before returns the state in which an event has something to change.
function before(e: ServerEvent): State {
  const s = fromRegister(registration());
  const message = { id: 1, type: "stream", stream_id: 1, subject: "old", sender_id: 8, content: "old", timestamp: 1, submessages: [], flags: ["text"] };
  const own = { user_id: 1, emoji_name: "text", emoji_code: "text", reaction_type: "unicode_emoji" };
  const reactions = e.type === "reaction" && e.op === "remove" ? [own] : [];
  if (e.type !== "message") s.messages.set(1, { ...message, reactions } as unknown as Message);
  if (e.type === "user_group" || e.type === "subscription") changeMembers(s, e.op);
  if ("op" in e && e.op === "stop") startTyping(s, e);
  if (e.type === "realm_user" && "is_active" in e.person && e.person.is_active) s.users.set(1, { ...s.users.get(1)!, is_active: false });
  if (e.type === "update_message_flags" && e.op === "add") s.messages.set(1, { ...s.messages.get(1)!, flags: [] });
  if (e.type === "update_message_flags" && e.op === "remove") s.starred.add(1);
  return s;
}

// changeMembers puts the user of the examples into the group and the channel, if the event removes it.
function changeMembers(s: State, op: string | undefined): void {
  if (op !== "peer_remove" && !op?.startsWith("remove_")) return;
  s.members.get(1)!.ids.add(1);
  const g = s.groups.get(1)!;
  s.groups.set(1, { ...g, members: [1], direct_subgroup_ids: [1] });
}

function startTyping(s: State, e: ServerEvent): void {
  apply(s, [{ ...e, op: "start" } as ServerEvent], 1, (_, err) => assert.fail(String(err)));
}

// plain returns a copy of the state that can be compared.
function plain(s: State): string {
  const { queue: _, ...rest } = s;
  const each = (_: string, v: unknown): unknown => (v instanceof Map || v instanceof Set ? [...v] : v);
  return JSON.stringify(rest, each);
}

function applied(s: State, e: ServerEvent): { parts: string[]; failed: unknown[] } {
  const failed: unknown[] = [];
  const parts = [...apply(s, [structuredClone(e)], 1, (_, err) => failed.push(err))];
  return { parts, failed };
}

test("the store applies every event that the server can send", () => {
  assert.ok(events.length > 200, `${events.length} examples`);
  for (const e of events) {
    const s = before(e);
    const old = plain(s);
    const { parts, failed } = applied(s, e);
    const text = JSON.stringify(e);
    assert.deepEqual(failed, [], text);
    if (withoutEffect(e)) {
      assert.equal(plain(s), old, text);
      continue;
    }
    assert.notDeepEqual(parts, [], `no component is drawn again: ${text}`);
    assert.ok(plain(s) !== old, `nothing changed: ${text}`);
  }
});

test("an op that is not in the examples is reported", () => {
  const withOp = new Set(events.filter((e) => "op" in e && !notShown.has(e.type)).map((e) => e.type));
  for (const type of withOp) {
    const e = events.find((x) => x.type === type)!;
    const { failed } = applied(before(e), { ...e, op: "no_such_op" } as unknown as ServerEvent);
    assert.equal(failed.length, 1, `${type}: an unknown op is ignored`);
  }
});
