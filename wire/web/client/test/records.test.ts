// Random crowds against the real server: actors/mirror_test.go writes records of the registrations and events of
// clients. The store applies the same events, and must then equal the state of a fresh registration. PARLEY_RECORDS is
// the folder of the records; `make web-mirror` makes them.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { registerParams } from "../src/api/endpoints.ts";
import type { Message, RegisterAnswer, ServerEvent } from "../src/api/types.ts";
import { apply } from "../src/store/reducers.ts";
import { reactionKey } from "../src/store/reducers_messages.ts";
import { isTopicMuted, topicPolicy } from "../src/store/narrow.ts";
import { fromRegister, type State } from "../src/store/state.ts";

type Line = { params: typeof registerParams } | { register: RegisterAnswer } | { events: { events: ServerEvent[] } } | { fresh: RegisterAnswer } | { messages: { messages: Message[] } };

const folder = process.env.PARLEY_RECORDS ?? "";

// Parts that belong to this client, or that no event describes completely.
const notCompared = new Set<string>([
  "queue",
  "conversations", // nothing tells that the newest message of a conversation was deleted
  "topics",
  "lists",
  "messages", // compared with an answer of GET /messages
  "outgoing",
  "presences",
  "presenceID",
  "typing",
  "attachments",
  "uploadSpaceUsed",
  "exports",
  "exportConsents",
  "invitesVersion",
  "unread", // compared by itself
]);

const realmNotCompared =
  /^(can_|server_generation|server_timestamp|realm_create_.*_policy|realm_wildcard_mention_policy|jitsi_server_url|realm_allow_edit_history|max_message_id)/;
const fieldsNotCompared = new Set(["stream_weekly_traffic", "first_message_id", "away", "last_updated"]);

// Run is one client of a record.
class Run {
  state!: State;
  unfollowed = new Set<string>(); // parts that change with a role, without events
  discovered = new Set<number>();
  guestsLimited = false;

  register(answer: RegisterAnswer): void {
    this.state = fromRegister(structuredClone(answer));
    this.unfollowed.clear();
    this.discovered.clear();
  }

  events(events: ServerEvent[]): void {
    for (const e of events) this.note(e);
    apply(this.state, events, 0, (e, err) => assert.fail(`${JSON.stringify(e).slice(0, 600)}: ${String(err)}`));
  }

  note(e: ServerEvent): void {
    if (e.type === "realm_user" && e.op === "update" && e.person.user_id === this.state.me.user_id && "role" in e.person) {
      for (const p of ["bots", "defaultChannels", "users.delivery_email", "users", "statuses"]) this.unfollowed.add(p);
    }
    if (e.type === "realm_user" && e.op === "add") this.discovered.add(e.person.user_id);
    if (e.type === "realm" && e.op === "update_dict" && "can_access_all_users_group" in e.data && this.state.me.is_guest) {
      this.unfollowed.add("users");
      this.unfollowed.add("statuses");
    }
  }

  compare(answer: RegisterAnswer): void {
    const mine = plain(this.state);
    const fresh = plain(fromRegister(structuredClone(answer)));
    for (const part of Object.keys(fresh)) {
      if (notCompared.has(part) || this.unfollowed.has(part)) continue;
      this.comparePart(part, mine[part], fresh[part]);
    }
    compareUnread(this.state, fromRegister(structuredClone(answer)));
  }

  comparePart(part: string, mine: unknown, fresh: unknown): void {
    if (part === "realm") {
      for (const [k, v] of Object.entries(fresh as object)) {
        if (!realmNotCompared.test(k)) same((mine as Record<string, unknown>)[k], v, `realm.${k}`);
      }
      return;
    }
    if (part === "statuses") [mine, fresh] = [mine, fresh].map(withoutAway);
    if (part === "topicPolicies") [mine, fresh] = [mine, fresh].map(withoutSpelling);
    if (part === "members") return compareMembers(mine as Table, fresh as Table);
    if (isTable(mine) && isTable(fresh)) {
      const skip = (id: string): boolean => part === "statuses" && (this.discovered.has(Number(id)) || !this.state.users.get(Number(id))?.is_active);
      for (const id of new Set([...Object.keys(mine), ...Object.keys(fresh)])) {
        if (skip(id)) continue;
        const a = mine[id];
        const b = fresh[id];
        assert.ok(a !== undefined, `${part} ${id} is missing; fresh: ${JSON.stringify(b)?.slice(0, 300)}`);
        assert.ok(b !== undefined, `${part} ${id} should not exist: ${JSON.stringify(a)?.slice(0, 300)}`);
        this.compareObject(part, id, a, b);
      }
      return;
    }
    same(mine, fresh, part);
  }

  compareObject(part: string, id: string, a: unknown, b: unknown): void {
    if (!isTable(a) || !isTable(b)) return same(a, b, `${part} ${id}`);
    for (const [k, v] of Object.entries(b)) {
      if (fieldsNotCompared.has(k) || this.unfollowed.has(`${part}.${k}`)) continue;
      if (!(k in a) && (k === "subscriber_count" || part === "users")) continue; // not known after leaving; placeholders
      same(a[k], v, `${part} ${id} ${k}`);
    }
  }

