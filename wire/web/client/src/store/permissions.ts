// The permissions of the user for messages. The server decides; the page only hides actions that it would refuse.
import type { Channel, GroupSetting, Message } from "../api/types.ts";
import { serverNow } from "../api/clock.ts";
import { isInSetting } from "./queries.ts";
import { peek } from "./store.ts";

function inTime(m: Message, limit: number | null | undefined): boolean {
  return limit === null || limit === undefined || serverNow() / 1000 - m.timestamp < limit;
}

export function allowed(setting: GroupSetting | undefined): boolean {
  return isInSetting(peek(), setting, peek().me.user_id);
}

function channelOf(m: Message): Channel | undefined {
  return m.stream_id === undefined ? undefined : peek().channels.get(m.stream_id);
}

// canSummarize reports whether the user can have topics summarized, canTranslate whether messages translated.
export function canSummarize(): boolean {
  return assisted("summaries") && allowed(peek().realm.realm_can_summarize_topics_group);
}

export function canTranslate(): boolean {
  return assisted("translations");
}

function assisted(what: "summaries" | "translations"): boolean {
  const { realm, settings } = peek();
  return realm.server_assistant?.[what] === true && realm.realm_assistant_enabled === true && !settings.hide_ai_features;
}

// canSearchMeaning reports whether the user can search by meaning.
export function canSearchMeaning(): boolean {
  const { realm, settings } = peek();
  return realm.server_assistant?.search_by_meaning === true && realm.realm_meaning_search_enabled === true && !settings.hide_ai_features;
}

export function canEdit(m: Message): boolean {
  const { realm, me } = peek();
  if (m.sender_id !== me.user_id || channelOf(m)?.is_archived || m.submessages.length > 0) return false;
  return realm.realm_allow_message_editing === true && inTime(m, realm.realm_message_content_edit_limit_seconds);
}

export function canDelete(m: Message): boolean {
  const { realm, me, users } = peek();
  const channel = channelOf(m);
  if (channel?.is_archived) return false;
  if (allowed(realm.realm_can_delete_any_message_group) || allowed(channel?.can_delete_any_message_group)) return true;
  const own = m.sender_id === me.user_id || users.get(m.sender_id)?.bot_owner_id === me.user_id;
  if (!own) return false;
  const may = allowed(realm.realm_can_delete_own_message_group) || allowed(channel?.can_delete_own_message_group);
  return may && inTime(m, realm.realm_message_content_delete_limit_seconds);
}

export function canMove(m: Message): boolean {
  const channel = channelOf(m);
  if (!channel || channel.is_archived) return false;
  return canMoveTopic(channel) || canMoveChannel(channel);
}

export function canMoveTopic(channel: Channel): boolean {
  return (
    allowed(peek().realm.realm_can_move_messages_between_topics_group) ||
    allowed(channel.can_move_messages_within_channel_group)
  );
}

export function canMoveChannel(channel: Channel): boolean {
  return (
    allowed(peek().realm.realm_can_move_messages_between_channels_group) ||
    allowed(channel.can_move_messages_out_of_channel_group)
  );
}

export function canResolve(channel: Channel | undefined): boolean {
  if (!channel || channel.is_archived) return false;
  return allowed(peek().realm.realm_can_resolve_topics_group) || allowed(channel.can_resolve_topics_group);
}
