// Calls of the services that make summaries and translations. They are not sent again: each costs something.
import { request } from "./client.ts";
import type * as answers from "./schema.ts";
import type { Term } from "./types.ts";

const timeout = 60_000; // milliseconds; the server waits 45 s for its service

export function summarize(narrow: Term[], signal: AbortSignal): Promise<answers.GetMessagesSummaryAnswer> {
  return request("/messages/summary", { params: { narrow }, repeatable: false, timeout, signal });
}

// translate returns the text of a message in the language of the user.
export function translate(message: number, language: string, signal: AbortSignal): Promise<answers.GetMessagesMessageIdTranslationAnswer> {
  return request(`/messages/${message}/translation`, { params: { language }, repeatable: false, timeout, signal });
}
