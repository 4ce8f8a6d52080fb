// Reducers of users: accounts, presence, status, groups, bots, muted users.
import { FieldType, Role, type GroupSetting, type ServerEvent, type User } from "../api/types.ts";
import { expectOp, unknownOp } from "./ops.ts";
import { refilterHome } from "./reducers_channels.ts";
import type { Change, Values } from "./state.ts";

export function user(c: Change, e: ServerEvent): void {
  expectOp(e, "add", "remove", "update");
  const p = e.person;
  const id: number = p.user_id;
  c.touch("users");
  if (e.op === "add") {
    c.state.users.set(id, { ...p, is_active: p.is_active !== false });
  } else if (e.op === "remove") {
    c.state.users.delete(id);
    c.state.statuses.delete(id);
    c.touch("statuses");
  } else {
    updateUser(c, id, p);
  }
}

function updateUser(c: Change, id: number, p: Values): void {
  const old = c.state.users.get(id);
  if (typeof p.is_active === "boolean") {
    if (old) c.state.users.set(id, { ...old, is_active: p.is_active });
    if (!p.is_active) removeFromGroups(c, id);
    return;
  }
  if (!old) throw new Error(`user ${id} does not exist`);
  const now: User = { ...old };
  const mine = id === c.state.me.user_id;
  const me: Values = { ...c.state.me };
  for (const [k, v] of Object.entries(p)) {
    switch (k) {
      case "user_id":
      case "is_active":
        break;
      case "new_email":
        now.email = v;
        me.email = v;
        break;
      case "role":
        Object.assign(now, { role: v, ...rightsOf(v) });
        Object.assign(me, { ...rightsOf(v), is_moderator: v <= Role.moderator });
        break;
      case "custom_profile_field":
        now.profile_data = withField(now, v);
        break;
      case "avatar_url_medium":
      case "avatar_source":
        me[k] = v;
        break;
      default:
        (now as unknown as Values)[k] = v;
        if (k in me) me[k] = v;
    }
  }
  c.state.users.set(id, now);
  if (mine) {
    c.state.me = me as typeof c.state.me;
    c.touch("me");
    if ("role" in p) {
      c.state.invitesVersion++;
      c.touch("invitesVersion");
    }
  }
}

function rightsOf(role: number): Pick<User, "is_admin" | "is_owner" | "is_guest"> {
  return { is_admin: role <= Role.admin, is_owner: role === Role.owner, is_guest: role === Role.guest };
}

function withField(u: User, f: Values): User["profile_data"] {
  if (!u.profile_data && u.is_bot) return u.profile_data;
  const data = { ...u.profile_data };
  if (f.value === null || f.value === undefined) delete data[f.id];
  else data[f.id] = "rendered_value" in f ? { value: f.value, rendered_value: f.rendered_value } : { value: f.value };
  return data;
}

// removeFromGroups removes a deactivated user from groups and from permissions that name them: there is no other event
// about that.
function removeFromGroups(c: Change, id: number): void {
  c.state.realm = withoutUser(c.state.realm, id);
  c.touch("realm");
  for (const [key, ch] of c.state.channels) c.state.channels.set(key, withoutUser(ch, id));
  c.touch("channels");
  for (const [key, g] of c.state.groups) {
    const kept = withoutUser(g, id);
    c.state.groups.set(key, g.members.includes(id) ? { ...kept, members: g.members.filter((x) => x !== id) } : kept);
  }
  c.touch("groups");
}

// withoutUser returns the object with a user removed from its permissions; the same object if there is nothing to do.
function withoutUser<T extends object>(o: T, id: number): T {
  let out = o;
  for (const [name, v] of Object.entries(o)) {
    const setting = v as GroupSetting;
    if (!name.includes("_group") || !setting || typeof setting !== "object") continue;
    if (!setting.direct_members?.includes(id)) continue;
    const direct_members = setting.direct_members.filter((x) => x !== id);
    out = { ...out, [name]: { ...setting, direct_members } };
  }
  return out;
}

