// Lists of messages: for each narrow that was opened, a gapless stretch of the ids of its messages. Events keep them
// current: messages arrive, move and disappear.
import type { Message, Term } from "../api/types.ts";
import { listKey, matcher, type Matched } from "./narrow.ts";
import type { Change } from "./state.ts";

export interface MessageList {
  readonly key: string;
  readonly terms: Term[];
  readonly ids: number[]; // ascending
  readonly foundOldest: boolean;
  readonly foundNewest: boolean;
  readonly historyLimited: boolean;
  readonly loading: "" | "first" | "older" | "newer";
  readonly error: string;
  readonly stale: boolean; // it must be fetched again
  readonly unsure: number[]; // new messages for which only the server can tell whether they belong to the list
  readonly used: number; // grows with each use: the lists with the smallest numbers are dropped first
}

// maxLists bounds the lists in memory. The least recently used ones are dropped, with the messages only they hold.
const maxLists = 40;

// openList returns the list of a narrow. It makes an empty one if there is none.
export function openList(c: Change, terms: Term[]): MessageList {
  const key = listKey(terms);
  const old = c.state.lists.get(key);
  const used = 1 + Math.max(0, ...[...c.state.lists.values()].map((l) => l.used));
  const list: MessageList = old
    ? { ...old, used }
    : {
        key,
        terms,
        ids: [],
        foundOldest: false,
        foundNewest: false,
        historyLimited: false,
        loading: "",
        error: "",
        stale: false,
        unsure: [],
        used,
      };
  c.state.lists.set(key, list);
  c.touch("lists");
  if (!old) dropOldLists(c);
  return list;
}

function dropOldLists(c: Change): void {
  const lists = c.state.lists;
  if (lists.size <= maxLists) return;
  const oldest = [...lists.values()].sort((a, b) => a.used - b.used).slice(0, lists.size - maxLists);
  for (const l of oldest) lists.delete(l.key);
  const used = new Set<number>();
  for (const l of lists.values()) for (const id of l.ids) used.add(id);
  for (const id of c.state.messages.keys()) if (!used.has(id)) c.state.messages.delete(id);
  c.touch("messages");
}

export function changeList(c: Change, key: string, change: Partial<MessageList>): void {
  const list = c.state.lists.get(key);
  if (!list) return;
  c.state.lists.set(key, { ...list, ...change });
  c.touch("lists");
}

// mergeIDs joins two ascending lists.
export function mergeIDs(a: readonly number[], b: readonly number[]): number[] {
  if (b.length === 0) return [...a];
  if (a.length === 0 || a[a.length - 1]! < b[0]!) return [...a, ...b];
  return [...new Set([...a, ...b])].sort((x, y) => x - y);
}

// newMessage adds a message that has just arrived to the lists that reach the newest message.
export function newMessage(c: Change, m: Message): void {
  for (const list of c.state.lists.values()) {
    if (!list.foundNewest) continue;
    const match = matcher(list.terms, c.state)(m);
    if (match === true) changeList(c, list.key, { ids: mergeIDs(list.ids, [m.id]) });
    if (match === null) changeList(c, list.key, { unsure: [...list.unsure, m.id] });
  }
}

// refilter moves messages in and out of lists after they have changed. Lists that should hold a message that is not
// known here become stale.
export function refilter(c: Change, ids: readonly number[], movedTo?: Matched): void {
  for (const list of c.state.lists.values()) refilterList(c, list, ids, movedTo);
}

function refilterList(c: Change, list: MessageList, ids: readonly number[], movedTo?: Matched): void {
  const match = matcher(list.terms, c.state);
  const held = new Set(list.ids);
  const drop = new Set<number>();
  const add: number[] = [];
  let stale = list.stale;
  for (const id of ids) {
    const m = c.state.messages.get(id);
    if (!m) {
      if (movedTo && !held.has(id) && match(movedTo) === true) stale = true;
      continue;
    }
    const fits = match(m);
    if (held.has(id) && fits === false) drop.add(id);
    if (!held.has(id) && fits === true) {
      if (isInside(list, id)) add.push(id);
    }
  }
  if (drop.size === 0 && add.length === 0 && stale === list.stale) return;
  const kept = drop.size ? list.ids.filter((id) => !drop.has(id)) : list.ids;
  changeList(c, list.key, { ids: mergeIDs(kept, add.sort((a, b) => a - b)), stale });
}

// isInside reports whether a message of this id would be in the stretch that the list holds.
function isInside(list: MessageList, id: number): boolean {
  const first = list.ids[0];
  const last = list.ids[list.ids.length - 1];
  const afterStart = list.foundOldest || (first !== undefined && id > first);
  const beforeEnd = list.foundNewest || (last !== undefined && id < last);
  return afterStart && beforeEnd;
}

export function dropMessages(c: Change, ids: readonly number[]): void {
  if (ids.length === 0) return;
  const gone = new Set(ids);
  for (const list of c.state.lists.values()) {
    if (list.ids.some((id) => gone.has(id))) changeList(c, list.key, { ids: list.ids.filter((id) => !gone.has(id)) });
  }
  for (const id of ids) c.state.messages.delete(id);
  c.touch("messages");
}

// refetchChannelMessages forgets the messages of a channel, and marks the lists that hold them as stale.
export function refetchChannelMessages(c: Change, channel: number): void {
  for (const list of c.state.lists.values()) {
    if (list.ids.some((id) => c.state.messages.get(id)?.stream_id === channel)) changeList(c, list.key, { stale: true });
  }
  dropChannelMessages(c, channel);
}

// dropChannelMessages removes the messages of a channel that the user can no longer read.
export function dropChannelMessages(c: Change, channel: number): void {
  const ids: number[] = [];
  for (const m of c.state.messages.values()) if (m.stream_id === channel) ids.push(m.id);
  dropMessages(c, ids);
}

// storeMessages adds fetched messages, and replaces those that are already known.
export function storeMessages(c: Change, messages: readonly Message[]): void {
  for (const m of messages) c.state.messages.set(m.id, m);
  c.touch("messages");
}
