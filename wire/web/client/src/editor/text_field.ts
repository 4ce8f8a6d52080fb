// The text of a text field, which is the compose box or the editor of a message, and edits of it.

// Selected is a text with its selected part.
export interface Selected {
  value: string;
  start: number;
  end: number;
}

// Edit replaces the characters between two positions. Then it selects a part of the text, or puts the cursor after the new
// characters.
export interface Edit {
  from: number;
  to: number;
  insert: string;
  select?: [number, number];
}

// insert puts a text at the cursor, so that the browser can undo it.
export function insert(area: HTMLTextAreaElement, s: string): void {
  area.focus();
  if (document.execCommand("insertText", false, s)) return; // the field has had its event
  area.setRangeText(s, area.selectionStart, area.selectionEnd, "end");
  changed(area);
}

// changed tells the owner of a text field that its text is another one.
export function changed(area: HTMLTextAreaElement): void {
  area.dispatchEvent(new Event("input", { bubbles: true }));
}

// change edits a text field as a function of its selection says.
export function change(area: HTMLTextAreaElement, edit: (s: Selected) => Edit): void {
  const e = edit({ value: area.value, start: area.selectionStart, end: area.selectionEnd });
  area.setSelectionRange(e.from, e.to);
  insert(area, e.insert);
  if (e.select) area.setSelectionRange(...e.select);
}

// continueList begins a new entry of the list that the cursor is in. In an empty entry it ends the list. It returns false
// outside of lists.
export function continueList(area: HTMLTextAreaElement): boolean {
  const { selectionStart: at, selectionEnd, value } = area;
  const start = value.lastIndexOf("\n", at - 1) + 1;
  const entry = /^(\s*)(?:([-*+])|(\d{1,6})([.)])) /.exec(value.slice(start, at));
  if (!entry || at !== selectionEnd) return false;
  const [mark, indent, bullet, number, point] = entry;
  const end = value.indexOf("\n", at);
  if (value.slice(start + mark.length, end < 0 ? undefined : end).trim() === "") {
    area.setSelectionRange(start, at);
    insert(area, "\n");
  } else insert(area, `\n${indent}${bullet ?? Number(number) + 1 + point!} `);
  return true;
}
