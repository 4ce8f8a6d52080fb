// The catalogues of texts, in the form of ICU messages (https://unicode-org.github.io/icu/userguide/format_parse/messages):
// locale/en.json has the texts of the code, which `npm run extract` finds, and locale/LANGUAGE.json their translations.
// The keys are the English messages. The build turns them into tables for src/i18n/text.ts.
import { parse, TYPE } from "@formatjs/icu-messageformat-parser";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const literal = String.raw`("(?:[^"\\]|\\.)*")`;
const one = new RegExp(String.raw`^\s*${literal}\s*[,)]`);
const two = new RegExp(String.raw`^[^"]*,\s*${literal}\s*,\s*${literal}\s*[,)]`);

// extract returns the sorted messages of the calls of t and plural below a folder, and the calls whose text is not a
// literal: no catalogue can be checked against those.
export function extract(src) {
  const messages = new Set();
  const unclear = [];
  for (const f of readdirSync(src, { recursive: true, encoding: "utf8" })) {
    if (!/\.tsx?$/.test(f) || f.startsWith("i18n")) continue;
    const source = readFileSync(join(src, f), "utf8");
    for (const call of source.matchAll(/(?<![\w.])(t|plural)\(/g)) {
      const rest = source.slice(call.index + call[0].length);
      const found = (call[1] === "t" ? one : two).exec(rest)?.slice(1).map((x) => JSON.parse(x));
      if (!found) unclear.push(`${f}: ${call[0]}${rest.slice(0, 60)}`);
      else messages.add(found.length === 1 ? escaped(found[0]) : message({ one: found[0], other: found[1] }));
    }
  }
  return { messages: [...messages].sort(), unclear };
}

// escaped quotes an apostrophe before a sign of the syntax, where it would begin a quotation.
const escaped = (text) => text.replace(/'(?=['{}#|])/g, "''");

const message = (forms) =>
  `{count, plural, ${Object.entries(forms).map(([name, text]) => `${name} {${escaped(text)}}`).join(" ")}}`;

// forms returns the forms of a message by their categories; a message without forms has only "".
export function forms(icu) {
  const nodes = parse(icu, { ignoreTag: true });
  if (nodes.length !== 1 || nodes[0].type !== TYPE.plural) return { "": plain(nodes, icu) };
  if (nodes[0].value !== "count") throw new Error(`the forms depend on ${nodes[0].value}, not on count: ${icu}`);
  return Object.fromEntries(Object.entries(nodes[0].options).map(([name, o]) => [name, plain(o.value, icu)]));
}

// plain returns a message in the form that text.ts has: text, and names in braces.
function plain(nodes, icu) {
  return nodes
    .map((n) => {
      if (n.type === TYPE.literal) return n.value;
      if (n.type === TYPE.argument) return `{${n.value}}`;
      throw new Error(`only texts, values and one plural are known: ${icu}`);
    })
    .join("");
}

// table returns the table of a catalogue: the translations by their English texts. Those of plural have the key
// "TEXT|category", with the English text for several.
export function table(catalogue) {
  const out = {};
  for (const [english, translated] of Object.entries(catalogue)) {
    const key = forms(english);
    for (const [name, text] of Object.entries(forms(translated))) {
      out[name ? `${key.other}|${name}` : key[""]] = text;
    }
  }
  return out;
}

export const readCatalogue = (file) => JSON.parse(readFileSync(file, "utf8"));

// catalogues is the plugin of esbuild that makes a module with a table of a catalogue.
export const catalogues = {
  name: "catalogues",
  setup(b) {
    b.onLoad({ filter: /[\\/]locale[\\/][\w-]+\.json$/ }, (a) => ({
      contents: `export const texts = ${JSON.stringify(table(readCatalogue(a.path)))};`,
    }));
  },
};
