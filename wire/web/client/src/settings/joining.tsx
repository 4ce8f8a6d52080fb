// Who can join the organization, with which addresses and names.
import * as api from "../api/administration.ts";
import { plural, t } from "../i18n/text.ts";
import { read } from "../store/store.ts";
import { Switch } from "../forms/fields.tsx";
import { AddForm, Allowed, RowTable } from "../forms/forms.tsx";
import { RealmChoice, RealmSwitch } from "./realm_fields.tsx";

export function Joining() {
  const days = Number(read("realm").realm_waiting_period_threshold ?? 0);
  const usual = [0, 1, 3, 7, 30, 90];
  const periods = usual.includes(days) ? usual : [...usual, days];
  return (
    <>
      <Allowed when={read("me").is_owner} reason={t("Only owners can change this.")}>
        <RealmSwitch name="invite_required" label={t("Invitations are required for joining this organization")} />
        <RealmSwitch name="disallow_disposable_email_addresses" label={t("Disallow disposable email addresses")} />
        <RealmSwitch name="emails_restricted_to_domains" label={t("Only addresses of the domains below can join")} />
        <Domains />
        <RealmChoice
          name="waiting_period_threshold"
          label={t("Waiting period before new members turn into full members")}
          options={periods.map((n) => ({ value: n, label: n === 0 ? t("At once") : plural(n, "After {count} day", "After {count} days") }))}
        />
        <LoginMethods />
      </Allowed>
      <Allowed when={read("me").is_admin} reason={t("Only administrators can change this.")}>
        <h4>{t("Names and pictures")}</h4>
        <RealmSwitch name="require_unique_names" label={t("Require unique names")} />
        <RealmSwitch name="name_changes_disabled" label={t("Prevent users from changing their name")} />
        <RealmSwitch name="email_changes_disabled" label={t("Prevent users from changing their email address")} />
        <RealmSwitch name="avatar_changes_disabled" label={t("Prevent users from changing their picture")} />
        <RealmChoice
          name="default_avatar_source"
          label={t("Pictures of users without one")}
          options={[
            { value: "J", label: t("Patterns of this server") },
            { value: "G", label: "Gravatar" },
          ]}
        />
      </Allowed>
    </>
  );
}

function Domains() {
  const list = [...read("domains").values()];
  return (
    <>
      <AddForm
        form="add-domain"
        title={t("Add a domain")}
        button={t("Add domain")}
        fields={[
          { name: "domain", label: t("Domain"), required: true, help: "example.org" },
          { name: "below", label: t("Also the domains below it"), kind: "check" },
        ]}
        run={(v) => api.addDomain(v.text("domain"), v.has("below"))}
      />
      <RowTable
        label={t("Domains")}
        rows={list}
        name={(d) => d.domain}
        empty={t("No domains")}
        columns={[
          { title: t("Domain"), cell: (d) => d.domain },
          { title: t("Domains below it"), cell: (d) => (d.allow_subdomains ? t("Yes") : t("No")) },
        ]}
        actions={[{ label: t("Remove"), icon: "trash", run: (d) => api.removeDomain(d.domain) }]}
      />
    </>
  );
}

// LoginMethods shows the ways to log in that the server has. At least one stays.
function LoginMethods() {
  const all = read("realm").realm_authentication_methods ?? {};
  const now = Object.fromEntries(Object.entries(all).map(([name, m]) => [name, m.enabled]));
  return (
    <>
      <h4>{t("Authentication methods")}</h4>
      {Object.entries(all).map(([name, m]) => (
        <Switch
          key={name}
          label={name === "Email" ? t("Email address and password") : name}
          value={m.enabled}
          disabled={!m.available}
          save={(v) => api.changeRealm({ authentication_methods: { ...now, [name]: v } })}
        />
      ))}
    </>
  );
}
