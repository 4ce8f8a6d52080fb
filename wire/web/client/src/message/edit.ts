// The message that is being edited, if any: its row shows an editor instead of the text.
import { signal } from "@preact/signals";
import type { Message } from "../api/types.ts";

export const editing = signal(0);

export function startEdit(m: Message): void {
  editing.value = m.id;
}

export function stopEdit(): void {
  editing.value = 0;
}
