import { request } from "./client.ts";

// sendSubmessage adds data to a message with a widget, such as a vote.
export function sendSubmessage(message: number, data: Record<string, unknown>): Promise<unknown> {
  return request("/submessage", { method: "POST", params: { message_id: message, msg_type: "widget", content: JSON.stringify(data) } });
}
