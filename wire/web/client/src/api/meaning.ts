// The search by meaning, which asks a service of the operator's choice. Each search costs something.
import { request } from "./client.ts";
import type * as answers from "./schema.ts";
import type { Term } from "./types.ts";

export function searchByMeaning(query: string, narrow: Term[], signal: AbortSignal): Promise<answers.GetMessagesMeaningAnswer> {
  return request("/messages/meaning", { repeatable: false, params: { query, narrow, client_gravatar: false, allow_empty_topic_name: true }, signal });
}
