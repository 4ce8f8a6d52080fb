// Calls of user groups.
import { request } from "./client.ts";
import type * as answers from "./schema.ts";

export function createGroup(name: string, description: string, members: number[]): Promise<answers.PostUserGroupsCreateAnswer> {
  return request("/user_groups/create", { method: "POST", params: { name, description, members } });
}

// changeGroup changes properties of a group, under their names on the wire.
export function changeGroup(id: number, params: Record<string, unknown>): Promise<unknown> {
  return request(`/user_groups/${id}`, { method: "PATCH", params });
}

export function changeMembers(id: number, change: { add?: number[]; delete?: number[] }): Promise<unknown> {
  return request(`/user_groups/${id}/members`, { method: "POST", params: change });
}

export function changeSubgroups(id: number, change: { add?: number[]; delete?: number[] }): Promise<unknown> {
  return request(`/user_groups/${id}/subgroups`, { method: "POST", params: change });
}

export function deactivateGroup(id: number): Promise<unknown> {
  return request(`/user_groups/${id}/deactivate`, { method: "POST" });
}
