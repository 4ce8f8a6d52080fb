// Calls of the window with all channels.
import { request } from "./client.ts";
import type * as answers from "./schema.ts";

export interface NewChannel {
  name: string;
  description: string;
  privacy: "public" | "web" | "private" | "private-shared"; // shared: new subscribers see older messages
  announce: boolean;
  users: number[]; // the subscribers
  params: Record<string, unknown>; // further settings and permissions, under their names on the wire
}

export function subscribe(name: string): Promise<unknown> {
  return request("/users/me/subscriptions", { method: "POST", params: { subscriptions: [{ name }] }, repeatable: true });
}

export function unsubscribe(name: string): Promise<unknown> {
  return request("/users/me/subscriptions", { method: "DELETE", params: { subscriptions: [name] }, repeatable: true });
}

// createChannel creates a channel and subscribes users to it.
export function createChannel(c: NewChannel): Promise<unknown> {
  const params = {
    subscriptions: [{ name: c.name, description: c.description }],
    invite_only: c.privacy.startsWith("private"),
    is_web_public: c.privacy === "web",
    history_public_to_subscribers: c.privacy !== "private",
    announce: c.announce,
    principals: c.users,
    ...c.params,
  };
  return request("/users/me/subscriptions", { method: "POST", params });
}

// findChannel returns the id of a channel of a name.
export function findChannel(name: string): Promise<answers.GetGetStreamIdAnswer> {
  return request("/get_stream_id", { params: { stream: name } });
}

// changeChannel changes properties of a channel, under their names on the wire.
export function changeChannel(id: number, params: Record<string, unknown>): Promise<unknown> {
  return request(`/streams/${id}`, { method: "PATCH", params });
}

export function archive(id: number): Promise<unknown> {
  return request(`/streams/${id}`, { method: "DELETE" });
}

export function getSubscribers(id: number): Promise<answers.GetStreamsStreamIdMembersAnswer> {
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

export function createFolder(name: string, description: string): Promise<answers.PostChannelFoldersCreateAnswer> {
  return request("/channel_folders/create", { method: "POST", params: { name, description } });
}

// changeFolder changes properties of a folder, under their names on the wire.
export function changeFolder(id: number, params: Record<string, unknown>): Promise<unknown> {
  return request(`/channel_folders/${id}`, { method: "PATCH", params });
}

export function orderFolders(order: number[]): Promise<unknown> {
  return request("/channel_folders", { method: "PATCH", params: { order } });
}

// getChannelsOf returns the channels of a user, as far as the caller can see them.
export function getChannelsOf(user: number): Promise<answers.GetUsersUserIdChannelsAnswer> {
  return request(`/users/${user}/channels`);
}
