// When a topic is renamed or moved, the view of it and the compose box follow, as in Zulip. When the view changes, an empty
// compose box follows it: a text that is written below a conversation goes to that conversation.
import { effect } from "@preact/signals";
import { compose, placeOfView, retarget, text } from "../compose/state.ts";
import { selected } from "../message/selection.ts";
import { replaceWith, routes } from "../store/router.ts";
import { conversationOf, listKey, narrowTo } from "../store/narrow.ts";
import { afterEvent, peek } from "../store/store.ts";
import { isMove, type Move } from "../store/reducers_messages.ts";

export function startFollowing(): void {
  afterEvent((e) => {
    if (e.type === "update_message" && isMove(e)) follow(e);
  });
  let shown = "";
  effect(() => {
    const place = placeOfView(routes.value.view.terms);
    const key = JSON.stringify(place);
    if (key === shown) return; // the same view after a registration
    shown = key;
    if (place && compose.peek().open && !text.peek().trim()) retarget(place);
  });
}

function follow(e: Move): void {
  const s = peek();
  const to = { channel: e.new_stream_id ?? e.stream_id, topic: e.subject ?? e.orig_subject };
  if (!s.channels.has(to.channel)) return;
  const moves = (place: { channel: number | null; topic: string }): boolean =>
    place.channel === e.stream_id && place.topic.toLowerCase() === e.orig_subject.toLowerCase();
  const whole = e.propagate_mode !== "change_one";
  const c = compose.peek();
  if (whole && !c.direct && moves(c)) compose.value = { ...c, ...to };
  const { terms } = routes.peek().view;
  const place = terms && conversationOf(terms);
  if (!place || !("channel" in place) || !moves(place)) return;
  const left = s.lists.get(listKey(terms))?.ids.length ?? 0;
  const withSelected = whole && e.message_ids.includes(selected.peek());
  if (withSelected || left === 0) replaceWith(narrowTo(to));
}
