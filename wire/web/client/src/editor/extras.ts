// Extension points of text fields, which are the compose box and the editors of messages. Modules add completions, and
// functions that take pasted or dropped data. Tools are in tools.tsx.
import type { ComponentType } from "preact";

// Completion is one text that a Completer offers.
export interface Completion {
  label: string;
  detail?: string;
  Draw?: ComponentType;
  insert: string; // replaces the part of the text that was matched
  keys?: Record<string, string>; // texts to insert instead when the user chooses with another key than Enter
}

// Match is the answer of a Completer.
export interface Match {
  start: number; // where the completed part begins
  offers: Completion[];
  load?: () => Promise<void>; // loads data with which the completer may have more offers
}

// Completer offers texts that complete the text before the cursor.
export interface Completer {
  // match returns the offers for the text before the cursor, or null. after is the rest of the text.
  match(before: string, after: string): Match | null;
}

export const completers: Completer[] = []; // registry

// DataTaker handles pasted or dropped data. It returns true if it has used them; the later takers then do not get them.
type DataTaker = (data: DataTransfer, area: HTMLTextAreaElement) => boolean;

export const dataTakers: DataTaker[] = []; // registry
