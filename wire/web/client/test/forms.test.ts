// The state of forms: what is shown is sent, and after success each field has its stated default again.
import assert from "node:assert/strict";
import { test } from "node:test";
import { afterSuccess, defaultOf, Entered, isChanged, optionsOf, valueOf, valuesOf, type Changes, type FormField } from "../src/forms/form_state.ts";

const role: FormField = { name: "role", label: "", kind: "choice", value: "400", options: ["100", "200", "400"].map((value) => ({ value, label: value })) };
const on: FormField = { name: "on", label: "", kind: "check", value: "true" };
const day: FormField = { name: "day", label: "", kind: "date", value: "2026-01-02" };
const events: FormField = { name: "events", label: "", kind: "checks", values: ["a", "b"], options: ["a", "b"].map((value) => ({ value, label: value })) };
const file: FormField = { name: "file", label: "", kind: "file" };
const all = [role, on, day, events, file];

test("after success every kind of field has its default, not the first option", () => {
  const defaults = valuesOf(all, {});
  assert.deepEqual(defaults, { role: "400", on: true, day: "2026-01-02", events: ["a", "b"], file: null });
  const picture = new Blob(["x"]) as File;
  const changes: Changes = { role: { value: "100" }, on: { value: false }, day: { value: "" }, events: { value: [] }, file: { value: picture } };
  const sent = valuesOf(all, changes);
  assert.deepEqual(sent, { role: "100", on: false, day: "", events: [], file: picture });
  assert.deepEqual(valuesOf(all, afterSuccess(all, changes, sent, false)), defaults);
});

test("what the user changes while a form is being sent is not lost", () => {
  const sent = valuesOf(all, { role: { value: "200" }, on: { value: false } });
  const now: Changes = { role: { value: "100" }, on: { value: false } };
  assert.deepEqual(afterSuccess(all, now, sent, false), { role: { value: "100" } });
});

test("a form that keeps its values shows them until others are stored", () => {
  const changes: Changes = { role: { value: "200" } };
  const kept = afterSuccess(all, changes, valuesOf(all, changes), true);
  assert.equal(valueOf(role, kept), "200");
  assert.equal(valueOf({ ...role, value: "100" }, kept), "100", "another client has stored it");
});

test("a choice without a default is empty, and never its first option", () => {
  const user: FormField = { name: "user", label: "", kind: "choice", required: true, options: [{ value: "7", label: "Ann" }, { value: "9", label: "Bo" }] };
  assert.equal(defaultOf(user), "");
  assert.deepEqual(optionsOf(user).map((o) => o.value), ["", "7", "9"]);
  const chosen: Changes = { user: { value: "9" } };
  assert.equal(valueOf(user, chosen), "9");
  assert.equal(valueOf({ ...user, options: [{ value: "7", label: "Ann" }] }, chosen), "", "Bo is gone: Ann is not chosen instead");
});

test("a stored value that is no option is shown and sent", () => {
  const odd = { ...role, value: "999" };
  assert.equal(valueOf(odd, {}), "999");
  assert.deepEqual(optionsOf(odd).map((o) => o.value), ["999", "100", "200", "400"]);
});

test("entered values are read by their kind", () => {
  const v = new Entered({ a: " x ", n: " 7", box: true, off: false, list: ["p"], none: null });
  assert.deepEqual([v.text("a"), v.secret("a"), v.number("n"), v.has("box"), v.has("off"), v.has("a"), v.all("list")], ["x", " x ", 7, true, false, false, ["p"]]);
  assert.deepEqual([v.text("box"), v.text("none"), v.text("missing"), v.all("a")], ["", "", "", []]);
});

test("a form is changed only while a value differs from the stored one", () => {
  const name: FormField = { name: "name", label: "", value: "Ann" };
  assert.equal(isChanged([name, on, events], {}), false);
  assert.equal(isChanged([name], { name: { value: "Anna" } }), true);
  assert.equal(isChanged([name], { name: { value: "Ann" } }), false, "typed and taken back");
  assert.equal(isChanged([on], { on: { value: false } }), true);
  assert.equal(isChanged([events], { events: { value: ["b", "a"] } }), false);
});
