// The API keys of the user: the one that apps use, and further ones with a name each, which can end.
import { useEffect, useState } from "preact/hooks";
import * as api from "../api/administration.ts";
import { t } from "../i18n/text.ts";
import { attempt } from "../store/actions.ts";
import { read } from "../store/store.ts";
import { Confirm, openDialog } from "../ui/dialogs.tsx";
import { formatDate } from "../ui/time.ts";
import { AddForm, CopyBox, RowTable, SettingsForm, type FormField } from "../forms/forms.tsx";

const day = 24 * 3600; // seconds

// keyRights are the choices for the rights of a key, from few to all; "" are all rights of the account.
const keyRights = [
  { value: "", label: () => t("All rights of the account") },
  { value: "read", label: () => t("Only read") },
  { value: "read,send,react", label: () => t("Read, send and react") },
  { value: "read,send,react,edit,upload,remind", label: () => t("Read, send, edit and upload") },
];

// scopeOf returns what a new key is limited to; undefined: nothing. channel is the id of its only channel, or "0".
function scopeOf(rights: string, channel: number): api.KeyScope | undefined {
  if (!rights && !channel) return undefined;
  const list = (rights || keyRights[keyRights.length - 1]!.value).split(",");
  return channel ? { rights: list, channels: [{ channel_id: channel }] } : { rights: list };
}

// scopeText says what a key is limited to.
function scopeText(k: api.ApiKey): string {
  if (!k.scope) return t("All rights of the account");
  const text = k.scope.rights.join(", ");
  const more = k.scope.channels || k.scope.endpoints || k.scope.networks;
  return more ? t("{rights}, with further limits", { rights: text }) : text;
}

// hasPasswords returns whether users of the organization log in with passwords.
export function hasPasswords(): boolean {
  return read("realm").realm_password_auth_enabled !== false;
}

export function ApiKeys() {
  const [key, setKey] = useState("");
  const password: FormField = { name: "password", label: t("Your password"), kind: "password", required: true };
  const renew = async (): Promise<void> => {
    const answer = await attempt(api.renewKey());
    if (answer) setKey(answer.api_key);
  };
  const ask = (): void => {
    const text = t("All apps that use the old key must log in again.");
    openDialog(<Confirm title={t("Make a new API key?")} text={text} button={t("New key")} danger run={renew} />);
  };
  return (
    <>
      <SettingsForm
        form="show-key"
        title={t("API key")}
        button={t("Show key")}
        done={t("Keep it secret: it is as good as your password.")}
        fields={hasPasswords() ? [password] : []}
        run={async (v) => setKey((await api.fetchKey(v.secret("password"))).api_key)}
      />
      {key && <CopyBox label={t("Your API key")} text={key} />}
      {key && (
        <button type="button" class="button quiet" onClick={ask}>
          {t("New API key")}
        </button>
      )}
      <MoreKeys />
    </>
  );
}

function MoreKeys() {
  const [list, setList] = useState<api.ApiKey[]>([]);
  const [secret, setSecret] = useState("");
  const load = async (): Promise<void> => {
    const a = await attempt(api.getKeys());
    if (a) setList(a.api_keys);
  };
  useEffect(() => void load(), []);
  const names = read("channels");
  const channels = [...read("subscriptions").keys()].map((id) => ({ value: String(id), label: names.get(id)?.name ?? "" }));
  return (
    <>
      <AddForm
        form="add-key"
        title={t("Add a key for a program")}
        button={t("Add key")}
        done={t("The key is shown only now.")}
        fields={[
          { name: "label", label: t("Name of the program"), required: true },
          ...(hasPasswords() ? [{ name: "password", label: t("Your password"), kind: "password" } as FormField] : []),
          {
            name: "days",
            label: t("Ends"),
            kind: "choice",
            value: "0",
            options: [
              { value: "0", label: t("Never") },
              { value: "30", label: t("In thirty days") },
              { value: "365", label: t("In one year") },
            ],
          },
          {
            name: "rights",
            label: t("Rights"),
            kind: "choice",
            value: "",
            options: keyRights.map((r) => ({ value: r.value, label: r.label() })),
          },
          {
            name: "channel",
            label: t("Channel"),
            kind: "choice",
            value: "0",
            options: [{ value: "0", label: t("All channels") }, ...channels],
          },
        ]}
        run={async (v) => {
          const scope = scopeOf(v.text("rights"), v.number("channel"));
          const made = await api.addKey(v.text("label"), v.number("days") * day, v.secret("password"), scope);
          setSecret(made.api_key);
          await load();
        }}
      />
      {secret && <CopyBox label={t("The new key")} text={secret} />}
      <RowTable
        label={t("Further keys")}
        rows={list}
        name={(k) => k.label}
        empty={t("No further keys")}
        columns={[
          { title: t("Program"), cell: (k) => k.label },
          { title: t("Created"), cell: (k) => formatDate(k.date_created) },
          { title: t("Last use"), cell: (k) => (k.last_used ? formatDate(k.last_used) : t("Never")) },
          { title: t("Rights"), cell: scopeText },
          { title: t("Ends"), cell: (k) => (k.expires_at ? formatDate(k.expires_at) : t("Never")) },
        ]}
        actions={[
          {
            label: t("Revoke"),
            icon: "trash",
            ask: t("The program can no longer use it."),
            run: async (k) => {
              await api.revokeKey(k.id);
              await load();
            },
          },
        ]}
      />
    </>
  );
}
