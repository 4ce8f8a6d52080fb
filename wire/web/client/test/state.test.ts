// State is in the store. A variable of a module that changes holds something else, and the comment at it says what, with one
// of these words (see README.md).
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const kinds = /\b(view state|in flight|registry|cache)\b/i;

const sources = new Map(
  readdirSync("src", { recursive: true, encoding: "utf8" })
    .filter((f) => /\.tsx?$/.test(f))
    .map((f) => [f, readFileSync(join("src", f), "utf8")]),
);

// changing returns the lines that declare variables of modules that change, by "file name".
function changing(files: Map<string, string>): Map<string, { line: string; above: string }> {
  const out = new Map<string, { line: string; above: string }>();
  for (const [file, source] of files) {
    const lines = source.split("\n");
    for (const [i, line] of lines.entries()) {
      const found = /^(export )?(let|const) (\w+)\b(?! = \()/.exec(line);
      if (!found) continue;
      const [, exported, keyword, name] = found;
      const changes = new RegExp(String.raw`(?<![\w.])${name}(\.\w+)* [-+?|]*= |(?<![\w.])${name}\.(set|add|delete|clear|push|splice)\(`);
      const users = exported ? [...files.values()].filter((s) => s === source || new RegExp(String.raw`import [^"]*\b${name}\b`).test(s)) : [source];
      const bodies = users.map((s) => s.replace(/\b(let|const) .*?= /g, ""));
      if (keyword === "const" && !bodies.some((s) => changes.test(s))) continue;
      let first = i;
      while (lines[first - 1]?.startsWith("//")) first--;
      out.set(`${file} ${name}`, { line, above: lines.slice(first, i).join("\n") });
    }
  }
  return out;
}

test("a variable of a module that changes is named as view state, in flight, registry or cache", () => {
  const all = changing(sources);
  all.delete("store/store.ts state"); // the store
  assert.ok(all.size > 40, `only ${all.size} were found`);
  const unnamed = [...all].filter(([, v]) => !kinds.test(v.line.split("//")[1] ?? "") && !kinds.test(v.above));
  assert.deepEqual(unnamed.map(([name]) => name), []);
});

test("variables that change are told from constants", () => {
  const a = 'let a = 1;\nconst b = new Map();\nconst c = new Set(["x"]);\nexport const d = [];\nconst e = { n: 1 };\nexport const f = () => 1;';
  const files = new Map([["a.ts", a + "\nb.set(1, 2); c.has(1); e.n = 2;"], ["b.ts", 'import { d } from "./a.ts";\nd.push(1);']]);
  assert.deepEqual([...changing(files).keys()], ["a.ts a", "a.ts b", "a.ts d", "a.ts e"]);
});
