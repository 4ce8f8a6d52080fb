// The numbers of charts, and the audit log as a file.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { AuditEntry } from "../src/api/usage.ts";
import { cell, toCsv } from "../src/settings/audit_csv.ts";
import { byDay, largest, niceMaximum } from "../src/settings/usage_numbers.ts";

const day = 24 * 3600;

test("the hours of a day are added, also of days that are not complete", () => {
  const ends = Array.from({ length: 30 }, (_, i) => 10 * day + (i + 20) * 3600); // from 19:00 to 20:00
  const { days, values } = byDay(ends, ends.map(() => 1));
  assert.deepEqual(days, [10 * day, 11 * day, 12 * day]);
  assert.deepEqual(values, [5, 24, 1]);
});

test("small series are shown together", () => {
  const list = [3, 9, 0, 5, 1].map((n) => ({ label: String(n), values: [n, n] }));
  assert.deepEqual(largest(list, 3, "others"), [
    { label: "9", values: [9, 9] },
    { label: "5", values: [5, 5] },
    { label: "others", values: [4, 4] },
  ]);
  assert.equal(largest(list, 4, "others").length, 4);
});

test("the top of an axis is a round number", () => {
  assert.deepEqual([0, 1, 3, 50, 51, 1234].map(niceMaximum), [1, 1, 5, 50, 100, 2000]);
});

test("no value of the file is a formula or two cells", () => {
  for (const [value, want] of [
    ["=1+1", "'=1+1"],
    ["+1", "'+1"],
    ["-1", "'-1"],
    ["@a", "'@a"],
    ["\t=1", "'\t=1"],
    ["=A1,\"b\"", '"\'=A1,""b"""'],
    ["two\nlines", '"two\nlines"'],
    ["plain", "plain"],
    [-5, "-5"],
    [null, ""],
  ] as const) {
    assert.equal(cell(value), want);
  }
  const entry: AuditEntry = { id: 7, timestamp: 1_800_000_000, kind: "user.role", acting_user_id: 8, via: "session 1", client: "=cmd", address: "", user_id: 9, channel_id: null, group_id: null, name: "", old: "", new: "role 200", count: null };
  assert.equal(toCsv([entry]).split("\r\n")[1], "7,2027-01-15T08:00:00.000Z,user.role,8,session 1,'=cmd,,9,,,,,role 200,");
});