// profileFields replaces the fields. Values of removed fields and of removed choices disappear from all users.
export function profileFields(c: Change, e: ServerEvent): void {
  c.state.profileFields = e.fields;
  c.touch("profileFields");
  const choices = new Map<string, Values | null>();
  for (const f of e.fields) choices.set(String(f.id), f.type === FieldType.choice ? JSON.parse(f.field_data) : null);
  const valid = (id: string, value: string): boolean => {
    const of = choices.get(id);
    return of !== undefined && (of === null || value in of);
  };
  for (const [id, u] of c.state.users) {
    const data = Object.entries(u.profile_data ?? {});
    const kept = data.filter(([f, x]) => valid(f, x.value));
    if (kept.length < data.length) c.state.users.set(id, { ...u, profile_data: Object.fromEntries(kept) });
  }
  c.touch("users");
}

export function muted(c: Change, e: ServerEvent): void {
  const list = e.muted_users as { id: number; timestamp: number }[];
  c.state.mutedUsers = new Map(list.map((x) => [x.id, x.timestamp]));
  c.touch("mutedUsers");
  refilterHome(c);
}

export function presence(c: Change, e: ServerEvent): void {
  if (e.presences) {
    for (const [id, p] of Object.entries(e.presences)) {
      c.state.presences.set(Number(id), p as { active_timestamp: number; idle_timestamp: number });
    }
  } else if (e.presence) {
    for (const p of Object.values(e.presence as Record<string, { status: string; timestamp: number }>)) {
      const old = c.state.presences.get(e.user_id) ?? { active_timestamp: 0, idle_timestamp: 0 };
      const active = p.status === "active" ? p.timestamp : old.active_timestamp;
      c.state.presences.set(e.user_id, { active_timestamp: active, idle_timestamp: p.timestamp });
    }
  }
  c.touch("presences");
}

// status merges the members of the event; empty ones disappear.
export function status(c: Change, e: ServerEvent): void {
  const o: Values = { ...c.state.statuses.get(e.user_id) };
  for (const k of ["away", "status_text", "emoji_name", "emoji_code", "reaction_type"]) {
    if (k in e) o[k] = e[k];
    if (o[k] === "" || o[k] === false) delete o[k];
  }
  if (!o.emoji_name) {
    delete o.emoji_code;
    delete o.reaction_type;
  }
  if (Object.keys(o).length) c.state.statuses.set(e.user_id, o);
  else c.state.statuses.delete(e.user_id);
  c.touch("statuses");
}

export function bot(c: Change, e: ServerEvent): void {
  expectOp(e, "add", "update", "delete");
  const id: number = e.bot.user_id;
  if (e.op === "delete") c.state.bots.delete(id);
  else if (e.op === "add" || c.state.bots.has(id)) c.state.bots.set(id, { ...c.state.bots.get(id), ...e.bot });
  c.touch("bots");
}

export function group(c: Change, e: ServerEvent): void {
  const groups = c.state.groups;
  c.touch("groups");
  if (e.op === "add") {
    groups.set(e.group.id, e.group);
    return;
  }
  const g = groups.get(e.group_id);
  if (!g) throw new Error(`user group ${e.group_id} does not exist`);
  const changed = (list: number[], ids: number[], add: boolean): number[] => {
    const rest = list.filter((x) => !ids.includes(x));
    return add ? [...rest, ...ids].sort((a, b) => a - b) : rest;
  };
  switch (e.op) {
    case "remove":
      groups.delete(e.group_id);
      break;
    case "update":
      groups.set(e.group_id, { ...g, ...e.data });
      break;
    case "add_members":
    case "remove_members":
      groups.set(e.group_id, { ...g, members: changed(g.members, e.user_ids, e.op === "add_members") });
      break;
    case "add_subgroups":
    case "remove_subgroups": {
      const ids = changed(g.direct_subgroup_ids, e.direct_subgroup_ids, e.op === "add_subgroups");
      groups.set(e.group_id, { ...g, direct_subgroup_ids: ids });
      break;
    }
    default:
      unknownOp(e);
  }
}
