// The users of a large organization that the registration does not list.
import "./page.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import type { RegisterAnswer, ServerEvent, User } from "../src/api/types.ts";
import { isComing, pageOfPeople, startPeople } from "../src/store/people.ts";
import { userName } from "../src/store/queries.ts";
import { fromRegister } from "../src/store/state.ts";
import { peek, receive, replace } from "../src/store/store.ts";

const person = (user_id: number, full_name: string): User => ({ user_id, full_name, is_active: true, email: "" }) as User;

interface Asked {
  params: URLSearchParams;
  answer: (people: User[]) => void;
}

const asked: Asked[] = [];
let arrived: () => void = () => {};

globalThis.fetch = (address) => {
  const params = new URL(String(address), "https://chat.example.org").searchParams;
  return new Promise((resolve) => {
    const answer = (people: User[]): void =>
      resolve(new Response(JSON.stringify({ result: "success", msg: "", people, presences: {}, user_status: {}, more: false }), { headers: { "content-type": "application/json" } }));
    asked.push({ params, answer });
    arrived();
  });
};

// nextRequest resolves with the next request to the server.
async function nextRequest(): Promise<Asked> {
  while (asked.length === 0) await new Promise<void>((resolve) => (arrived = resolve));
  return asked.shift()!;
}

let event = 0;

function rename(user_id: number, full_name: string): void {
  const e = { id: event++, type: "realm_user", op: "update", person: { user_id, full_name } } as ServerEvent;
  receive([e], (_, err) => assert.fail(String(err)));
}

// known resolves when a user is known by a name.
async function known(id: number, name: string): Promise<void> {
  while (!peek().users.has(id) || userName(id) !== name) await new Promise((resolve) => setTimeout(resolve, 1));
}

function begin(queue: string): void {
  replace(fromRegister({ queue_id: queue, last_event_id: -1, user_id: 1, realm_users: [person(1, "Me")], realm_users_incomplete: true } as RegisterAnswer));
  event = 0;
}

test("users that are read are fetched together, and those that the server does not show are unknown", async () => {
  startPeople();
  begin("a");
  assert.equal(userName(7), "…");
  assert.equal(userName(8), "…");
  assert.equal(userName(7), "…");
  const r = await nextRequest();
  assert.equal(r.params.get("user_ids"), "[7,8]");
  r.answer([person(7, "Seven")]);
  await known(7, "Seven");
  assert.equal(isComing(8), false);
  assert.equal(userName(8), "Unknown user");
  rename(7, "Seven II");
  assert.equal(userName(7), "Seven II");
});

test("an answer that is older than an event is not used", async () => {
  begin("b");
  userName(9);
  const r = await nextRequest();
  rename(9, "New name");
  r.answer([person(9, "Old name")]);
  const again = await nextRequest();
  assert.equal(again.params.get("user_ids"), "[9]");
  assert.equal(userName(9), "…");
  again.answer([person(9, "New name")]);
  await known(9, "New name");
});

test("a search makes users known, and leaves those that have changed meanwhile to another request", async () => {
  begin("c");
  const page = pageOfPeople({ query: "x" });
  const r = await nextRequest();
  assert.equal(r.params.get("query"), "x");
  rename(11, "Changed");
  r.answer([person(10, "Xa"), person(11, "Xb")]);
  assert.deepEqual(await page, { ids: [10, 11], more: false });
  assert.equal(userName(10), "Xa");
  (await nextRequest()).answer([person(11, "Changed")]);
  await known(11, "Changed");
});
