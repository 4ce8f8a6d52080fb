// The tools of text fields: each changes a text as its examples say, and has the shortcut that the list of shortcuts names.
import "./page.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import { runShortcut, textTools, type Formatting } from "../src/editor/tools.tsx";
import { change } from "../src/editor/text_field.ts";

// Field has what the tools use of a text field. Its text is written with the selected part between « and ».
class Field {
  value: string;
  selectionStart: number;
  selectionEnd: number;
  constructor(marked: string) {
    this.selectionStart = marked.indexOf("«");
    this.selectionEnd = marked.indexOf("»") - 1;
    this.value = marked.replace(/[«»]/g, "");
  }
  focus(): void {}
  dispatchEvent(): void {}
  setSelectionRange(start: number, end: number): void {
    this.selectionStart = start;
    this.selectionEnd = end;
  }
  setRangeText(text: string, from: number, to: number): void {
    this.value = this.value.slice(0, from) + text + this.value.slice(to);
    this.selectionStart = this.selectionEnd = from + text.length;
  }
  marked(): string {
    const { value, selectionStart: a, selectionEnd: b } = this;
    return `${value.slice(0, a)}«${value.slice(a, b)}»${value.slice(b)}`;
  }
}

const area = (f: Field): HTMLTextAreaElement => f as unknown as HTMLTextAreaElement;

function pressed(name: string): KeyboardEvent {
  const parts = name.split("+");
  const key = parts.at(-1)!;
  return { key, code: "", ctrlKey: parts.includes("Ctrl"), shiftKey: parts.includes("Shift"), altKey: parts.includes("Alt"), metaKey: false } as KeyboardEvent;
}

const formatting = textTools.filter((x): x is Formatting => "edit" in x);

for (const tool of formatting) {
  test(`the tool ${tool.name} changes a text as its examples say`, () => {
    assert.ok(tool.examples.length);
    for (const [before, after] of tool.examples) {
      const field = new Field(before);
      change(area(field), tool.edit);
      assert.equal(field.marked(), after, before);
    }
  });
}

test("the shortcuts of the tools do what their buttons do, and other keys nothing", () => {
  const keyed = formatting.filter((x) => x.key);
  assert.ok(keyed.length >= 4);
  for (const { key, examples } of keyed) {
    const field = new Field(examples[0]![0]);
    assert.ok(runShortcut(pressed(key!), area(field)), key);
    assert.equal(field.marked(), examples[0]![1], key);
  }
  const field = new Field("a «word»");
  for (const key of ["b", "Alt+b", "Ctrl+Alt+b", "Ctrl+Shift+B", "Ctrl+L"]) assert.equal(runShortcut(pressed(key), area(field)), false, key);
  assert.equal(field.marked(), "a «word»");
});

test("names and shortcuts of the tools are used once", () => {
  const keys = textTools.flatMap((x) => x.key ?? []);
  assert.equal(new Set(keys).size, keys.length);
  assert.equal(new Set(textTools.map((x) => x.name)).size, textTools.length);
});
