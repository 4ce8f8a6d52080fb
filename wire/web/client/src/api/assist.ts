// Calls of the services that make summaries and translations. A text is read while it is written, until it is complete.
// Its beginning is not repeated: each costs something.
import { request } from "./client.ts";
import type * as answers from "./schema.ts";
import type { Term } from "./types.ts";

export interface Text {
  html: string;
  complete: boolean;
  error?: string | undefined; // why it will not be complete
}

// summarize calls show with the text of a summary, each time that there is more of it.
export function summarize(narrow: Term[], signal: AbortSignal, show: (text: Text) => void): Promise<void> {
  return write({ narrow }, signal, show);
}

// translate calls show with the text of a message in the language of the user.
export function translate(message: number, language: string, signal: AbortSignal, show: (text: Text) => void): Promise<void> {
  return write({ message_id: message, language }, signal, show);
}

async function write(params: Record<string, unknown>, signal: AbortSignal, show: (text: Text) => void): Promise<void> {
  let a: answers.PostAssistedTextsAnswer = await request("/assisted_texts", { method: "POST", params });
  const path = `/assisted_texts/${a.text_key}`;
  const stop = (): void => void request(path, { method: "DELETE", keepalive: true }).catch(() => undefined); // the server gives it up later
  for (;;) {
    if (signal.aborted) return stop();
    show({ html: a.text, complete: a.complete, error: a.error });
    if (a.complete || a.error) return;
    try {
      a = await request(path, { params: { after: a.characters }, signal });
    } catch (err) {
      if (!signal.aborted) throw err;
    }
  }
}
