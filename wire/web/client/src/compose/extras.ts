// Extension points of the compose box. Modules add buttons to its tool row, items to the menu beside the send button,
// and completions to the text field.
import type { ComponentType } from "preact";
import type { Destination } from "../api/endpoints.ts";
import type { IconName } from "../ui/icons.tsx";

export interface ComposeTool {
  id: string;
  label: () => string;
  icon: IconName;
  shown?: () => boolean; // else always
  run(area: HTMLTextAreaElement, button: HTMLElement): void;
}

export const composeTools: ComposeTool[] = [];

export interface SendOption {
  id: string;
  label: () => string;
  icon: IconName;
  run(to: Destination, content: string, sent: () => void): void; // sent empties the box
}

export const sendOptions: SendOption[] = [];

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

export const completers: Completer[] = [];

// ComposePanel is drawn above the text field, for example a list of uploads.
export const composePanels: ComponentType[] = [];

// DataTaker handles pasted or dropped data. It returns true if it has used them; the later takers then do not get them.
export type DataTaker = (data: DataTransfer, area: HTMLTextAreaElement) => boolean;

export const dataTakers: DataTaker[] = [];

// SendCheck runs before a message is sent. If it returns false, the message is not sent; it may call goOn later.
export type SendCheck = (to: Destination, content: string, goOn: () => void) => boolean;

export const sendChecks: SendCheck[] = [];

// slashCommands are the commands at the beginning of a message that the client carries out itself, such as /dark.
export const slashCommands = new Map<string, (rest: string) => void>();
