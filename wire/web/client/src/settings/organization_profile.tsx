// Name, description, icon and data retention of the organization.
import * as api from "../api/administration.ts";
import { jsonString } from "../api/client.ts";
import { plural, t } from "../i18n/text.ts";
import { attempt } from "../store/actions.ts";
import { read } from "../store/store.ts";
import { Confirm, openDialog } from "../ui/dialogs.tsx";
import { Choice } from "../forms/fields.tsx";
import type { FormName } from "../forms/form_names.ts";
import { Allowed, SettingsForm } from "../forms/forms.tsx";
import { RealmChoice, RealmSwitch } from "./realm_fields.tsx";

function kinds(): { value: number; label: string }[] {
  return [
    { value: 0, label: t("Unspecified") },
    { value: 10, label: t("Business") },
    { value: 20, label: t("Open-source project") },
    { value: 30, label: t("Education, not for profit") },
    { value: 35, label: t("Education, for profit") },
    { value: 40, label: t("Research") },
    { value: 50, label: t("Event or conference") },
    { value: 60, label: t("Non-profit, registered") },
    { value: 70, label: t("Government") },
    { value: 80, label: t("Political group") },
    { value: 90, label: t("Community") },
    { value: 100, label: t("Personal") },
    { value: 1000, label: t("Other") },
  ];
}

export function OrganizationProfile() {
  const realm = read("realm");
  return (
    <>
      <Allowed when={read("me").is_admin} reason={t("Only administrators can change this.")}>
        <SettingsForm
          form="organization-profile"
          button={t("Save")}
          keep
          stored
          fields={[
            { name: "name", label: t("Organization name"), value: realm.realm_name, required: true },
            { name: "description", label: t("Description"), kind: "area", value: realm.realm_description },
          ]}
          run={(v) => api.changeRealm({ name: v.text("name"), description: v.text("description") })}
        />
        <RealmChoice name="org_type" label={t("Organization type")} options={kinds()} />
        <RealmSwitch name="enable_spectator_access" label={t("Visitors without an account can read web-public channels")} />
        <RealmSwitch name="want_advertise_in_communities_directory" label={t("List the organization in the directory of Zulip communities")} />
        <div class="picture-forms">
          <PictureForm form="icon" title={t("Icon")} button={t("Upload icon")} src={realm.realm_icon_url} upload={api.uploadIcon} own={realm.realm_icon_source === "U"} remove={api.removeIcon} />
          <PictureForm form="light-logo" title={t("Logo, light theme")} button={t("Upload logo")} src={realm.realm_logo_url} upload={(f) => api.uploadLogo(f, false)} theme="light" own={realm.realm_logo_source === "U"} remove={() => api.removeLogo(false)} />
          <PictureForm form="dark-logo" title={t("Logo, dark theme")} button={t("Upload dark logo")} src={realm.realm_night_logo_url} upload={(f) => api.uploadLogo(f, true)} theme="dark" own={realm.realm_night_logo_source === "U"} remove={() => api.removeLogo(true)} />
        </div>
      </Allowed>
      {read("me").is_owner && (
        <button type="button" class="button danger" onClick={askClose}>
          {t("Deactivate organization")}
        </button>
      )}
    </>
  );
}

function PictureForm(p: { form: FormName; title: string; button: string; src: string | undefined; upload: (f: File) => Promise<unknown>; theme?: "light" | "dark"; own: boolean; remove: () => Promise<unknown> }) {
  return (
    <section class="picture-form">
      <img class="picture" src={p.src} alt={p.title} data-theme={p.theme} />
      <SettingsForm form={p.form} title={p.title} button={p.button} fields={[{ name: "file", label: t("Picture"), kind: "file", accept: "image/*", required: true }]} run={(v) => p.upload(v.file("file"))} />
      {p.own && (
        <button type="button" class="button small quiet" aria-label={`${t("Remove")}: ${p.title}`} onClick={() => void attempt(p.remove())}>
          {t("Remove")}
        </button>
      )}
    </section>
  );
}

function askClose(): void {
  const text = t("All users are logged out and nobody can log in. Only the operator of the server can activate it again.");
  openDialog(<Confirm title={t("Deactivate the organization?")} text={text} button={t("Deactivate")} danger run={() => attempt(api.closeRealm())} />);
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
        save={(n) => api.changeRealm({ message_retention_days: n === forever ? jsonString("unlimited") : n })}
      />
    </Allowed>
  );
}
