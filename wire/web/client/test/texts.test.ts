// The catalogues: each has every text of the client, with the same values and the forms of its language.
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { texts as german } from "../locale/de.json";
import { texts as arabic } from "../locale/ar.json";
import { extract, forms, readCatalogue } from "../catalogue.mjs";
import { languageNames, standardCode } from "../src/i18n/languages.ts";
import { currentLanguage, plural, setTexts, t } from "../src/i18n/text.ts";

const { messages, unclear } = extract("src");
const catalogues = new Map(readdirSync("locale").map((f) => [f.replace(".json", ""), readCatalogue(join("locale", f))]));

// sameAsOther are the categories whose form may be that of "other", with the reason: in these languages "many" are
// whole millions, which no list of the client reaches.
const sameAsOther = new Map(["es", "fr", "it", "pt"].map((language) => [language, ["many"]]));

test("the texts of the client are literals", () => {
  assert.deepEqual(unclear, []);
  assert.ok(messages.length > 900, `only ${messages.length} texts were found`);
});

test("every language of the settings has a catalogue, and every catalogue is offered", () => {
  assert.deepEqual(Object.keys(languageNames).map(standardCode).sort(), [...catalogues.keys()].sort());
  assert.equal(standardCode("zh-hant"), "en"); // the simplified signs are not those of its readers
  assert.equal(standardCode("pt-br"), "pt");
});

test("the English catalogue is extracted from the code", () => {
  assert.deepEqual(Object.entries(catalogues.get("en")!), messages.map((m) => [m, m]), "run npm run extract");
});

for (const [language, catalogue] of catalogues) {
  test(`${language} is complete and has no other texts`, () => {
    assert.deepEqual(messages.filter((m) => !catalogue[m]?.trim()), []);
    assert.deepEqual(Object.keys(catalogue), messages);
  });

  test(`${language} keeps the values of the texts, and has the forms of its numbers`, () => {
    const values = (text: string): string => [...new Set(text.match(/\{\w+\}/g) ?? [])].sort().join();
    const categories = new Intl.PluralRules(language).resolvedOptions().pluralCategories;
    const wanted = categories.filter((c) => !sameAsOther.get(language)?.includes(c)).sort();
    for (const [english, translated] of Object.entries(catalogue)) {
      const [from, to] = [forms(english), forms(translated)];
      assert.deepEqual(Object.keys(to).sort(), "" in from ? [""] : wanted, `${english}: ${translated}`);
      for (const [form, text] of Object.entries(to)) {
        // A form for exactly one number may have it in words.
        const may = ["zero", "one", "two"].includes(form) ? [values(text), values(`${text} {count}`)] : [values(text)];
        assert.ok(may.includes(values(from[""] ?? from.other!)), `${english}: ${text}`);
        assert.equal(text.trim(), text);
      }
    }
  });
}

test("translations differ from the English texts", () => {
  for (const [language, catalogue] of catalogues) {
    const same = Object.entries(catalogue).filter(([a, b]) => a === b && /^[A-Z].*[a-z]{3}.* .*[a-z]{3}/.test(a));
    if (language !== "en") assert.ok(same.length < 3, `${language}: ${JSON.stringify(same)}`);
  }
});

test("a table translates texts and forms of numbers, and is replaced by none", () => {
  setTexts("de", german);
  assert.equal(currentLanguage(), "de");
  assert.equal(t("Inbox"), "Eingang");
  assert.equal(t("a text without translation"), "a text without translation");
  assert.equal(plural(1, "{count} day", "{count} days"), "1 Tag");
  assert.equal(plural(2000, "{count} day", "{count} days"), "2.000 Tage");
  setTexts("ar", arabic); // zero and 100 have the same form of "day"
  const days = new Set([0, 1, 2, 3, 11, 100].map((n) => plural(n, "{count} day", "{count} days").replace(/[\d\u0660-\u0669]+/, "#")));
  assert.equal(days.size, 5, [...days].join(", "));
  setTexts("en", {});
  assert.equal(t("Inbox"), "Inbox");
  assert.equal(plural(1, "{count} day", "{count} days"), "1 day");
});
