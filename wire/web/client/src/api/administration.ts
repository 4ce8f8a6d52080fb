// Calls of the settings: the user's account, bots, and the administration of the organization.
import { request } from "./client.ts";
import type * as answers from "./schema.ts";
import type { EmojiChoice, GroupSetting, Invite } from "./types.ts";

type Values = Record<string, unknown>;

interface NewBot {
  full_name: string;
  short_name: string;
  bot_type: number;
  service_name?: string;
  config_data?: Record<string, string>;
  payload_url?: string;
  interface_type?: number;
}

export const BotType = { generic: 1, incoming: 2, outgoing: 3 } as const;

export function getBots(): Promise<answers.GetBotsAnswer> {
  return request("/bots");
}

export function createBot(b: NewBot): Promise<answers.PostBotsAnswer> {
  const { payload_url, ...rest } = b;
  // The protocol wants this text as JSON, with quotes.
  const url = payload_url === undefined ? undefined : JSON.stringify(payload_url);
  return request("/bots", { method: "POST", params: { ...rest, payload_url: url } });
}

export function deactivateBot(id: number): Promise<unknown> {
  return request(`/bots/${id}`, { method: "DELETE" });
}

export function renewBotKey(id: number): Promise<answers.PostBotsBotIdApiKeyRegenerateAnswer> {
  return request(`/bots/${id}/api_key/regenerate`, { method: "POST" });
}

export function getDeliveries(bot: number): Promise<answers.GetBotsBotIdDeliveriesAnswer> {
  return request(`/bots/${bot}/deliveries`);
}

export type BotCommand = answers.GetBotCommandsAnswer["commands"][number];

export function getBotCommands(channel?: number): Promise<answers.GetBotCommandsAnswer> {
  return request("/bot_commands", channel === undefined ? {} : { params: { channel_id: channel } });
}

export function setBotCommands(bot: number, commands: Omit<BotCommand, "bot_id">[]): Promise<unknown> {
  return request(`/bots/${bot}/commands`, { method: "PUT", params: { commands } });
}

export function testBot(bot: number): Promise<answers.PostBotsBotIdDeliveriesAnswer> {
  return request(`/bots/${bot}/deliveries`, { method: "POST" });
}

export function fetchKey(password: string): Promise<answers.PostFetchApiKeyAnswer> {
  return request("/fetch_api_key", { method: "POST", params: { password } });
}

// renewKey replaces the API key of the user, who has entered the password for fetchKey a moment ago.
export function renewKey(): Promise<answers.PostUsersMeApiKeyRegenerateAnswer> {
  return request("/users/me/api_key/regenerate", { method: "POST" });
}

// ApiKey is a further key of the user. Times are seconds since 1970.
export type ApiKey = answers.GetUsersMeApiKeysAnswer["api_keys"][number];

export function getKeys(): Promise<answers.GetUsersMeApiKeysAnswer> {
  return request("/users/me/api_keys");
}

// KeyScope is what a new key is limited to.
export interface KeyScope {
  rights: string[];
  channels?: { channel_id: number }[];
}

// addKey makes a key that ends after a number of seconds; 0 means never. Without a scope it has all rights of the account.
export function addKey(
  label: string,
  seconds: number,
  password: string,
  scope?: KeyScope,
): Promise<answers.PostUsersMeApiKeysAnswer> {
  const limit = scope ? { scope } : {};
  return request("/users/me/api_keys", { method: "POST", params: { label, expires_in: seconds, password, ...limit } });
}

export function revokeKey(id: number): Promise<unknown> {
  return request(`/users/me/api_keys/${id}`, { method: "DELETE" });
}

// confirmSession checks the password once more. For some minutes the session can then do dangerous acts.
export function confirmSession(password: string): Promise<unknown> {
  return request("/users/me/confirmation", { method: "POST", params: { password } });
}

// deactivateMyself ends the account of the user.
export function deactivateMyself(): Promise<unknown> {
  return request("/users/me", { method: "DELETE" });
}

export function changeBot(id: number, params: Values): Promise<unknown> {
  return request(`/bots/${id}`, { method: "PATCH", params });
}

export function getAttachments(): Promise<answers.GetAttachmentsAnswer> {
  return request("/attachments");
}

export function deleteAttachment(id: number): Promise<unknown> {
  return request(`/attachments/${id}`, { method: "DELETE" });
}

export function uploadAvatar(file: File): Promise<unknown> {
  return request("/users/me/avatar", { method: "POST", form: withFile(file) });
}

export function removeAvatar(): Promise<unknown> {
  return request("/users/me/avatar", { method: "DELETE" });
}

// setStatus sets the status of the user. An empty text and no emoji remove it.
export function setStatus(text: string, emoji: EmojiChoice | null): Promise<unknown> {
  const { emoji_name = "", emoji_code, reaction_type } = emoji ?? {};
  return request("/users/me/status", { method: "POST", params: { status_text: text, emoji_name, emoji_code, reaction_type } });
}

export function changeProfile(data: { id: number; value: string | number[] }[]): Promise<unknown> {
  return request("/users/me/profile_data", { method: "PATCH", params: { data } });
}

export function clearProfile(ids: number[]): Promise<unknown> {
  return request("/users/me/profile_data", { method: "DELETE", params: { data: ids } });
}

export function changeAlertWords(op: "add" | "remove", words: string[]): Promise<unknown> {
  return request("/users/me/alert_words", { method: op === "add" ? "POST" : "DELETE", params: { alert_words: words } });
}

export function muteUser(op: "add" | "remove", id: number): Promise<unknown> {
  return request(`/users/me/muted_users/${id}`, { method: op === "add" ? "POST" : "DELETE" });
}

