// The translations: each belongs to a text of the client and has the same values.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { texts } from "../src/i18n/de.ts";
import { currentLanguage, plural, setTexts, t } from "../src/i18n/text.ts";

const sources = readdirSync("src", { recursive: true, encoding: "utf8" })
  .filter((f) => /\.tsx?$/.test(f) && !f.endsWith("de.ts"))
  .map((f) => readFileSync(join("src", f), "utf8"))
  .join("\n");

test("every German text translates a text of the client", () => {
  const unused = Object.keys(texts).filter((k) => !sources.includes(JSON.stringify(k)));
  assert.deepEqual(unused, []);
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
  assert.equal(plural(1, "{count} message", "{count} messages"), "1 Nachricht");
  assert.equal(plural(2000, "{count} message", "{count} messages"), "2.000 Nachrichten");
  setTexts("en", {});
  assert.equal(t("Inbox"), "Inbox");
});
