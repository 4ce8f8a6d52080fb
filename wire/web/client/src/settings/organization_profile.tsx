// Name, description, icon and data retention of the organization.
import * as api from "../api/administration.ts";
import { plural, t } from "../i18n/text.ts";
import { read } from "../store/store.ts";
import { Choice, Switch } from "./fields.tsx";
import { Allowed, SettingsForm } from "./forms.tsx";

export function OrganizationProfile() {
  const realm = read("realm");
  const flag = (name: string, label: string) => (
    <Switch label={label} value={Boolean(realm["realm_" + name])} save={(v) => api.changeRealm({ [name]: v })} />
  );
  return (
    <Allowed when={read("me").is_admin} reason={t("Only administrators can change this.")}>
      <SettingsForm
        button={t("Save")}
        keep
        fields={[
          { name: "name", label: t("Name of the organization"), value: realm.realm_name, required: true },
          { name: "description", label: t("Description"), kind: "area", value: realm.realm_description },
        ]}
        run={(v) => api.changeRealm({ name: v.text("name"), description: v.text("description") })}
      />
      <SettingsForm
        title={t("Icon")}
        button={t("Upload icon")}
        fields={[{ name: "file", label: t("Picture"), kind: "file", accept: "image/*", required: true }]}
        run={(v) => api.uploadIcon(v.file("file"))}
      />
      {flag("invite_required", t("Only invited users can join"))}
      {flag("name_changes_disabled", t("Users cannot change their names"))}
      {flag("email_changes_disabled", t("Users cannot change their addresses"))}
      {flag("avatar_changes_disabled", t("Users cannot change their pictures"))}
      {flag("enable_read_receipts", t("Read receipts"))}
      {flag("inline_image_preview", t("Previews of images"))}
      {flag("inline_url_embed_preview", t("Previews of links"))}
      {flag("allow_message_editing", t("Messages can be edited"))}
    </Allowed>
  );
}

const forever = -1;

export function Retention() {
  const days = Number(read("realm").realm_message_retention_days ?? forever);
  const usual = [forever, 30, 90, 180, 365, 730];
  const list = usual.includes(days) ? usual : [...usual, days];
  return (
    <Allowed when={read("me").is_owner} reason={t("Only owners can change this.")}>
      <Choice
        label={t("Keep messages")}
        help={t("Older messages are deleted. Channels can have a time of their own.")}
        value={days}
        options={list.map((n) => ({ value: n, label: n === forever ? t("Forever") : plural(n, "{count} day", "{count} days") }))}
        save={(n) => api.changeRealm({ message_retention_days: n === forever ? "unlimited" : n })}
      />
    </Allowed>
  );
}
