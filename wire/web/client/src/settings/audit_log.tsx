// The audit log for owners: who changed what, when, and with which login. It can be filtered and saved as a file.
import { useEffect, useState } from "preact/hooks";
import { getAuditLog, keepAuditLog, type AuditEntry, type AuditFilter } from "../api/usage.ts";
import { serverNow } from "../api/clock.ts";
import { Choice, PlainChoice } from "../forms/fields.tsx";
import { RowTable } from "../forms/forms.tsx";
import { t } from "../i18n/text.ts";
import { attempt } from "../store/actions.ts";
import { userName } from "../store/queries.ts";
import { read } from "../store/store.ts";
import { Icon } from "../ui/icons.tsx";
import { formatDate } from "../ui/time.ts";
import { toCsv } from "./audit_csv.ts";

const pageSize = 100; // entries
const fileSize = 1000; // entries of one call for the file: the server's limit

// kindGroups are the first parts of the kinds of entries.
const kindGroups = (): { value: string; label: string }[] => [
  { value: "", label: t("All changes") },
  { value: "user", label: t("Users") },
  { value: "bot", label: t("Bots") },
  { value: "group", label: t("User groups") },
  { value: "channel", label: t("Channels") },
  { value: "message", label: t("Deleted messages") },
  { value: "organization", label: t("Organization") },
  { value: "login", label: t("Logins") },
  { value: "session", label: t("Ended sessions") },
  { value: "key", label: t("API keys") },
  { value: "factor", label: t("Second factors") },
  { value: "identity", label: t("Linked logins") },
  { value: "invitation", label: t("Invitations") },
  { value: "export", label: t("Exports") },
  { value: "retention", label: t("Data retention") },
];

export function AuditLog() {
  const { is_owner } = read("me");
  const [filter, setFilter] = useState<AuditFilter>({});
  const [list, setList] = useState<AuditEntry[] | null>(null);
  const [more, setMore] = useState(false);
  const [kept, setKept] = useState<number | undefined>(undefined);
  const load = async (before: AuditEntry[]): Promise<void> => {
    const last = before[before.length - 1];
    const a = await attempt(getAuditLog({ ...filter, before: last?.id, limit: pageSize }));
    if (!a) return;
    setList([...before, ...a.entries]);
    setMore(a.more);
    setKept(a.retention_days);
  };
  useEffect(() => {
    if (is_owner) void load([]);
  }, [filter, is_owner]);
  if (!is_owner) return <p class="quiet">{t("Only owners can read the audit log.")}</p>;
  return (
    <>
      <Filters filter={filter} set={setFilter} />
      <p>
        <button type="button" class="button quiet" onClick={() => void attempt(save(filter))}>
          <Icon name="download" size={16} /> {t("Save as a CSV file")}
        </button>
      </p>
      {list ? <Entries list={list} /> : <p aria-busy="true" />}
      {more && list && (
        <button type="button" class="button quiet" onClick={() => void load(list)}>
          {t("Show more")}
        </button>
      )}
      {kept !== undefined && (
        <Choice
          label={t("Keep entries for")}
          value={kept}
          options={[
            { value: 30, label: t("30 days") },
            { value: 90, label: t("90 days") },
            { value: 365, label: t("1 year") },
            { value: 1095, label: t("3 years") },
            { value: 3650, label: t("10 years") },
          ]}
          save={keepAuditLog}
        />
      )}
    </>
  );
}

function Filters({ filter, set }: { filter: AuditFilter; set: (f: AuditFilter) => void }) {
  const users = [...read("users").values()].sort((a, b) => a.full_name.localeCompare(b.full_name)).map((u) => ({ value: u.user_id, label: u.full_name, user: u.user_id }));
  const channels = [...read("channels").values()].sort((a, b) => a.name.localeCompare(b.name)).map((c) => ({ value: c.stream_id, label: c.name }));
  const all = { value: 0, label: t("All") };
  return (
    <div class="audit-filters">
      <PlainChoice label={t("Kind")} value={filter.kind ?? ""} options={kindGroups()} choose={(kind) => set({ ...filter, kind: kind || undefined })} />
      <PlainChoice label={t("Changed by")} value={filter.acting_user_id ?? 0} options={[all, ...users]} choose={(id) => set({ ...filter, acting_user_id: id || undefined })} />
      <PlainChoice label={t("About")} value={filter.user_id ?? 0} options={[all, ...users]} choose={(id) => set({ ...filter, user_id: id || undefined })} />
      <PlainChoice label={t("Channel")} value={filter.channel_id ?? 0} options={[all, ...channels]} choose={(id) => set({ ...filter, channel_id: id || undefined })} />
    </div>
  );
}

function Entries({ list }: { list: AuditEntry[] }) {
  const channels = read("channels");
  const groups = read("groups");
  const by = (e: AuditEntry): string => (e.acting_user_id ? userName(e.acting_user_id) : e.via === "operator" ? t("Operator") : t("Server"));
  const about = (e: AuditEntry): string => {
    const out: string[] = [];
    if (e.user_id) out.push(userName(e.user_id));
    if (e.channel_id) out.push(`#${channels.get(e.channel_id)?.name ?? e.channel_id}`);
    if (e.group_id) out.push(`@${groups.get(e.group_id)?.name ?? e.group_id}`);
    if (e.name) out.push(e.name);
    if (e.count) out.push(`× ${e.count}`);
    return out.join(", ");
  };
  return (
    <RowTable
      label={t("Audit log")}
      rows={list}
      name={(e) => e.kind}
      empty={t("No entries")}
      columns={[
        { title: t("Time"), cell: (e) => formatDate(e.timestamp) },
        { title: t("Change"), cell: (e) => <code>{e.kind}</code> },
        { title: t("Changed by"), cell: by },
        { title: t("Login"), cell: (e) => [e.via, e.client, e.address].filter(Boolean).join(", ") },
        { title: t("About"), cell: about },
        { title: t("Before and after"), cell: (e) => (e.old || e.new ? `${e.old || "–"} → ${e.new || "–"}` : "") },
      ]}
    />
  );
}

// save gives the user a file with all entries that the filter selects, the newest first.
async function save(filter: AuditFilter): Promise<void> {
  const entries: AuditEntry[] = [];
  for (let more = true; more; ) {
    const a = await getAuditLog({ ...filter, before: entries[entries.length - 1]?.id, limit: fileSize });
    entries.push(...a.entries);
    more = a.more;
  }
  const url = URL.createObjectURL(new Blob([toCsv(entries)], { type: "text/csv" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = `audit-log-${new Date(serverNow()).toISOString().slice(0, 10)}.csv`;
  link.click();
  URL.revokeObjectURL(url);
}
