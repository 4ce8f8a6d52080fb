// The permissions of the organization: for each, the group that has it.
import { changePermission } from "../api/administration.ts";
import type { Limits } from "../api/types.ts";
import { t } from "../i18n/text.ts";
import { read } from "../store/store.ts";
import { hasEffect } from "../forms/effect.ts";
import { Allowed, Card } from "../forms/forms.tsx";
import { GroupChoice } from "../people/group_choice.tsx";
import { permissionOf } from "../store/queries.ts";

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
    case "can_start_calls_group":
      return t("Start video calls");
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

// areas are the headings of the page. A permission that none names is shown at the end.
function areas(): { title: string; names: string[] }[] {
  return [
    { title: t("Joining"), names: ["can_invite_users_group", "create_multiuse_invite_group"] },
    {
      title: t("Channels"),
      names: ["can_create_public_channel_group", "can_create_web_public_channel_group", "can_create_private_channel_group", "can_add_subscribers_group", "can_mention_many_users_group"],
    },
    { title: t("Topics"), names: ["can_set_topics_policy_group", "can_resolve_topics_group", "can_move_messages_between_topics_group", "can_move_messages_between_channels_group"] },
    { title: t("Messages"), names: ["can_delete_any_message_group", "can_delete_own_message_group", "can_set_delete_message_policy_group", "can_summarize_topics_group", "can_start_calls_group"] },
    { title: t("Direct messages"), names: ["direct_message_initiator_group", "direct_message_permission_group"] },
    { title: t("People and groups"), names: ["can_access_all_users_group", "can_create_groups", "can_manage_all_groups"] },
    { title: t("Bots and emoji"), names: ["can_create_bots_group", "can_create_write_only_bots_group", "can_add_custom_emoji_group"] },
  ];
}

export function Permissions() {
  const all = read("realm").server_supported_permission_settings?.realm ?? {};
  const list = areas();
  const named = new Set(list.flatMap((x) => x.names));
  list.push({ title: t("More"), names: Object.keys(all).filter((name) => !named.has(name) && hasEffect(name)) });
  return (
    <Allowed when={read("me").is_admin} reason={t("Only administrators can change permissions.")}>
      {list.filter((area) => area.names.length > 0).map((area) => (
        <Card key={area.title} title={area.title}>
          {area.names.map((name) => all[name] && <Permission key={name} name={name} limits={all[name]} />)}
        </Card>
      ))}
    </Allowed>
  );
}

function Permission({ name, limits }: { name: string; limits: Limits }) {
  const value = permissionOf(read("realm"), "realm_" + name);
  if (value === undefined || !hasEffect(name)) return null;
  return <GroupChoice label={labelOf(name)} value={value} limits={limits} save={(v) => changePermission(name, v)} />;
}
