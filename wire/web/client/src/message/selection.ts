// What the user points at in the view of messages: the list on the screen, the selected message, and whether the view marks
// messages as read.
import { signal } from "@preact/signals";
import type { Message } from "../api/types.ts";
import { markUnread, takeOwnUnread } from "../store/actions.ts";
import { afterEvent } from "../store/store.ts";
import type { VirtualList } from "../ui/virtual_list.tsx";
import type { Row } from "./rows.ts";

// shownList is the list on the screen, for keyboard shortcuts and menus.
export const shownList = signal<{ list: VirtualList<Row>; key: string } | null>(null); // view state

// selected is the message that the keyboard acts on; 0 for none.
export const selected = signal(0); // view state

// markUnreadFrom marks the message and all later ones of the view as unread.
export function markUnreadFrom(m: Message): void {
  const list = shownIDs().filter((id) => id >= m.id);
  readingSuspended.value = true;
  markUnread(list.length ? list : [m.id]);
}

// readingSuspended is true after the user has marked messages as unread, here or in another session: the view marks none
// as read until the user leaves it or marks them as read.
export const readingSuspended = signal(false); // view state

let shownIDs: () => number[] = () => []; // view state

export function setShownIDs(fn: () => number[]): void {
  shownIDs = fn;
  readingSuspended.value = sessionStorage.getItem(suspendedKey) === location.hash;
  sessionStorage.removeItem(suspendedKey);
}

afterEvent((e) => {
  if (e.type !== "update_message_flags" || e.flag !== "read" || e.op !== "remove" || takeOwnUnread(e.messages)) return;
  const shown = new Set(shownIDs());
  if (e.messages.some((id) => shown.has(id))) readingSuspended.value = true;
});

const suspendedKey = "reading-suspended";

// Loading the page again, which it also does by itself for a new version, is not leaving the view.
addEventListener("pagehide", () => {
  if (readingSuspended.value) sessionStorage.setItem(suspendedKey, location.hash);
});
