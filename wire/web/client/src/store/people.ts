// The users of a large organization: the registration lists only some of them (realm_users_incomplete). A user that a
// component reads and that is not known is fetched, together with all others of the same frame; a search asks the server.
// What was fetched is a part of the state like all users, so events change it.
import { fetchPeople, searchPeople, type PeopleQuery } from "../api/people.ts";
import type * as answers from "../api/schema.ts";
import { afterEvent, change, peek } from "./store.ts";
import { whenMissing } from "./state.ts";

const frame = 16; // milliseconds in which the ids of one request are collected
const maxIDs = 200; // of one request, as the server allows
const typingPause = 120; // milliseconds without a letter before the server is asked
const fresh = 60_000; // milliseconds in which the same search is not repeated
const firstPause = 1000; // after a failure
const maxPause = 30_000;

let wanted = new Set<number>(); // in flight: to be fetched
let fetching = new Map<number, boolean>(); // in flight: true if an event came since the request
let unknown = new Set<number>(); // cache: users that do not exist, or that the user must not see
let searched = new Map<string, number>(); // cache: when a search was made, in milliseconds
let queue = ""; // cache: the registration that all of these belong to
let timer: ReturnType<typeof setTimeout> | undefined; // in flight
let failures = 0; // in flight

// isShort reports whether the state has only some of the users.
export function isShort(): boolean {
  return peek().realm.realm_users_incomplete === true;
}

// isComing reports whether a user that is not known is being fetched.
export function isComing(id: number): boolean {
  return isShort() && !unknown.has(id);
}

export function startPeople(): void {
  whenMissing(want);
  afterEvent((e) => {
    const id = e.type === "realm_user" ? e.person.user_id : e.type === "user_status" ? e.user_id : 0;
    if (id === 0) return;
    if (fetching.has(id)) fetching.set(id, true);
    if (searches > 0) touched.add(id);
    if (e.type === "realm_user" && e.op !== "update") unknown.delete(id);
  });
}

// forgetOld begins anew after a registration: its list is another one.
function forgetOld(): void {
  const now = peek().queue.id;
  if (now === queue) return;
  queue = now;
  wanted = new Set();
  fetching = new Map();
  unknown = new Set();
  searched = new Map();
}

function want(id: number): void {
  if (!isShort()) return;
  forgetOld();
  if (!(Number.isInteger(id) && id > 0) || unknown.has(id) || fetching.has(id) || wanted.has(id)) return;
  wanted.add(id);
  timer ??= setTimeout(() => void flush(), frame);
}

async function flush(): Promise<void> {
  timer = undefined;
  forgetOld();
  const of = queue;
  const ids = [...wanted].filter((id) => !peek().users.has(id)).slice(0, maxIDs);
  for (const id of ids) fetching.set(id, false);
  for (const id of ids.length < maxIDs ? [...wanted] : ids) wanted.delete(id);
  let pause = frame;
  if (ids.length > 0) {
    try {
      const answer = await fetchPeople(ids);
      failures = 0;
      if (of !== peek().queue.id) return;
      put(answer);
      const found = new Set(answer.people.map((u) => u.user_id));
      for (const id of ids) if (!found.has(id) && !fetching.get(id)) unknown.add(id);
      for (const id of ids) if (fetching.get(id)) wanted.add(id); // the answer can be older than the event
    } catch {
      if (of !== queue) return;
      pause = Math.min(maxPause, firstPause * 2 ** failures++);
      for (const id of ids) wanted.add(id);
    }
    for (const id of ids) fetching.delete(id);
  }
  if (wanted.size > 0) timer ??= setTimeout(() => void flush(), pause);
  else if (ids.length > 0) change((c) => c.touch("users"));
}

// put stores fetched users. One that an event has changed since the request is fetched again.
function put(a: answers.GetPeopleAnswer): void {
  change((c) => {
    for (const u of a.people) {
      const id = u.user_id;
      if (fetching.get(id)) continue;
      c.state.users.set(id, u);
      const status = a.user_status[id];
      if (status) c.state.statuses.set(id, status);
      else c.state.statuses.delete(id);
      const presence = a.presences[id];
      if (presence) c.state.presences.set(id, presence);
    }
    c.touch("users");
    c.touch("statuses");
    c.touch("presences");
  });
}

let searches = 0; // in flight: how many searches wait for an answer
const touched = new Set<number>(); // in flight: users with an event meanwhile

let typing: ReturnType<typeof setTimeout> | undefined; // in flight

// queryOf returns the search for a text, and its key.
function queryOf(text: string, more: Omit<PeopleQuery, "query"> = {}): [PeopleQuery, string] {
  const q = { query: text.trim().slice(0, 100), ...more };
  return [q, JSON.stringify(q)];
}

// isFresh reports whether a search was made a short time ago.
function isFresh(key: string): boolean {
  return Date.now() - (searched.get(key) ?? 0) < fresh;
}

// findPeople makes the users known that the server finds for a text. Lists that filter the users of the state then show
// them. It resolves when they are known, and does nothing if all users are known anyway.
async function findPeople(text: string, more: Omit<PeopleQuery, "query"> = {}): Promise<void> {
  if (!isShort()) return;
  forgetOld();
  const [q, key] = queryOf(text, more);
  if (isFresh(key)) return;
  searched.set(key, Date.now());
  const of = queue;
  try {
    await pageOfPeople(q);
  } catch {
    if (of === queue) searched.delete(key);
  }
}

// pageOfPeople returns the users that a search finds, and makes them known.
export async function pageOfPeople(q: PeopleQuery): Promise<{ ids: number[]; more: boolean }> {
  forgetOld();
  const of = queue;
  searches++;
  try {
    const answer = await searchPeople(q);
    if (of === peek().queue.id) {
      // a known user has had all events; of others the answer can be older than an event
      const others = answer.people.filter((u) => !peek().users.has(u.user_id));
      if (others.length > 0) put({ ...answer, people: others.filter((u) => !touched.has(u.user_id)) });
      for (const u of others) if (touched.has(u.user_id)) want(u.user_id);
    }
    return { ids: answer.people.map((u) => u.user_id), more: answer.more };
  } finally {
    if (--searches === 0) touched.clear();
  }
}

// findWhileTyping is findPeople for a field that the user types in.
export function findWhileTyping(query: string, more: Omit<PeopleQuery, "query"> = {}): void {
  if (!isShort() || query.trim() === "") return;
  clearTimeout(typing);
  typing = setTimeout(() => void findPeople(query, more), typingPause);
}

// loadPeople returns the function that makes the users of a completion known; undefined if there is nothing to load.
export function loadPeople(query: string): (() => Promise<void>) | undefined {
  if (!isShort() || query.trim() === "" || isFresh(queryOf(query)[1])) return undefined;
  return () => findPeople(query);
}
