// The state of the compose box: the destination of the message, and its text. It is kept when the view changes.
import { signal } from "@preact/signals";
import type { Conversation } from "../store/narrow.ts";

// Compose is the destination of the message that is being written. A channel message may still lack its topic.
export interface Compose {
  open: boolean;
  channel: number | null; // of a channel message
  topic: string;
  people: number[]; // of a direct message
  direct: boolean;
}

export const compose = signal<Compose>({ open: false, channel: null, topic: "", people: [], direct: false });
export const text = signal("");

// ComposeRequest asks the box to insert a text at the cursor, or to put the cursor into a field.
export interface ComposeRequest {
  insert?: string;
  focus: "text" | "topic" | "people";
}

export const composeRequest = signal<ComposeRequest | null>(null);

// openCompose opens the box for a conversation; without a topic the cursor is put into the field of the topic.
export function openCompose(to: Conversation | { channel: number }, focus?: ComposeRequest["focus"]): void {
  if ("people" in to) {
    compose.value = { ...compose.value, open: true, direct: true, people: to.people };
  } else {
    const topic = "topic" in to ? to.topic : "";
    compose.value = { ...compose.value, open: true, direct: false, channel: to.channel, topic };
  }
  composeRequest.value = { focus: focus ?? ("people" in to || "topic" in to ? "text" : "topic") };
}

export function newDirect(): void {
  compose.value = { ...compose.value, open: true, direct: true, people: [] };
  composeRequest.value = { focus: "people" };
}

export function closeCompose(): void {
  compose.value = { ...compose.value, open: false };
}

export function insertText(insert: string): void {
  composeRequest.value = { insert, focus: "text" };
}
