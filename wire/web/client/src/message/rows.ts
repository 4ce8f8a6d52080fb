// The rows of a list of messages: days, conversations, messages, and those that are being sent.
import type { Message } from "../api/types.ts";
import type { Outgoing } from "../store/outgoing.ts";
import { conversationOfMessage, placeKey, type Conversation } from "../store/narrow.ts";
import { dayOf } from "../ui/time.ts";

export type Row =
  | { kind: "day"; key: string; at: number }
  | { kind: "conversation"; key: string; place: Conversation; first: Message | null }
  | { kind: "unread"; key: string }
  | { kind: "message"; key: string; message: Message; head: boolean }
  | { kind: "outgoing"; key: string; outgoing: Outgoing; head: boolean };

interface RowOptions {
  me: number;
  interleaved: boolean; // several conversations: each gets a heading
  firstUnread: number | null; // before it is the mark of new messages
}

const groupFor = 600; // seconds after which the same sender gets a new head

export function rowsOf(messages: readonly Message[], outgoing: readonly Outgoing[], o: RowOptions): Row[] {
  const rows: Row[] = [];
  let day = 0;
  let place = "";
  let sender = 0;
  let at = 0;
  const open = (where: Conversation, time: number, from: number, first: Message | null, id: string): boolean => {
    let head = from !== sender || time - at > groupFor;
    const today = dayOf(time);
    if (today !== day) {
      rows.push({ kind: "day", key: `day-${today}-${id}`, at: time });
      day = today;
      head = true;
      place = "";
    }
    const key = placeKey(where, o.me);
    if (o.interleaved && key !== place) {
      rows.push({ kind: "conversation", key: `place-${id}`, place: where, first });
      head = true;
    }
    place = key;
    sender = from;
    at = time;
    return head;
  };
  for (const m of messages) {
    const before = rows.length;
    let head = open(conversationOfMessage(m, o.me), m.timestamp, m.sender_id, m, String(m.id));
    if (m.id === o.firstUnread) {
      rows.splice(before, 0, { kind: "unread", key: "unread" });
      head = true;
    }
    rows.push({ kind: "message", key: String(m.id), message: m, head });
  }
  for (const x of outgoing) {
    const head = open(x.to, x.timestamp, o.me, null, x.localID);
    rows.push({ kind: "outgoing", key: "out-" + x.localID, outgoing: x, head });
  }
  return rows;
}

export function estimateRow(r: Row): number {
  switch (r.kind) {
    case "day":
      return 36;
    case "conversation":
      return 44;
    case "unread":
      return 24;
    case "outgoing":
      return 28 + Math.ceil(r.outgoing.content.length / 90) * 22;
    case "message": {
      const text = r.message.content;
      const images = text.includes("message_inline_image") ? 120 : 0;
      const lines = Math.min(Math.ceil(text.length / 110) * 22, 600); // long texts are shortened
      return (r.head ? 30 : 8) + lines + images + (r.message.reactions.length ? 30 : 0);
    }
  }
}
