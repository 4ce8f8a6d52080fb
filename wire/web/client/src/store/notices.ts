// Short notices at the edge of the window, such as "Copied" or why something failed.
import { signal } from "@preact/signals";

interface Notice {
  id: number;
  text: string;
  kind: "info" | "error";
}

const shownFor = { info: 4000, error: 8000 }; // milliseconds
const maxNotices = 4;

export const notices = signal<Notice[]>([]); // view state

let last = 0; // view state

export function notify(text: string, kind: Notice["kind"] = "info"): void {
  const id = ++last;
  notices.value = [...notices.value.filter((n) => n.text !== text).slice(1 - maxNotices), { id, text, kind }];
  setTimeout(() => dismiss(id), shownFor[kind]);
}

export function dismiss(id: number): void {
  notices.value = notices.value.filter((n) => n.id !== id);
}
