// The user's account: name, picture, address, password, profile fields, sessions, keys, bots, alert words, muted users.
import { useEffect, useState } from "preact/hooks";
import * as api from "../api/administration.ts";
import { changeSetting } from "../api/endpoints.ts";
import { FieldType } from "../api/types.ts";
import { t } from "../i18n/text.ts";
import { attempt } from "../store/actions.ts";
import { avatarOf, userName } from "../store/queries.ts";
import { peek, read } from "../store/store.ts";
import { Allowed, CopyBox, RowTable, SettingsForm, type FormField } from "./forms.tsx";

export function Profile() {
  const me = read("me");
  const user = read("users").get(me.user_id);
  const realm = read("realm");
  return (
    <>
      <img class="avatar large" src={avatarOf(user, true)} alt={t("Your picture")} width={64} height={64} />
      <Allowed when={me.is_admin || !realm.realm_name_changes_disabled} reason={t("Names cannot be changed here.")}>
        <SettingsForm
          button={t("Save name")}
          keep
          fields={[{ name: "name", label: t("Full name"), value: me.full_name, required: true }]}
          run={(v) => changeSetting({ full_name: v.text("name") })}
        />
      </Allowed>
      <Allowed when={me.is_admin || !realm.realm_avatar_changes_disabled} reason={t("Pictures cannot be changed here.")}>
        <SettingsForm
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
      <OwnFields />
    </>
  );
}

const inputKinds = new Map<number, FormField["kind"]>([
  [FieldType.longText, "area"],
  [FieldType.date, "date"],
]);

function OwnFields() {
  const data = read("users").get(read("me").user_id)?.profile_data ?? {};
  const list = read("profileFields").filter((f) => f.type !== FieldType.users && f.editable_by_user !== false);
  if (list.length === 0) return null;
  const fields = list.map((f): FormField => {
    const common = { name: String(f.id), label: f.name, help: f.hint, value: data[f.id]?.value ?? "" };
    if (f.type !== FieldType.choice) return { ...common, kind: inputKinds.get(f.type) };
    const options = Object.entries(JSON.parse(f.field_data) as Record<string, { text: string }>);
    return { ...common, kind: "choice", options: [{ value: "", label: "" }, ...options.map(([value, o]) => ({ value, label: o.text }))] };
  });
  return (
    <SettingsForm
      title={t("Profile fields")}
      button={t("Save profile")}
      keep
      fields={fields}
      run={async (v) => {
        const given = list.filter((f) => v.text(String(f.id)));
        const empty = list.filter((f) => !v.text(String(f.id)) && data[f.id]).map((f) => f.id);
        if (given.length) await api.changeProfile(given.map((f) => ({ id: f.id, value: v.text(String(f.id)) })));
        if (empty.length) await api.clearProfile(empty);
      }}
    />
  );
}

export function Account() {
  const [key, setKey] = useState("");
  const me = read("me");
  return (
    <>
      <SettingsForm
        title={t("Email address")}
        button={t("Change address")}
        done={t("Open the link in the email to the new address.")}
        keep
        fields={[{ name: "email", label: t("New address"), kind: "email", value: me.delivery_email, required: true }]}
        run={(v) => changeSetting({ email: v.text("email") })}
      />
      <SettingsForm
        title={t("Password")}
        button={t("Change password")}
        fields={[
          { name: "old", label: t("Old password"), kind: "password", required: true },
          { name: "new", label: t("New password"), kind: "password", required: true },
        ]}
        run={(v) => changeSetting({ old_password: v.secret("old"), new_password: v.secret("new") })}
      />
      <h4>{t("Sessions")}</h4>
      <p>
        <a href="/accounts/sessions/">{t("See where you are logged in")}</a>
      </p>
      <SettingsForm
        title={t("API key")}
        button={t("Show key")}
        done={t("Keep it secret: it is as good as your password.")}
        fields={[{ name: "password", label: t("Your password"), kind: "password", required: true }]}
        run={async (v) => setKey((await api.fetchKey(v.secret("password"))).api_key)}
      />
      {key && <CopyBox label={t("Your API key")} text={key} />}
    </>
  );
}

export function Bots() {
  const [list, setList] = useState<api.Bot[]>([]);
  const [again, setAgain] = useState(0);
  const known = read("bots");
  const count = known.size;
  useEffect(() => {
    if (!peek().me.is_guest) void attempt(api.getBots()).then((a) => a && setList(a.bots));
  }, [count, again]);
  const renew = async (b: api.Bot): Promise<void> => {
    await api.renewBotKey(b.user_id);
    setAgain((n) => n + 1);
  };
  return (
    <Allowed when={!read("me").is_guest} reason={t("Guests cannot have bots.")}>
      <SettingsForm
        title={t("Add a bot")}
        button={t("Add bot")}
        fields={[
          { name: "name", label: t("Name"), required: true },
          { name: "short", label: t("Address"), required: true, help: t("The part before -bot.") },
        ]}
        run={async (v) => {
          await api.createBot({ full_name: v.text("name"), short_name: v.text("short"), bot_type: api.BotType.generic });
          setAgain((n) => n + 1);
        }}
      />
      <RowTable
        label={t("Your bots")}
        rows={list}
        name={(b) => b.full_name}
        empty={t("No bots")}
        columns={[
          { title: t("Name"), cell: (b) => b.full_name },
          { title: t("Email"), cell: (b) => b.username },
          { title: t("API key"), cell: (b) => <code>{b.api_key}</code> },
        ]}
        actions={[
          { label: t("New key"), icon: "history", ask: t("The old key stops working."), run: renew },
          {
            label: t("Deactivate"),
            icon: "trash",
            ask: t("The bot can no longer do anything."),
            run: async (b) => {
              await api.deactivateBot(b.user_id);
              setAgain((n) => n + 1);
            },
          },
        ]}
      />
    </Allowed>
  );
}

export function AlertWords() {
  return (
    <>
      <SettingsForm
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
  const others = [...read("users").values()].filter((u) => u.is_active && u.user_id !== me.user_id && !muted.has(u.user_id));
  others.sort((a, b) => a.full_name.localeCompare(b.full_name));
  return (
    <>
      <SettingsForm
        title={t("Mute a user")}
        button={t("Mute")}
        fields={[
          { name: "user", label: t("User"), kind: "choice", required: true, options: others.map((u) => ({ value: String(u.user_id), label: u.full_name })) },
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
