// The names of pressed keys, also on other keyboards than the English one.
import assert from "node:assert/strict";
import { test } from "node:test";
import { nameOf } from "../src/ui/key_names.ts";

const none = { code: "", ctrlKey: false, metaKey: false, altKey: false, shiftKey: false };

test("keys have the names of the table of shortcuts", () => {
  for (const [pressed, name] of [
    [{ key: "j" }, "j"],
    [{ key: "J", shiftKey: true }, "Shift+J"],
    [{ key: "J" }, "j"], // Caps Lock
    [{ key: "j", shiftKey: true }, "Shift+J"], // Caps Lock and Shift
    [{ key: "?", shiftKey: true }, "?"],
    [{ key: " ", shiftKey: true }, "Shift+ "],
    [{ key: "K", ctrlKey: true }, "Ctrl+k"],
    [{ key: "k", metaKey: true }, "Ctrl+k"],
    [{ key: "End" }, "End"],
    [{ key: "\u0444", code: "KeyA" }, "a"], // a Cyrillic keyboard
    [{ key: "\u0424", code: "KeyA", shiftKey: true }, "Shift+A"],
    [{ key: "\u00f6", code: "Semicolon" }, "\u00f6"],
  ] as const) assert.equal(nameOf({ ...none, ...pressed }), name, JSON.stringify(pressed));
});
