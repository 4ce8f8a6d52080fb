// Marks topics as resolved, by moving their messages.
import { editMessage, getMessages } from "../api/endpoints.ts";
import { attempt } from "./actions.ts";
import { narrowTo, resolvedMark } from "./narrow.ts";
import { peek } from "./store.ts";

// toggleResolved marks a topic as resolved or not. It returns the new name of the topic, or undefined if nothing changed.
export async function toggleResolved(channel: number, topic: string): Promise<string | undefined> {
  const id = await newestIn(channel, topic);
  if (!id) return undefined;
  const to = topic.startsWith(resolvedMark) ? topic.slice(resolvedMark.length) : resolvedMark + topic;
  const edit = { topic: to, propagate_mode: "change_all", send_notification_to_old_thread: false, send_notification_to_new_thread: true } as const;
  return (await attempt(editMessage(id, edit))) ? to : undefined;
}

// newestIn returns a message of a topic, 0 if there is none. If none was fetched yet, it asks the server.
export async function newestIn(channel: number, topic: string): Promise<number> {
  let id = 0;
  for (const m of peek().messages.values()) {
    if (m.stream_id === channel && m.subject.toLowerCase() === topic.toLowerCase()) id = Math.max(id, m.id);
  }
  if (id) return id;
  const answer = await attempt(getMessages({ anchor: "newest", before: 1, after: 0, narrow: narrowTo({ channel, topic }) }));
  return answer?.messages.at(-1)?.id ?? 0;
}
