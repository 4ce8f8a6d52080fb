// Nothing is exported that no other file names, and no style is for a class that nothing has.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const read = (folder: string, kind: RegExp): Map<string, string> =>
  new Map(
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((f) => kind.test(f))
      .map((f) => [join(folder, f), readFileSync(join(folder, f), "utf8")]),
  );

const sources = new Map([...read("src", /\.tsx?$/), ...read("test", /\.ts$/)]);

test("an export is used by another file", () => {
  let exports = 0;
  for (const [file, source] of sources) {
    if (file === "src/api/schema.ts") continue; // made from the server's description
    for (const [, name] of source.matchAll(/^export (?:async )?(?:function|const|let|class|interface|type) (\w+)/gm)) {
      exports++;
      const used = new RegExp(String.raw`\b${name}\b`);
      assert.ok([...sources].some(([f, s]) => f !== file && used.test(s)), `${file}: ${name}`);
    }
  }
  assert.ok(exports > 300, `only ${exports} exports`);
});

// Texts of messages have the classes that the server gives them.
const ofServer = "src/style/content.css";

test("a class and a variable with a style is used", () => {
  const code = [...sources.values()].join("\n");
  const styles = read("src/style", /\.css$/);
  const all = [...styles.values()].join("\n");
  for (const [file, style] of styles) {
    const plain = style.replace(/\/\*[^]*?\*\/|url\([^)]*\)|@import[^;]*;/g, "");
    for (const [, name] of plain.matchAll(/\.([a-zA-Z][\w-]*)/g)) {
      if (file !== ofServer) assert.match(code, new RegExp(String.raw`(?<![\w-])${name}(?![\w-])`), `${file}: .${name}`);
    }
    for (const [, name] of plain.matchAll(/(--[\w-]+)\s*:/g)) {
      assert.ok(code.includes(name!) || new RegExp(String.raw`var\(${name}\b(?!-)`).test(all), `${file}: ${name}`);
    }
  }
});
