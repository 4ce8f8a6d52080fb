// When a topic is renamed or moved, the view of it and the compose box follow, as in Zulip.
import type { ServerEvent } from "../api/types.ts";
import { compose } from "../compose/state.ts";
import { selected } from "../message/row.tsx";
import { replaceWith, routes } from "../router.ts";
import { conversationOf, listKey, narrowTo } from "../store/narrow.ts";
import { afterEvent, peek } from "../store/store.ts";

export function startFollowing(): void {
  afterEvent((e) => {
    if (e.type === "update_message" && (e.subject !== undefined || e.new_stream_id !== undefined)) follow(e);
  });
}

function follow(e: ServerEvent): void {
  const s = peek();
  const to = { channel: Number(e.new_stream_id ?? e.stream_id), topic: String(e.subject ?? e.orig_subject) };
  if (!s.channels.has(to.channel)) return;
  const moves = (place: { channel: number | null; topic: string }): boolean =>
    place.channel === e.stream_id && place.topic.toLowerCase() === String(e.orig_subject).toLowerCase();
  const whole = e.propagate_mode !== "change_one";
  const c = compose.peek();
  if (whole && !c.direct && moves(c)) compose.value = { ...c, ...to };
  const { terms } = routes.peek().view;
  const place = terms && conversationOf(terms);
  if (!place || !("channel" in place) || !moves(place)) return;
  const left = s.lists.get(listKey(terms))?.ids.length ?? 0;
  const withSelected = whole && (e.message_ids as number[]).includes(selected.peek());
  if (withSelected || left === 0) replaceWith(narrowTo(to));
}
