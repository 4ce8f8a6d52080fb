// Languages of code blocks: which fences they are offered for, and in which order.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fenceQuery, languagesFor, parseLanguages } from "../src/compose/languages.ts";
import { table } from "../src/compose/language_table.ts";

const all = parseLanguages(table);
const special = ["quote", "spoiler", "math", "latex", "text"].map((name) => ({ name, title: name }));
const names = (query: string, playgrounds: string[] = []): string[] =>
  languagesFor(query, all, playgrounds, special).map((l) => l.name);

test("a fence at the beginning of a line asks for a language", () => {
  const cases: [string, string | null][] = [
    ["```p", "p"],
    ["~~~py", "py"],
    ["Look:\n````  c+", "c+"],
    ["```", null], // a fence without a language is complete
    ["a ```p", null],
    [" ```p", null], // a fence begins at the first column
    ["``p", null],
    ["```p q", null],
    ["```go\nx := 1\n```p", null], // part of the code
    ["```go\nx := 1\n```\n\n```p", "p"],
    ["~~~\n```p", null],
    ["```quote\n```p", "p"], // a quotation contains blocks
    ["```spoiler The end\n~~~p", "p"],
    ["```quote\n```go\nx\n```\n```p", "p"],
  ];
  for (const [text, query] of cases) assert.equal(fenceQuery(text), query, text);
});

test("the languages are those of the server", () => {
  assert.ok(all.length > 800, `${all.length} names`);
  assert.deepEqual(all.filter((l) => l.title === "Go").map((l) => l.name), ["go", "golang"]);
});

test("an exact name is first, then playgrounds, blocks and common languages", () => {
  assert.deepEqual(names("p").slice(0, 3), ["python", "php", "perl"]);
  assert.equal(names("c")[0], "c");
  assert.equal(names("PY")[0], "py");
  assert.deepEqual(names("qu").slice(0, 1), ["quote"]);
  assert.deepEqual(names("te").slice(0, 1), ["text"]);
  assert.ok(names("lat").includes("latex"));
  assert.equal(names("p", ["Pony"])[0], "pony");
  assert.equal(names("ou", ["OurLang"])[0], "OurLang"); // only the organization has it
  assert.deepEqual(names("our", ["Our Lang"]), []); // a fence cannot have a space
  assert.deepEqual(names("nosuchlanguage"), []);
  for (const q of ["p", "c", "t"]) assert.equal(new Set(names(q)).size, names(q).length, "each once");
});
