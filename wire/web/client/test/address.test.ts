// Addresses: bad ones never throw, and the page to log in names no person.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parseAddress, withoutNames } from "../src/api/address.ts";

const base = "https://chat.example.org/";

test("a bad address is none, and does not throw", () => {
  for (const bad of ["http://", "https://[", "http://a b", "//", "http://%", "https://example.org:99999999"]) {
    assert.equal(parseAddress(bad, base), null, bad);
  }
  assert.equal(parseAddress("x", ""), null);
  assert.equal(parseAddress("", base)?.href, base);
  assert.equal(parseAddress("/user_uploads/1", base)?.pathname, "/user_uploads/1");
  assert.equal(parseAddress("java\tscript:x", base)?.protocol, "javascript:");
});

test("only parseAddress parses addresses", () => {
  const files = readdirSync("src", { recursive: true, encoding: "utf8" }).filter((f) => /\.tsx?$/.test(f));
  const others = files.filter((f) => f !== join("api", "address.ts") && readFileSync(join("src", f), "utf8").includes("new URL("));
  assert.deepEqual(others, []);
});

test("a fragment for the page to log in names no person", () => {
  for (const [fragment, want] of [
    ["#narrow/dm/10-Bo-Park", "#narrow/dm/10"],
    ["#narrow/dm/10,11-group/near/5", "#narrow/dm/10,11/near/5"],
    ["#narrow/channel/1-general/topic/lunch/sender/10-Bo-Park", "#narrow/channel/1-general/topic/lunch/sender/10"],
    ["#narrow/-sender/10-Bo", "#narrow/-sender/10"],
    ["#narrow/pm-with/10-bo", "#narrow/pm-with/10"],
    ["#narrow/channel/1-general/topic/lunch", "#narrow/channel/1-general/topic/lunch"],
    ["#inbox", "#inbox"],
    ["", ""],
  ] as const) assert.equal(withoutNames(fragment), want);
});
