// The API keys of the user: the one that apps use, and further ones with a name each, which can end.
import { useEffect, useState } from "preact/hooks";
import * as api from "../api/administration.ts";
import { t } from "../i18n/text.ts";
import { attempt } from "../store/actions.ts";
import { Confirm, openDialog } from "../ui/dialogs.tsx";
import { formatDate } from "../ui/time.ts";
import { AddForm, CopyBox, RowTable, SettingsForm } from "../forms/forms.tsx";

const day = 24 * 3600; // seconds

export function ApiKeys() {
  const [key, setKey] = useState("");
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
        fields={[{ name: "password", label: t("Your password"), kind: "password", required: true }]}
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
  return (
    <>
      <AddForm
        form="add-key"
        title={t("Add a key for a program")}
        button={t("Add key")}
        done={t("The key is shown only now.")}
        fields={[
          { name: "label", label: t("Name of the program"), required: true },
          { name: "password", label: t("Your password"), kind: "password" },
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
        ]}
        run={async (v) => {
          setSecret((await api.addKey(v.text("label"), v.number("days") * day, v.secret("password"))).api_key);
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
