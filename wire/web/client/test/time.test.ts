// Times as texts: no number and no time zone makes one of the functions throw.
import assert from "node:assert/strict";
import { test } from "node:test";
import * as time from "../src/ui/time.ts";

const numbers = [0, -0, 1, -1, 0.5, 1_800_000_000, 8.64e12, -8.64e12, 8.64e12 + 1, -8.64e12 - 1, 1e18, -1e18, Infinity, -Infinity, NaN];
const missing = [undefined, null, "", "soon", {}] as never[];

test("no function of times throws for any number, and a number that is no time is called unknown", () => {
  const functions = Object.entries(time).filter(([, f]) => typeof f === "function");
  assert.equal(functions.length, 7);
  for (const [name, f] of functions) {
    for (const style of ["time", "short", "full"] as const) {
      for (const n of [...numbers, ...missing]) {
        const text = (f as (...args: unknown[]) => unknown)(n, style);
        assert.ok(name === "dayOf" ? Number.isInteger(text) : typeof text === "string", `${name}(${n}, ${style}) = ${text}`);
        if (name.startsWith("format") && name !== "formatNowIn") assert.equal(text === "Unknown time", !(Math.abs(n) <= 8.64e12), `${name}(${n}, ${style}) = ${text}`);
      }
    }
  }
});

test("an unknown time zone has no time of day", () => {
  for (const zone of ["", "Nowhere/Atlantis", "x".repeat(10_000)]) assert.equal(time.formatNowIn(zone), "", zone.slice(0, 20));
  assert.match(time.formatNowIn("Europe/Berlin"), /\d/);
});
