// Calls of the window with all channels.
import { request } from "./client.ts";

export interface NewChannel {
  name: string;
  description: string;
  privacy: "public" | "web" | "private" | "private-shared"; // shared: new subscribers see older messages
  announce: boolean;
}

export function subscribe(name: string): Promise<unknown> {
  return request("/users/me/subscriptions", { method: "POST", params: { subscriptions: [{ name }] }, repeatable: true });
}

export function unsubscribe(name: string): Promise<unknown> {
  return request("/users/me/subscriptions", { method: "DELETE", params: { subscriptions: [name] }, repeatable: true });
}

// createChannel creates a channel and subscribes the user to it.
export function createChannel(c: NewChannel): Promise<unknown> {
  const params = {
    subscriptions: [{ name: c.name, description: c.description }],
    invite_only: c.privacy.startsWith("private"),
    is_web_public: c.privacy === "web",
    history_public_to_subscribers: c.privacy !== "private",
    announce: c.announce,
  };
  return request("/users/me/subscriptions", { method: "POST", params });
}

// changeChannel changes properties of a channel, under their names on the wire.
export function changeChannel(id: number, params: Record<string, unknown>): Promise<unknown> {
  return request(`/streams/${id}`, { method: "PATCH", params });
}

export function archive(id: number): Promise<unknown> {
  return request(`/streams/${id}`, { method: "DELETE" });
}

export function getSubscribers(id: number): Promise<{ subscribers: number[] }> {
  return request(`/streams/${id}/members`);
}

export function addSubscribers(name: string, users: number[]): Promise<unknown> {
  const params = { subscriptions: [{ name }], principals: users };
  return request("/users/me/subscriptions", { method: "POST", params, repeatable: true });
}

export function removeSubscribers(name: string, users: number[]): Promise<unknown> {
  const params = { subscriptions: [name], principals: users };
  return request("/users/me/subscriptions", { method: "DELETE", params, repeatable: true });
}

// getChannelsOf returns the channels of a user, as far as the caller can see them.
export function getChannelsOf(user: number): Promise<{ subscribed_channel_ids: number[] }> {
  return request(`/users/${user}/channels`);
}
