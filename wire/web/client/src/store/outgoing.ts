import type { Destination } from "../api/endpoints.ts";

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
