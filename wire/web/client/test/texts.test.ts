// The translations: each belongs to a text of the client and has the same values.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { texts } from "../src/i18n/de.ts";
import { currentLanguage, plural, setTexts, t } from "../src/i18n/text.ts";

// used are the texts in calls of t and plural, unclear the calls whose text is not a literal: no table can be checked
// against those.
const used = new Set<string>();
const unclear: string[] = [];
const literal = String.raw`("(?:[^"\\]|\\.)*")`;
const one = new RegExp(String.raw`^\s*${literal}\s*[,)]`);
const two = new RegExp(String.raw`^[^"]*,\s*${literal}\s*,\s*${literal}\s*[,)]`);
for (const f of readdirSync("src", { recursive: true, encoding: "utf8" })) {
  if (!/\.tsx?$/.test(f) || f.startsWith("i18n")) continue;
  const source = readFileSync(join("src", f), "utf8");
  for (const call of source.matchAll(/(?<![\w.])(t|plural)\(/g)) {
    const rest = source.slice(call.index + call[0].length);
    const found = (call[1] === "t" ? one : two).exec(rest);
    if (!found) unclear.push(`${f}: ${call[0]}${rest.slice(0, 60)}`);
    for (const text of found?.slice(1) ?? []) used.add(JSON.parse(text));
  }
}

test("the texts of the client are literals", () => {
  assert.deepEqual(unclear, []);
  assert.ok(used.size > 800, `only ${used.size} texts were found`);
});

test("every text of the client has a German translation", () => {
  assert.deepEqual([...used].filter((x) => !texts[x]), []);
});

test("every German text translates a text of the client", () => {
  assert.deepEqual(Object.keys(texts).filter((x) => !used.has(x)), []);
});

test("translations keep the values of the text", () => {
  const values = (s: string): string[] => (s.match(/\{\w+\}/g) ?? []).sort();
  for (const [english, german] of Object.entries(texts)) assert.deepEqual(values(german), values(english), english);
});

test("a table translates texts and forms of numbers, and is replaced by none", () => {
  setTexts("de", texts);
  assert.equal(currentLanguage(), "de");
  assert.equal(t("Inbox"), "Eingang");
  assert.equal(t("a text without translation"), "a text without translation");
  assert.equal(plural(1, "{count} day", "{count} days"), "1 Tag");
  assert.equal(plural(2000, "{count} day", "{count} days"), "2.000 Tage");
  setTexts("en", {});
  assert.equal(t("Inbox"), "Inbox");
});
