// Calls of drafts, scheduled messages, reminders and snippets.
import { request } from "./client.ts";
import type * as answers from "./schema.ts";
import { addressOf, type Destination } from "./endpoints.ts";
import type { Draft } from "./types.ts";

export type DraftText = Omit<Draft, "id">;

export function addDraft(d: DraftText): Promise<answers.PostDraftsAnswer> {
  return request("/drafts", { method: "POST", params: { drafts: [d] }, keepalive: true });
}

export function changeDraft(id: number, d: DraftText): Promise<unknown> {
  return request(`/drafts/${id}`, { method: "PATCH", params: { draft: d }, repeatable: true, keepalive: true });
}

export function deleteDraft(id: number): Promise<unknown> {
  return request(`/drafts/${id}`, { method: "DELETE" });
}

// Repetition is how often a message is sent; "": once.
export type Repetition = "" | "daily" | "weekdays" | "weekly" | "monthly";

// schedule sends a text later, and repeatedly at the local time of this browser.
export function schedule(to: Destination, content: string, at: number, every: Repetition): Promise<unknown> {
  const repeat = every === "" ? undefined : { every, timezone: Intl.DateTimeFormat().resolvedOptions().timeZone };
  const params = { ...addressOf(to), content, scheduled_delivery_timestamp: at, repeat };
  return request("/scheduled_messages", { method: "POST", params });
}

export function cancelScheduled(id: number): Promise<unknown> {
  return request(`/scheduled_messages/${id}`, { method: "DELETE" });
}

export function addSnippet(title: string, content: string): Promise<unknown> {
  return request("/saved_snippets", { method: "POST", params: { title, content } });
}

export function changeSnippet(id: number, title: string, content: string): Promise<unknown> {
  return request(`/saved_snippets/${id}`, { method: "PATCH", params: { title, content } });
}

export function deleteSnippet(id: number): Promise<unknown> {
  return request(`/saved_snippets/${id}`, { method: "DELETE" });
}

export function remind(message: number, at: number, note: string): Promise<unknown> {
  const params = { message_id: message, scheduled_delivery_timestamp: at, note: note || undefined };
  return request("/reminders", { method: "POST", params });
}

export function cancelReminder(id: number): Promise<unknown> {
  return request(`/reminders/${id}`, { method: "DELETE" });
}
