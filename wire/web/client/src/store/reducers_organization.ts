// Reducers of settings: of the organization, of the user, and of new users.
import { replace, unknownOp, type Reducer } from "./reducer.ts";

export const changed: Reducer<"realm"> = (c, e) => {
  const { realm } = c.state;
  if (e.op === "update") replace(c, "realm", { ...realm, ["realm_" + e.property]: e.value });
  else if (e.op === "update_dict") {
    const values = Object.entries(e.data).map(([name, value]) => ["realm_" + name, value]);
    replace(c, "realm", { ...realm, ...Object.fromEntries(values) });
  } else if (e.op === "deactivated") replace(c, "realm", { ...realm, deactivated: true });
  else unknownOp(e);
};

export const userSetting: Reducer<"user_settings"> = (c, e) => {
  if (e.op !== "update") unknownOp(e.op);
  replace(c, "settings", { ...c.state.settings, [e.property]: e.value });
  if (e.property === "enable_drafts_synchronization" && e.value === false) {
    c.state.drafts.clear(); // the server has deleted them, without events
    c.touch("drafts");
  }
};

export const defaultSetting: Reducer<"realm_user_settings_defaults"> = (c, e) => {
  if (e.op !== "update") unknownOp(e.op);
  replace(c, "defaults", { ...c.state.defaults, [e.property]: e.value });
};

export const emoji: Reducer<"realm_emoji"> = (c, e) => {
  const all = c.state.emoji;
  if (e.op === "update") c.state.emoji = new Map(Object.entries(e.realm_emoji));
  else if (e.op === "add") all.set(e.emoji.id, e.emoji);
  else if (e.op === "update_one" || e.op === "edit") all.set(e.emoji_id, { ...all.get(e.emoji_id)!, ...e.data });
  else unknownOp(e);
  c.touch("emoji");
};

export const domain: Reducer<"realm_domains"> = (c, e) => {
  if (e.op === "add" || e.op === "change") c.state.domains.set(e.realm_domain.domain, e.realm_domain);
  else if (e.op === "remove") c.state.domains.delete(e.domain);
  else unknownOp(e);
  c.touch("domains");
};

export const exportConsent: Reducer<"realm_export_consent"> = (c, e) => {
  c.state.exportConsents.set(e.user_id, e.consented);
  c.touch("exportConsents");
};

export const restarted: Reducer<"restart"> = (c, e) => {
  const { zulip_version, zulip_feature_level, server_generation } = e;
  replace(c, "realm", { ...c.state.realm, zulip_version, zulip_feature_level, server_generation });
};