export function changeRealm(params: Values): Promise<unknown> {
  return request("/realm", { method: "PATCH", params });
}

export function addDomain(domain: string, below: boolean): Promise<unknown> {
  return request("/realm/domains", { method: "POST", params: { domain, allow_subdomains: below } });
}

export function removeDomain(domain: string): Promise<unknown> {
  return request(`/realm/domains/${encodeURIComponent(domain)}`, { method: "DELETE" });
}

// closeRealm deactivates the organization.
export function closeRealm(): Promise<unknown> {
  return request("/realm/deactivate", { method: "POST" });
}

// changeDefaults changes the settings that new users begin with.
export function changeDefaults(params: Values): Promise<unknown> {
  return request("/realm/user_settings_defaults", { method: "PATCH", params });
}

export function changePermission(name: string, value: GroupSetting): Promise<unknown> {
  return changeRealm({ [name]: { new: value } });
}

export function uploadIcon(file: File): Promise<unknown> {
  return request("/realm/icon", { method: "POST", form: withFile(file) });
}

export function removeIcon(): Promise<unknown> {
  return request("/realm/icon", { method: "DELETE" });
}

// uploadLogo stores the logo for the light or the dark theme.
export function uploadLogo(file: File, night: boolean): Promise<unknown> {
  const form = withFile(file);
  form.append("night", String(night));
  return request("/realm/logo", { method: "POST", form });
}

export function removeLogo(night: boolean): Promise<unknown> {
  return request("/realm/logo", { method: "DELETE", params: { night } });
}

export function changeUser(id: number, params: Values): Promise<unknown> {
  return request(`/users/${id}`, { method: "PATCH", params });
}

export function deactivateUser(id: number): Promise<unknown> {
  return request(`/users/${id}`, { method: "DELETE" });
}

export function reactivateUser(id: number): Promise<unknown> {
  return request(`/users/${id}/reactivate`, { method: "POST" });
}

export function getInvites(): Promise<answers.GetInvitesAnswer> {
  return request("/invites");
}

export function invite(emails: string, role: number, channels: number[], minutes: number | null): Promise<unknown> {
  const params = { invitee_emails: emails, invite_as: role, stream_ids: channels, invite_expires_in_minutes: minutes };
  return request("/invites", { method: "POST", params });
}

export function makeInviteLink(role: number, channels: number[], minutes: number | null): Promise<answers.PostInvitesMultiuseAnswer> {
  const params = { invite_as: role, stream_ids: channels, invite_expires_in_minutes: minutes };
  return request("/invites/multiuse", { method: "POST", params });
}

export function revokeInvite(i: Invite): Promise<unknown> {
  return request(`/invites/${i.is_multiuse ? "multiuse/" : ""}${i.id}`, { method: "DELETE" });
}

export function resendInvite(id: number): Promise<unknown> {
  return request(`/invites/${id}/resend`, { method: "POST" });
}

export function archiveChannel(id: number): Promise<unknown> {
  return request(`/streams/${id}`, { method: "DELETE" });
}

export function setDefaultChannel(id: number, on: boolean): Promise<unknown> {
  return request("/default_streams", { method: on ? "POST" : "DELETE", params: { stream_id: id } });
}

export function addEmoji(name: string, file: File): Promise<unknown> {
  return request(`/realm/emoji/${encodeURIComponent(name)}`, { method: "POST", form: withFile(file) });
}

export function removeEmoji(name: string): Promise<unknown> {
  return request(`/realm/emoji/${encodeURIComponent(name)}`, { method: "DELETE" });
}

export function addLinkifier(pattern: string, template: string): Promise<unknown> {
  return request("/realm/filters", { method: "POST", params: { pattern, url_template: template } });
}

export function changeLinkifier(id: number, pattern: string, template: string): Promise<unknown> {
  return request(`/realm/filters/${id}`, { method: "PATCH", params: { pattern, url_template: template } });
}

export function orderLinkifiers(order: number[]): Promise<unknown> {
  return request("/realm/linkifiers", { method: "PATCH", params: { ordered_linkifier_ids: order } });
}

export function removeLinkifier(id: number): Promise<unknown> {
  return request(`/realm/filters/${id}`, { method: "DELETE" });
}

export function addPlayground(name: string, language: string, template: string): Promise<unknown> {
  const params = { name, pygments_language: language, url_template: template };
  return request("/realm/playgrounds", { method: "POST", params });
}

export function removePlayground(id: number): Promise<unknown> {
  return request(`/realm/playgrounds/${id}`, { method: "DELETE" });
}

export function addProfileField(params: Values): Promise<unknown> {
  return request("/realm/profile_fields", { method: "POST", params });
}

// changeProfileField changes a field, under the names on the wire.
export function changeProfileField(id: number, params: Values): Promise<unknown> {
  return request(`/realm/profile_fields/${id}`, { method: "PATCH", params });
}

export function orderProfileFields(order: number[]): Promise<unknown> {
  return request("/realm/profile_fields", { method: "PATCH", params: { order } });
}

export function removeProfileField(id: number): Promise<unknown> {
  return request(`/realm/profile_fields/${id}`, { method: "DELETE" });
}

export function getExports(): Promise<answers.GetExportRealmAnswer> {
  return request("/export/realm");
}

export function getConsents(): Promise<answers.GetExportRealmConsentsAnswer> {
  return request("/export/realm/consents");
}

export function startExport(kind: string): Promise<unknown> {
  return request("/export/realm", { method: "POST", params: { export_type: kind } });
}

export function deleteExport(id: number): Promise<unknown> {
  return request(`/export/realm/${id}`, { method: "DELETE" });
}

function withFile(file: File): FormData {
  const form = new FormData();
  form.append("file", file);
  return form;
}
