// Reducers of settings: of the organization, of the user, and of new users.
import type { RealmEmoji, ServerEvent } from "../api/types.ts";
import { expectOp } from "./ops.ts";
import type { Change } from "./state.ts";

export function changed(c: Change, e: ServerEvent): void {
  expectOp(e, "update", "update_dict", "deactivated");
  if (e.op === "update") c.state.realm = { ...c.state.realm, ["realm_" + e.property]: e.value };
  if (e.op === "update_dict") {
    const values: Record<string, unknown> = {};
    for (const [k, v] of Object.entries(e.data)) {
      const name = e.property === "night_logo" ? "night_" + k.replace(/^night_/, "") : k;
      values["realm_" + name] = v;
    }
    c.state.realm = { ...c.state.realm, ...values };
  }
  if (e.op === "deactivated") c.state.realm = { ...c.state.realm, deactivated: true };
  c.touch("realm");
}

export function userSetting(c: Change, e: ServerEvent): void {
  expectOp(e, "update");
  c.state.settings = { ...c.state.settings, [e.property]: e.value };
  c.touch("settings");
  if (e.property === "enable_drafts_synchronization" && e.value === false) {
    c.state.drafts.clear(); // the server has deleted them, without events
    c.touch("drafts");
  }
}

export function defaultSetting(c: Change, e: ServerEvent): void {
  expectOp(e, "update");
  c.state.defaults = { ...c.state.defaults, [e.property]: e.value };
  c.touch("defaults");
}

export function emoji(c: Change, e: ServerEvent): void {
  expectOp(e, "update", "add", "update_one", "edit");
  const all = c.state.emoji;
  if (e.op === "update") c.state.emoji = new Map(Object.entries(e.realm_emoji as Record<string, RealmEmoji>));
  if (e.op === "add") all.set(e.emoji.id, e.emoji);
  if (e.op === "update_one" || e.op === "edit") all.set(e.emoji_id, { ...all.get(e.emoji_id)!, ...e.data });
  c.touch("emoji");
}

export function domain(c: Change, e: ServerEvent): void {
  expectOp(e, "add", "change", "remove");
  if (e.op === "remove") c.state.domains.delete(e.domain);
  else c.state.domains.set(e.realm_domain.domain, e.realm_domain);
  c.touch("domains");
}

export function exportConsent(c: Change, e: ServerEvent): void {
  c.state.exportConsents.set(e.user_id, e.consented);
  c.touch("exportConsents");
}

export function restarted(c: Change, e: ServerEvent): void {
  const { zulip_version, zulip_feature_level, server_generation } = e;
  c.state.realm = { ...c.state.realm, zulip_version, zulip_feature_level, server_generation };
  c.touch("realm");
}
