// Data of the protocol has the types that are made from the server's description, and nothing claims another one for it:
// there is no any, and one function, request, says of what type an answer is.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const types = readFileSync("src/api/types.ts", "utf8") + readFileSync("src/api/schema.ts", "utf8");
const names = new Set([...types.matchAll(/^(?:export (?:type|interface)|  (?:\w+ as )?)\s*(\w+)\b/gm)].map((m) => m[1]!));

// claims returns the places of a source that use any, or claim a type of the protocol.
function claims(source: string): string[] {
  const code = source.replace(/\/\/.*|"(?:[^"\\\n]|\\.)*"|^import [^;]*;/gm, "");
  const found = code.match(/[:<|,] ?any\b|\bas any\b|\bas (?:unknown as )?(?:\w+<)*(\w+)/g) ?? [];
  return found.filter((x) => /\bany$/.test(x) || names.has(/\w+$/.exec(x)![0]));
}

test("no any and no claimed type is in the sources", () => {
  assert.ok(names.has("Message") && names.has("ServerEvent") && names.has("GetMessagesAnswer") && names.has("User"));
  const files = readdirSync("src", { recursive: true, encoding: "utf8" }).filter((f) => /\.tsx?$/.test(f) && !f.startsWith("api/"));
  for (const f of files) assert.deepEqual(claims(readFileSync(join("src", f), "utf8")), [], f);
});

test("claims are found", () => {
  const source = 'const a = b as Message; c as unknown as User; new Map<string, any>(); let d: any; // as Message\nt("as Message"); e as const; f as File;';
  assert.equal(claims(source).length, 4);
});
