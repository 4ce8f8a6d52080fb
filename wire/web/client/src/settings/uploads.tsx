// The files that the user has uploaded: their size, their messages, and their removal.
import { useEffect, useState } from "preact/hooks";
import { deleteAttachment, getAttachments } from "../api/administration.ts";
import { formatNumber, t } from "../i18n/text.ts";
import { attempt } from "../store/actions.ts";
import { read } from "../store/store.ts";
import { formatDate } from "../ui/time.ts";
import { FilterField, RowTable } from "../forms/forms.tsx";
import type { Attachment } from "../api/schema.ts";

const mebibyte = 1024 * 1024; // bytes
const maxRows = 200; // of the table; the filter finds the others

// fileSize returns a size in kB or MB.
export function fileSize(bytes: number): string {
  if (bytes < mebibyte) return t("{size} kB", { size: formatNumber(Math.max(1, Math.round(bytes / 1024))) });
  return t("{size} MB", { size: formatNumber(Math.round((bytes / mebibyte) * 10) / 10) });
}

export function Uploads() {
  const [list, setList] = useState<Attachment[] | null>(null);
  const [filter, setFilter] = useState("");
  const used = read("uploadSpaceUsed"); // each upload and each removal changes it
  useEffect(() => {
    void attempt(getAttachments()).then((a) => a && setList(a.attachments));
  }, [used]);
  if (!list) return <p aria-busy="true" />;
  const wanted = filter.trim().toLowerCase();
  const rows = list.filter((x) => x.name.toLowerCase().includes(wanted)).sort((a, b) => b.create_time - a.create_time);
  return (
    <>
      <FilterField value={filter} set={setFilter} />
      <RowTable
        label={t("Uploaded files")}
        rows={rows.slice(0, maxRows)}
        name={(x) => x.name}
        empty={t("No files")}
        columns={[
          { title: t("File"), cell: (x) => <a href={`/user_uploads/${x.path_id}`} target="_blank" rel="noopener">{x.name}</a> },
          { title: t("Size"), cell: (x) => fileSize(x.size) },
          { title: t("Uploaded"), cell: (x) => formatDate(x.create_time) },
          { title: t("Messages"), cell: (x) => (x.message_ids.length === 0 ? t("None") : x.message_ids.map((id) => <a key={id} href={`#narrow/near/${id}`}>{`#${id} `}</a>)) },
        ]}
        actions={[
          {
            label: t("Delete"),
            icon: "trash",
            ask: t("Messages with the file lose it."),
            run: async (x) => {
              await deleteAttachment(x.id);
              setList((now) => now?.filter((y) => y.id !== x.id) ?? null);
            },
          },
        ]}
      />
    </>
  );
}
