// Users of a large organization that the registration does not list; an extension of the protocol.
import { request } from "./client.ts";
import type * as answers from "./schema.ts";

export interface PeopleQuery {
  query: string;
  kind?: "people" | "bots";
  deactivated?: "also" | "only";
  offset?: number;
  channel_id?: number; // only subscribers
  group_id?: number; // only direct members
}

export function fetchPeople(user_ids: number[]): Promise<answers.GetPeopleAnswer> {
  return request("/people", { params: { user_ids, client_gravatar: false } });
}

export function searchPeople(q: PeopleQuery): Promise<answers.GetPeopleAnswer> {
  return request("/people", { params: { ...q, client_gravatar: false } });
}
