// The message that is being edited, if any: its row shows an editor instead of the text. The unsaved texts are kept here,
// because a row that leaves the window is not in the document.
import { signal } from "@preact/signals";
import { addDraft } from "../api/saved.ts";
import type { Message } from "../api/types.ts";
import { placeName } from "../store/queries.ts";
import { t } from "../i18n/text.ts";
import { serverNow } from "../api/clock.ts";
import { conversationOfMessage, type Conversation } from "../store/narrow.ts";
import { attempt } from "../store/actions.ts";
import { afterEvent, peek } from "../store/store.ts";
import { notify } from "../store/notices.ts";
import { deletedIn, isMove } from "../store/reducers_messages.ts";

export const editing = signal(0); // view state; 0 for none

// Unsaved is the text of an editor, with the text of the message from which it began.
interface Unsaved {
  source: string;
  text: string;
  place: Conversation;
}

const unsaved = new Map<number, Unsaved>(); // view state

export function startEdit(m: Message): void {
  editing.value = m.id;
}

export function stopEdit(): void {
  unsaved.delete(editing.value);
  editing.value = 0;
}

export function saveUnsaved(m: Message, source: string, text: string): void {
  unsaved.set(m.id, { source, text, place: conversationOfMessage(m, peek().me.user_id) });
}

export function unsavedOf(id: number): Unsaved | undefined {
  return unsaved.get(id);
}

// startEdits saves the unsaved text of a message that is deleted as a draft, and says where a moved message is.
export function startEdits(): void {
  afterEvent((e) => {
    if (e.type === "delete_message") for (const id of deletedIn(e)) deleted(id);
    if (e.type === "update_message" && isMove(e) && editing.value && e.message_ids.includes(editing.value)) notifyMoved(editing.value);
  });
}

function deleted(id: number): void {
  const kept = unsaved.get(id);
  unsaved.delete(id);
  if (editing.value !== id) return;
  editing.value = 0;
  if (!kept || kept.text.trim() === "" || kept.text === kept.source) {
    notify(t("The message that you were editing was deleted."), "error");
    return;
  }
  const { place } = kept;
  const to = "channel" in place ? { type: "stream" as const, to: [place.channel], topic: place.topic } : { type: "private" as const, to: place.people, topic: "" };
  void attempt(addDraft({ ...to, content: kept.text, timestamp: Math.floor(serverNow() / 1000) })).then((done) => {
    if (done) notify(t("The message that you were editing was deleted. Your text is in the drafts."), "error");
  });
}

function notifyMoved(id: number): void {
  const m = peek().messages.get(id);
  if (m) notify(t("The message that you are editing was moved to {place}.", { place: placeName(conversationOfMessage(m, peek().me.user_id)) }));
}
