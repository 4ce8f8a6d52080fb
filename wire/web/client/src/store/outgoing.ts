import type { Destination } from "../api/endpoints.ts";
import type { Message } from "../api/types.ts";
import type { State } from "./state.ts";

// Outgoing is a message that the user has sent and the queue has not yet delivered.
export interface Outgoing {
  localID: string;
  queue: string; // with which it was sent
  to: Destination;
  content: string;
  timestamp: number; // seconds
  state: "sending" | "sent" | "unknown" | "failed";
  id?: number; // known once the server has answered
  error?: string; // the server's answer to the last attempt
  failures?: number; // attempts in a row that may or may not have reached the server
}

// mayBeOutgoing reports whether a fetched message can be one of those that are still being sent: answers of GET
// /messages do not name the local id. Messages up to the newest one of the queue are none of them: their event, which
// removes the outgoing one, has been applied.
export function mayBeOutgoing(m: Message, sending: readonly Outgoing[], s: Pick<State, "me" | "queue">): boolean {
  if (m.sender_id !== s.me.user_id || m.id <= s.queue.newest) return false;
  return sending.some((o) => o.id === undefined && o.state !== "failed");
}
