// The user's account: name, picture, address, password, profile fields, sessions, keys, alert words, muted users.
import * as api from "../api/administration.ts";
import { changeSetting } from "../api/endpoints.ts";
import type { ProfileField } from "../api/types.ts";
import { t } from "../i18n/text.ts";
import { parsed } from "../people/field_value.tsx";
import { PeopleField } from "../people/people_field.tsx";
import { attempt } from "../store/actions.ts";
import { userName } from "../store/queries.ts";
import { read } from "../store/store.ts";
import { Avatar } from "../ui/avatar.tsx";
import { Confirm, openDialog } from "../ui/dialogs.tsx";
import { ApiKeys, hasPasswords } from "./api_keys.tsx";
import { OwnData } from "./own_data.tsx";
import { UserChoice } from "../forms/fields.tsx";
import { AddForm, Allowed, RowTable, SettingsForm } from "../forms/forms.tsx";
import { isInput, profileInputs, profileValues } from "./profile_inputs.ts";

export function Profile() {
  const me = read("me");
  const realm = read("realm");
  return (
    <>
      <Avatar id={me.user_id} size={64} label={t("Your picture")} class="large" />
      <Allowed when={me.is_admin || !realm.realm_name_changes_disabled} reason={t("Names cannot be changed here.")}>
        <SettingsForm
          form="own-name"
          button={t("Save name")}
          keep
          stored
          fields={[{ name: "name", label: t("Full name"), value: me.full_name, required: true }]}
          run={(v) => changeSetting({ full_name: v.text("name") })}
        />
      </Allowed>
      <Allowed when={me.is_admin || !realm.realm_avatar_changes_disabled} reason={t("Pictures cannot be changed here.")}>
        <SettingsForm
          form="own-picture"
          button={t("Upload picture")}
          fields={[{ name: "file", label: t("Picture"), kind: "file", accept: "image/*", required: true }]}
          run={(v) => api.uploadAvatar(v.file("file"))}
        />
        {me.avatar_source === "U" && (
          <button type="button" class="button quiet" onClick={() => void attempt(api.removeAvatar())}>
            {t("Remove picture")}
          </button>
        )}
      </Allowed>
      <UserChoice name="timezone" label={t("Time zone")} help={t("Others see your local time on your card.")} options={zones()} />
      <OwnFields />
    </>
  );
}

// zones are the time zones that the browser knows.
function zones(): { value: string; label: string }[] {
  const names = Intl.supportedValuesOf("timeZone");
  return [{ value: "", label: t("Not set") }, ...names.map((z) => ({ value: z, label: z.replaceAll("_", " ") }))];
}

function OwnFields() {
  const user = read("users").get(read("me").user_id);
  const data = user?.profile_data ?? {};
  const all = read("profileFields").filter((f) => f.editable_by_user !== false);
  const list = all.filter(isInput);
  return (
    <>
      {list.length > 0 && (
        <SettingsForm
          form="own-profile"
          title={t("Profile fields")}
          button={t("Save profile")}
          keep
          stored
          fields={profileInputs(list, user)}
          run={async (v) => {
            const { set, emptied } = profileValues(list, user, v);
            if (set.length) await api.changeProfile(set);
            if (emptied.length) await api.clearProfile(emptied);
          }}
        />
      )}
      {all
        .filter((f) => !isInput(f))
        .map((f) => (
          <OwnUsers key={f.id} field={f} value={data[f.id]?.value ?? ""} />
        ))}
    </>
  );
}

// OwnUsers is a field with users, which saves itself.
function OwnUsers({ field: f, value }: { field: ProfileField; value: string }) {
  const save = (users: number[]): unknown => attempt(users.length ? api.changeProfile([{ id: f.id, value: users }]) : api.clearProfile([f.id]));
  return (
    <section aria-label={f.name}>
      <h4>{f.name}</h4>
      {f.hint && <p class="quiet">{f.hint}</p>}
      <PeopleField users={parsed<number[]>(value, [])} setUsers={(users) => void save(users)} />
    </section>
  );
}

export function Account() {
  const me = read("me");
  return (
    <>
      <SettingsForm
        form="change-address"
        title={t("Email address")}
        button={t("Change address")}
        done={t("Open the link in the email to the new address.")}
        keep
          stored
        fields={[{ name: "email", label: t("New address"), kind: "email", value: me.delivery_email, required: true }]}
        run={(v) => changeSetting({ email: v.text("email") })}
      />
      {hasPasswords() && (
        <SettingsForm
          form="change-password"
          title={t("Password")}
          button={t("Change password")}
          fields={[
            { name: "old", label: t("Old password"), kind: "password", required: true },
            { name: "new", label: t("New password"), kind: "password", required: true },
          ]}
          run={(v) => changeSetting({ old_password: v.secret("old"), new_password: v.secret("new") })}
        />
      )}
      <h4>{t("Sessions")}</h4>
      <p>
        <a href="/accounts/sessions/">{t("See where you are logged in")}</a>
      </p>
      <h4>{t("Second factor")}</h4>
      <p>
        <a href="/accounts/factor/">{t("Codes of an authenticator app")}</a>
        <br />
        <a href="/accounts/passkeys/">{t("Passkeys")}</a>
      </p>
      <ApiKeys />
      <OwnData />
      <h4>{t("Leave the organization")}</h4>
      <button type="button" class="button danger" onClick={askDeactivate}>
        {t("Deactivate account")}
      </button>
    </>
  );
}

function askDeactivate(): void {
  const text = t("You are logged out everywhere, your bots stop, and only an administrator can activate the account again. Your messages stay.");
  openDialog(<Confirm title={t("Deactivate your account?")} text={text} button={t("Deactivate")} danger run={() => attempt(api.deactivateMyself())} />);
}

export function AlertWords() {
  return (
    <>
      <AddForm
        form="add-alert-word"
        title={t("Add an alert word")}
        button={t("Add")}
        fields={[{ name: "word", label: t("Word"), required: true, help: t("Messages with it count like mentions.") }]}
        run={(v) => api.changeAlertWords("add", [v.text("word")])}
      />
      <RowTable
        label={t("Alert words")}
        rows={read("alertWords")}
        name={(w) => w}
        empty={t("No alert words")}
        columns={[{ title: t("Word"), cell: (w) => w }]}
        actions={[{ label: t("Remove"), icon: "trash", run: (w) => api.changeAlertWords("remove", [w]) }]}
      />
    </>
  );
}

export function MutedUsers() {
  const muted = read("mutedUsers");
  const me = read("me");
  const others = [...read("users").values()].filter((u) => u.is_active && !u.is_system_bot && u.user_id !== me.user_id && !muted.has(u.user_id));
  others.sort((a, b) => a.full_name.localeCompare(b.full_name));
  return (
    <>
      <AddForm
        form="mute-user"
        title={t("Mute a user")}
        button={t("Mute")}
        fields={[
          { name: "user", label: t("User"), kind: "choice", required: true, options: others.map((u) => ({ value: String(u.user_id), label: u.full_name, user: u.user_id })) },
        ]}
        run={(v) => api.muteUser("add", v.number("user"))}
      />
      <RowTable
        label={t("Muted users")}
        rows={[...muted.keys()]}
        name={userName}
        empty={t("No muted users")}
        columns={[{ title: t("Name"), cell: (id) => userName(id) }]}
        actions={[{ label: t("Unmute"), icon: "close", run: (id) => api.muteUser("remove", id) }]}
      />
    </>
  );
}
