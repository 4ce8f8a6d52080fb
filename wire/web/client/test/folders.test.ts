// The folders of the client import each other without circles, types and parts that are loaded later included. Each folder
// can then be read with nothing but the folders below it.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";

type Graph = Map<string, Map<string, string>>; // by folder: the folders that it imports, each with one such file

// circleIn returns the first circle of a graph as its steps, or none.
function circleIn(graph: Graph): string[] {
  const done = new Set<string>();
  const follow = (folder: string, path: string[]): string[] => {
    if (path.includes(folder)) return [...path.slice(path.indexOf(folder)), folder];
    if (done.has(folder)) return [];
    for (const next of graph.get(folder)?.keys() ?? []) {
      const found = follow(next, [...path, folder]);
      if (found.length) return found;
    }
    done.add(folder);
    return [];
  };
  return [...graph.keys()].reduce<string[]>((found, folder) => (found.length ? found : follow(folder, [])), []);
}

test("the folders of the client import each other without circles", () => {
  const graph: Graph = new Map();
  for (const file of readdirSync("src", { recursive: true, encoding: "utf8" }).filter((f) => /\.tsx?$/.test(f))) {
    const folder = dirname(file);
    for (const [, to] of readFileSync(join("src", file), "utf8").matchAll(/(?:\bfrom |\bimport |\bimport\()"(\.[^"]+)"/g)) {
      const other = dirname(join(folder, to!));
      if (other === folder) continue;
      graph.set(folder, graph.get(folder) ?? new Map());
      graph.get(folder)!.set(other, `${file} imports ${to}`);
    }
  }
  assert.ok(graph.size > 15, `only ${graph.size} folders import others`);
  const circle = circleIn(graph);
  assert.deepEqual(circle.slice(1).map((to, i) => graph.get(circle[i]!)!.get(to)), []);
});

test("a circle of folders is found, and its steps are named", () => {
  const to = (...folders: string[]): Map<string, string> => new Map(folders.map((f) => [f, ""]));
  assert.deepEqual(circleIn(new Map([["a", to("b", "c")], ["b", to("c")], ["c", to()]])), []);
  assert.deepEqual(circleIn(new Map([["a", to("b", "c")], ["c", to("d")], ["d", to("c")]])), ["c", "d", "c"]);
});
