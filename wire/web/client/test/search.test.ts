import assert from "node:assert/strict";
import { test } from "node:test";
import { emptyState, type State } from "../src/store/state.ts";
import { encodeOperand, parseSearch } from "../src/views/search_text.ts";

function start(): State {
  const s = emptyState();
  s.me = { user_id: 10 } as State["me"];
  s.users.set(11, { user_id: 11, full_name: "Bo Park", email: "bo@example.org" } as never);
  s.channels.set(1, { stream_id: 1, name: "big news" } as never);
  return s;
}

test("the text of a search becomes terms", () => {
  const cases: [string, unknown][] = [
    ["some words", [{ operator: "search", operand: "some words" }]],
    ['"exact words" more', [{ operator: "search", operand: '"exact words" more' }]],
    ["stream:Big+news has:link", [{ operator: "channel", operand: 1 }, { operator: "has", operand: "link" }]],
    ['channel:"big news" soup', [{ operator: "channel", operand: 1 }, { operator: "search", operand: "soup" }]],
    ["-from:bo+park", [{ operator: "sender", operand: 11, negated: true }]],
    ["dm:bo@example.org,me", [{ operator: "dm", operand: [11, 10] }]],
    ["http://example.org", [{ operator: "search", operand: "http://example.org" }]],
    ["topic:" + encodeOperand("C++ 100%"), [{ operator: "topic", operand: "C++ 100%" }]],
    ["", []],
  ];
  for (const [text, terms] of cases) assert.deepEqual(parseSearch(text, start()), terms, text);
});
