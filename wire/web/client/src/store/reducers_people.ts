// Reducers of users: accounts, presence, status, groups, bots, muted users.
import { type EventOf, FieldType, Role, type User, type UserStatus } from "../api/types.ts";
import { replace, unknownOp, type Reducer } from "./reducer.ts";
import { refilterHome } from "./reducers_channels.ts";
import { type Change, namesUsers } from "./state.ts";

export const user: Reducer<"realm_user"> = (c, e) => {
  const id = e.person.user_id;
  if (e.op === "add") c.state.users.set(id, { ...e.person, is_active: e.person.is_active !== false });
  else if (e.op === "remove") {
    c.state.users.delete(id);
    c.state.statuses.delete(id);
    c.touch("statuses");
  } else if (e.op === "update") updateUser(c, e.person);
  else unknownOp(e);
  c.touch("users");
};

function updateUser(c: Change, p: Extract<EventOf<"realm_user">, { op: "update" }>["person"]): void {
  const { user_id: id, ...changed } = p;
  const old = c.state.users.has(id) ? c.state.users.get(id) : undefined;
  if ("is_active" in p) {
    if (old) c.state.users.set(id, { ...old, is_active: p.is_active });
    if (!p.is_active) removeFromGroups(c, id);
    return;
  }
  if (!old && c.state.realm.realm_users_incomplete) return; // it is fetched with the new value when it is shown
  if (!old) throw new Error(`user ${id} does not exist`);
  const now: User = { ...old };
  const me = { ...c.state.me };
  if ("new_email" in p) now.email = p.new_email;
  else if ("role" in p) {
    Object.assign(now, { role: p.role, ...rightsOf(p.role) });
    Object.assign(me, rightsOf(p.role));
  } else if ("custom_profile_field" in p) now.profile_data = withField(now, p.custom_profile_field);
  else if ("avatar_source" in p) {
    now.avatar_url = p.avatar_url;
    now.avatar_version = p.avatar_version;
    me.avatar_source = p.avatar_source;
  } else {
    Object.assign(now, changed);
    if ("full_name" in p) me.full_name = p.full_name;
    if ("delivery_email" in p) me.delivery_email = p.delivery_email ?? "";
  }
  c.state.users.set(id, now);
  if (id !== c.state.me.user_id) return;
  replace(c, "me", me);
  if ("role" in p) replace(c, "invitesVersion", c.state.invitesVersion + 1);
}

function rightsOf(role: number): Pick<User, "is_admin" | "is_owner" | "is_guest"> {
  return { is_admin: role <= Role.admin, is_owner: role === Role.owner, is_guest: role === Role.guest };
}

interface FieldChange {
  id: number;
  value: string | null;
  rendered_value?: string;
}

function withField(u: User, f: FieldChange): User["profile_data"] {
  if (!u.profile_data && u.is_bot) return u.profile_data;
  const data = { ...u.profile_data };
  const { id, value, ...rendered } = f;
  if (value === null) delete data[id];
  else data[id] = { value, ...rendered };
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
  for (const [name, setting] of Object.entries(o)) {
    if (!name.includes("_group") || !namesUsers(setting) || !setting.direct_members.includes(id)) continue;
    const direct_members = setting.direct_members.filter((x) => x !== id);
    out = { ...out, [name]: { ...setting, direct_members } };
  }
  return out;
}

// profileFields replaces the fields. Values of removed fields and of removed choices disappear from all users.
export const profileFields: Reducer<"custom_profile_fields"> = (c, e) => {
  replace(c, "profileFields", e.fields);
  const choices = new Map<string, object | null>();
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
};

export const muted: Reducer<"muted_users"> = (c, e) => {
  replace(c, "mutedUsers", new Map(e.muted_users.map((x) => [x.id, x.timestamp])));
  refilterHome(c);
};

export const presence: Reducer<"presence"> = (c, e) => {
  if ("presences" in e) {
    for (const [id, p] of Object.entries(e.presences)) c.state.presences.set(Number(id), p);
  } else {
    const { status, timestamp } = e.presence.website;
    const old = c.state.presences.get(e.user_id) ?? { active_timestamp: 0, idle_timestamp: 0 };
    const active = status === "active" ? timestamp : old.active_timestamp;
    c.state.presences.set(e.user_id, { active_timestamp: active, idle_timestamp: timestamp });
  }
  c.touch("presences");
};

// status merges the members of the event; empty ones disappear.
export const status: Reducer<"user_status"> = (c, e) => {
  const { away, status_text, emoji_name, emoji_code, reaction_type } = { ...c.state.statuses.get(e.user_id), ...e };
  const now: UserStatus = {};
  if (away) now.away = away;
  if (status_text) now.status_text = status_text;
  if (emoji_name && reaction_type) Object.assign(now, { emoji_name, emoji_code, reaction_type });
  if (Object.keys(now).length) c.state.statuses.set(e.user_id, now);
  else c.state.statuses.delete(e.user_id);
  c.touch("statuses");
};

export const bot: Reducer<"realm_bot"> = (c, e) => {
  const { bots } = c.state;
  const old = bots.get(e.bot.user_id);
  if (e.op === "add") bots.set(e.bot.user_id, e.bot);
  else if (e.op === "update") {
    if (old) bots.set(e.bot.user_id, { ...old, ...e.bot });
  } else if (e.op === "delete") bots.delete(e.bot.user_id);
  else unknownOp(e);
  c.touch("bots");
};

export const group: Reducer<"user_group"> = (c, e) => {
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
      if (g.member_count !== undefined) {
        const by = e.op === "add_members" ? e.user_ids.length : -e.user_ids.length;
        groups.set(e.group_id, { ...groups.get(e.group_id)!, member_count: g.member_count + by });
      }
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
};
