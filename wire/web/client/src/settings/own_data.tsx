// The file with the data of the user: it is asked for, written in the background, downloaded and deleted here.
import { useEffect, useState } from "preact/hooks";
import * as api from "../api/own_data.ts";
import { RowTable, SettingsForm } from "../forms/forms.tsx";
import { t } from "../i18n/text.ts";
import { attempt } from "../store/actions.ts";
import { formatDate } from "../ui/time.ts";
import { fileSize } from "./uploads.tsx";

const askAgain = 2000; // ms between two looks at a file that is being written

export function OwnData() {
  const [list, setList] = useState<api.OwnExport[]>([]);
  const load = async (): Promise<void> => {
    const a = await attempt(api.getOwnExports());
    if (a) setList(a.exports);
  };
  useEffect(() => void load(), []);
  useEffect(() => {
    if (!list.some((e) => e.pending)) return;
    const timer = setTimeout(() => void load(), askAgain);
    return () => clearTimeout(timer);
  }, [list]);
  return (
    <>
      <SettingsForm
        form="own-data"
        title={t("Your data")}
        button={t("Export my data")}
        done={t("The file is being written. You get a message when it is complete.")}
        fields={[
          {
            name: "password",
            label: t("Your password"),
            kind: "password",
            help: t("The file has your profile, settings, messages, direct conversations, drafts and files."),
          },
        ]}
        run={async (v) => {
          await api.startOwnExport(v.secret("password"));
          await load();
        }}
      />
      {list.length > 0 && (
        <RowTable
          label={t("Files with your data")}
          rows={[...list].reverse()}
          name={(e) => formatDate(e.export_time)}
          empty=""
          columns={[
            { title: t("Time"), cell: (e) => formatDate(e.export_time) },
            { title: t("State"), cell: (e) => <State item={e} /> },
            { title: t("Size"), cell: (e) => (e.size ? fileSize(e.size) : "") },
            { title: t("Expires"), cell: (e) => (e.expires_timestamp ? formatDate(e.expires_timestamp) : "") },
          ]}
          actions={[
            {
              label: t("Delete"),
              icon: "trash",
              shown: (e) => !!e.path,
              ask: t("The file can no longer be downloaded."),
              run: async (e) => {
                await api.deleteOwnExport(e.id);
                await load();
              },
            },
          ]}
        />
      )}
    </>
  );
}

function State({ item: e }: { item: api.OwnExport }) {
  if (e.path) {
    return (
      <a href={e.path} download>
        {t("Download")}
      </a>
    );
  }
  if (e.deleted_timestamp) return <>{t("Deleted")}</>;
  return <>{e.failed_timestamp ? t("Failed") : t("In progress")}</>;
}
