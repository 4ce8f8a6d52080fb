// The permissions of the organization: for each, the group that has it.
import { changePermission } from "../api/administration.ts";
import type { GroupSetting, UserGroup } from "../api/types.ts";
import { t } from "../i18n/text.ts";
import { userName } from "../store/queries.ts";
import { read } from "../store/store.ts";
import { Choice } from "./fields.tsx";
import { Allowed } from "./forms.tsx";

export interface Limits {
  require_system_group: boolean;
  allow_internet_group: boolean;
  allow_nobody_group: boolean;
  allow_everyone_group: boolean;
  allowed_system_groups: string[];
}

const several = -1; // the choice for a value with several users and groups

// groupName returns the name of a group as people see it.
export function groupName(g: UserGroup | undefined): string {
  switch (g?.name) {
    case "role:nobody":
      return t("Nobody");
    case "role:owners":
      return t("Owners");
    case "role:administrators":
      return t("Administrators and owners");
    case "role:moderators":
      return t("Moderators and above");
    case "role:fullmembers":
      return t("Full members and above");
    case "role:members":
      return t("All members");
    case "role:everyone":
      return t("Everyone, with guests");
    case "role:internet":
      return t("Everyone on the internet");
  }
  return g?.name ?? t("Unknown group");
}

function labelOf(setting: string): string {
  switch (setting) {
    case "can_access_all_users_group":
      return t("See all users");
    case "can_add_custom_emoji_group":
      return t("Add custom emoji");
    case "can_add_subscribers_group":
      return t("Subscribe others to channels");
    case "can_create_bots_group":
      return t("Create bots");
    case "can_create_groups":
      return t("Create user groups");
    case "can_create_private_channel_group":
      return t("Create private channels");
    case "can_create_public_channel_group":
      return t("Create public channels");
    case "can_create_web_public_channel_group":
      return t("Create channels that the web can read");
    case "can_create_write_only_bots_group":
      return t("Create bots that only send messages");
    case "can_delete_any_message_group":
      return t("Delete any message");
    case "can_delete_own_message_group":
      return t("Delete their own messages");
    case "can_invite_users_group":
      return t("Invite users by email");
    case "can_manage_all_groups":
      return t("Administer all user groups");
    case "can_manage_billing_group":
      return t("Manage billing");
    case "can_mention_many_users_group":
      return t("Notify many users with a mention");
    case "can_move_messages_between_channels_group":
      return t("Move messages to another channel");
    case "can_move_messages_between_topics_group":
      return t("Move messages to another topic");
    case "can_resolve_topics_group":
      return t("Resolve topics");
    case "can_set_delete_message_policy_group":
      return t("Choose who deletes messages in a channel");
    case "can_set_topics_policy_group":
      return t("Choose how a channel uses topics");
    case "can_summarize_topics_group":
      return t("Summarize topics");
    case "create_multiuse_invite_group":
      return t("Create invitation links");
    case "direct_message_initiator_group":
      return t("Start direct conversations");
    case "direct_message_permission_group":
      return t("Be in direct conversations: at least one person");
    case "workplace_users_group":
      return t("Workplace users");
  }
  return setting;
}

export function Permissions() {
  const all = (read("realm").server_supported_permission_settings?.realm ?? {}) as Record<string, Limits>;
  return (
    <Allowed when={read("me").is_admin} reason={t("Only administrators can change permissions.")}>
      {Object.entries(all).map(([name, limits]) => (
        <Permission key={name} name={name} limits={limits} />
      ))}
    </Allowed>
  );
}

export function fits(g: UserGroup, l: Limits): boolean {
  if (g.deactivated) return false;
  if (!g.is_system_group) return !l.require_system_group;
  if (l.allowed_system_groups.length) return l.allowed_system_groups.includes(g.name);
  if (g.name === "role:internet") return l.allow_internet_group;
  if (g.name === "role:nobody") return l.allow_nobody_group;
  return g.name !== "role:everyone" || l.allow_everyone_group;
}

function Permission({ name, limits }: { name: string; limits: Limits }) {
  const value = read("realm")["realm_" + name] as GroupSetting | undefined;
  if (value === undefined) return null;
  return <GroupChoice label={labelOf(name)} value={value} limits={limits} save={(v) => changePermission(name, v)} />;
}

// GroupChoice is the field of a permission. A value with several users and groups can be kept or replaced by one group.
export function GroupChoice(p: { label: string; value: GroupSetting; limits: Limits; disabled?: boolean; save: (group: number) => Promise<unknown> }) {
  const { value, limits } = p;
  const groups = [...read("groups").values()];
  const options = groups.filter((g) => fits(g, limits) || g.id === value).map((g) => ({ value: g.id, label: groupName(g) }));
  if (typeof value === "object") {
    const parts = value.direct_subgroups.map((id) => groupName(read("groups").get(id)));
    const label = [...parts, ...value.direct_members.map(userName)].join(", ") || t("Nobody");
    options.push({ value: several, label });
  }
  return (
    <Choice
      label={p.label}
      value={typeof value === "number" ? value : several}
      options={options}
      disabled={p.disabled}
      save={(v) => (v === several ? Promise.resolve() : p.save(v))}
    />
  );
}