  compareMessages(list: Message[]): void {
    const s = this.state;
    for (const m of list) {
      const mine = s.messages.get(m.id);
      if (!mine) continue;
      for (const k of ["content", "subject", "stream_id", "type", "sender_id", "is_me_message", "last_edit_timestamp", "last_moved_timestamp"] as const) {
        same(mine[k], m[k], `message ${m.id} ${k}`);
      }
      const hidden = m.stream_id !== undefined && !s.subscriptions.has(m.stream_id) && (s.me.is_guest || s.channels.get(m.stream_id)?.invite_only);
      if (!hidden) {
        same(mine.reactions.map(reactionKey).sort(), m.reactions.map(reactionKey).sort(), `message ${m.id} reactions`);
        same(mine.submessages.length, m.submessages?.length ?? 0, `message ${m.id} submessages`);
      }
      const flags = (x: Message): string[] => x.flags.filter((f) => f !== "wildcard_mentioned" && f !== "historical").sort();
      same(flags(mine), flags(m), `message ${m.id} flags`);
    }
  }
}

type Table = Record<string, unknown>;

function isTable(v: unknown): v is Table {
  return typeof v === "object" && v !== null && !Array.isArray(v);
}

// plain turns maps and sets into objects and sorted lists.
function plain(v: unknown): any {
  if (v instanceof Map) return Object.fromEntries([...v].map(([k, x]) => [String(k), plain(x)]));
  if (v instanceof Set) return [...v].sort((a, b) => Number(a) - Number(b)).map(plain);
  if (Array.isArray(v)) {
    const list = v.map(plain);
    return list.every((x) => typeof x === "number") ? list.sort((a, b) => a - b) : list;
  }
  if (isTable(v)) return Object.fromEntries(Object.entries(v).map(([k, x]) => [k, plain(x)]));
  return v;
}

function canonical(v: unknown): string {
  return JSON.stringify(plain(v), (_, x) => (isTable(x) ? Object.fromEntries(Object.entries(x).sort(([a], [b]) => (a < b ? -1 : 1))) : x)) ?? "undefined";
}

function same(a: unknown, b: unknown, what: string): void {
  const [x, y] = [canonical(a), canonical(b)];
  assert.ok(x === y, `${what}: ${x.slice(0, 400)} by events, ${y.slice(0, 400)} by register`);
}

// withoutAway removes the old form of a setting that only its owner gets, and statuses with nothing else.
function withoutAway(statuses: unknown): Table {
  const list = Object.entries(statuses as Record<string, Table>).map(([id, { away: _, ...rest }]): [string, Table] => [id, rest]);
  return Object.fromEntries(list.filter(([, x]) => Object.keys(x).length));
}

// withoutSpelling leaves the policies of topics: names in any spelling mean the same topic.
function withoutSpelling(channels: unknown): Table {
  const policies = (topics: Record<string, Table>): Table =>
    Object.fromEntries(Object.entries(topics).map(([name, x]) => [name, x.visibility_policy]));
  return Object.fromEntries(Object.entries(channels as Record<string, Record<string, Table>>).map(([id, x]) => [id, policies(x)]));
}

// compareMembers compares the channels of which both know all subscribers.
function compareMembers(mine: Table, fresh: Table): void {
  for (const [id, b] of Object.entries(fresh)) {
    const a = mine[id] as { complete: boolean; ids: number[] } | undefined;
    const c = b as { complete: boolean; ids: number[] };
    if (a?.complete && c.complete) same(a.ids, c.ids, `members of channel ${id}`);
  }
}

function compareUnread(mine: State, fresh: State): void {
  const ids = (s: State): number[] => [...s.unread.places.keys()].sort((a, b) => a - b);
  same(ids(mine), ids(fresh), "unread");
  for (const [id, place] of mine.unread.places) {
    const lower = (p: object): object => ("topic" in p ? { ...p, topic: String(p.topic).toLowerCase() } : p);
    same(lower(place), lower(fresh.unread.places.get(id)!), `unread ${id}`);
    if (fresh.unread.mentions.has(id)) assert.ok(mine.unread.mentions.has(id), `message ${id} is a mention by register`);
    else if (mine.unread.mentions.has(id)) {
      // A wildcard mention does not count in muted places.
      assert.ok("channel" in place && isTopicMuted(mine, place.channel, place.topic) && topicPolicy(mine, place.channel, place.topic) < 2, `message ${id} is no mention by register`);
    }
  }
}

// registeredAsHere fails for records of clients that get other events than this one because they registered otherwise.
function registeredAsHere(params: typeof registerParams): void {
  for (const [k, v] of Object.entries(registerParams)) {
    if (k !== "idle_queue_timeout") same(params[k as keyof typeof params], v, `${k} of the recorded client`);
  }
}

const files = folder && existsSync(folder) ? readdirSync(folder).filter((f) => f.endsWith(".jsonl")) : [];

test("the store equals a fresh registration after the events of random crowds", { skip: files.length === 0 && "set PARLEY_RECORDS" }, () => {
  let compared = 0;
  for (const f of files) {
    const run = new Run();
    const lines = readFileSync(join(folder, f), "utf8").split("\n").filter(Boolean);
    for (const [i, text] of lines.entries()) {
      const line = JSON.parse(text) as Line;
      try {
        if ("params" in line) registeredAsHere(line.params);
        else if ("register" in line) run.register(line.register);
        else if ("events" in line) run.events(line.events.events);
        else if ("fresh" in line) {
          run.compare(line.fresh);
          compared++;
        } else run.compareMessages(line.messages.messages);
      } catch (err) {
        throw new Error(`${f}, line ${i + 1}: ${(err as Error).message}`);
      }
    }
  }
  console.log(`${files.length} records, ${compared} comparisons`);
});
