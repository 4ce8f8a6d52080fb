// The store passes each event on with the state of its moment.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ServerEvent } from "../src/api/types.ts";
import { afterEvent, peek, receive } from "../src/store/store.ts";

test("a listener sees the state after its event, before later events of the same answer", () => {
  const seen: unknown[] = [];
  afterEvent((e) => seen.push([e.id, [...peek().mutedUsers.keys()]]));
  const muted = (id: number, users: number[]): ServerEvent =>
    ({ id, type: "muted_users", muted_users: users.map((u) => ({ id: u, timestamp: 1 })) }) as ServerEvent;
  const fail = (_: ServerEvent, err: unknown): void => assert.fail(String(err));
  receive([muted(0, [7]), muted(1, [7, 8])], fail);
  receive([muted(1, [7, 8]), muted(2, [])], fail);
  assert.deepEqual(seen, [
    [0, [7]],
    [1, [7, 8]],
    [2, []],
  ]);
});
