// The state of the compose box: the destination of the message, and its text. When the view changes, a box with a text
// keeps both, and an empty box takes the conversation of the view (../views/follow.ts).
import { computed, signal } from "@preact/signals";
import { type Conversation, conversationOf, placeKey, withoutPosition } from "../store/narrow.ts";
import { read } from "../store/store.ts";
import type { Term } from "../api/types.ts";

// Compose is the destination of the message that is being written. A channel message may still lack its topic.
export interface Compose {
  open: boolean;
  channel: number | null; // of a channel message
  topic: string;
  people: number[]; // of a direct message
  direct: boolean;
}

export const compose = signal<Compose>({ open: false, channel: null, topic: "", people: [], direct: false }); // view state
export const text = signal(""); // view state

// placeOfBox returns the conversation to which the box sends, or null while the user has chosen none.
export function placeOfBox(c: Compose): Conversation | null {
  if (c.direct) return c.people.length ? { people: c.people } : null;
  return c.channel === null ? null : { channel: c.channel, topic: c.topic.trim() };
}

// writingTo is the key of the conversation to which the user is writing a text, or null.
export const writingTo = computed<string | null>(() => {
  const place = placeOfBox(compose.value);
  return compose.value.open && text.value.trim() && place ? placeKey(place, read("me").user_id) : null;
});

// ViewPlace is what a view offers as a destination: its conversation, or its channel without a topic.
type ViewPlace = Conversation | { channel: number };

// placeOfView returns the destination that a view offers, or null for views of several channels or conversations.
export function placeOfView(terms: readonly Term[] | null): ViewPlace | null {
  const rest = withoutPosition(terms ?? []);
  const [first] = rest;
  if (rest.length === 1 && first!.operator === "channel" && !first!.negated && typeof first!.operand === "number") return { channel: first!.operand };
  return conversationOf(rest);
}

// isElsewhere reports whether a conversation is not part of the place of a view.
export function isElsewhere(place: Conversation, view: ViewPlace, me: number): boolean {
  if ("people" in view || "topic" in view) return placeKey(place, me) !== placeKey(view, me);
  return !("channel" in place) || place.channel !== view.channel;
}

// retarget changes the destination of the box and keeps its text. A topic that the user has typed for the same channel
// stays.
export function retarget(to: ViewPlace): void {
  const c = compose.peek();
  if ("people" in to) compose.value = { ...c, direct: true, people: to.people };
  else {
    const kept = !c.direct && c.channel === to.channel ? c.topic : "";
    compose.value = { ...c, direct: false, channel: to.channel, topic: "topic" in to ? to.topic : kept };
  }
}

// ComposeRequest asks the box to insert a text at the cursor, or to put the cursor into a field.
interface ComposeRequest {
  insert?: string;
  focus: "text" | "topic" | "people";
}

export const composeRequest = signal<ComposeRequest | null>(null); // view state

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
