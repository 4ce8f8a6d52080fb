import "./page.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import { replace } from "../src/store/store.ts";
import { emptyState, type State } from "../src/store/state.ts";
import { encodeOperand, lastFilter, parseSearch, searchText, takeTerms } from "../src/views/search_text.ts";

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

test("filters that are complete are taken out of a text, and the rest stays", () => {
  const s = start();
  s.channels.set(2, { stream_id: 2, name: "big" } as never);
  const cases: [string, string[], string][] = [
    ["channel:\"big news\" so", ["channel"], "so"],
    ["channel:big ", [], "channel:big "], // can go on to "big news"
    ["-sender:bo@example.org is:unread x", ["sender", "is"], "x"],
    ["sender:nobody x", [], "sender:nobody x"],
    ["topic:lunch x", [], "topic:lunch x"], // topics have spaces
    ["topic:\"lunch\" x", ["topic"], "x"],
    ["words is:unread ", [], "words is:unread "],
  ];
  for (const [text, operators, rest] of cases) {
    const taken = takeTerms(text, s);
    assert.deepEqual([taken.terms.map((t) => t.operator), taken.rest], [operators, rest], text);
  }
});

test("the filter at the end of a text is found with the words of its value", () => {
  assert.deepEqual(lastFilter("soup -from:Bo Pa"), { head: "soup ", negated: true, operator: "sender", value: "Bo Pa" });
  assert.deepEqual(lastFilter('channel:"big ne'), { head: "", negated: false, operator: "channel", value: "big ne" });
  for (const text of ["soup", "http://example.org", "a:b", ""]) assert.equal(lastFilter(text), null, text);
});

test("a search is shown with names, and its text has the same terms", () => {
  const s = start();
  replace(s);
  const terms = parseSearch('channel:"big news" -sender:me dm:"Bo Park" topic:"a+b 100%" soup', s);
  s.users.set(10, { user_id: 10, full_name: "Ann Lee", email: "ann@example.org" } as never);
  assert.equal(searchText(terms), 'channel:"big news" -sender:"Ann Lee" dm:"Bo Park" topic:"a b 100%25" soup');
  assert.deepEqual(parseSearch(searchText(terms), s), terms);
});
