// Requests for compliance exports: owners ask for them, and approve or refuse those of others.
import { useEffect, useState } from "preact/hooks";
import * as api from "../api/compliance.ts";
import { AddForm, RowTable, type FormField } from "../forms/forms.tsx";
import { t } from "../i18n/text.ts";
import { attempt } from "../store/actions.ts";
import { userName } from "../store/queries.ts";
import { read } from "../store/store.ts";
import { formatDate } from "../ui/time.ts";

const day = 24 * 3600; // seconds

// dayStart returns the beginning of a day such as 2026-01-31, in UTC; undefined without a day.
function dayStart(text: string): number | undefined {
  return text ? Date.parse(`${text}T00:00:00Z`) / 1000 : undefined;
}

export function Compliance() {
  const { is_owner, user_id } = read("me");
  const [state, setState] = useState<api.Compliance | null>(null);
  const load = async (): Promise<void> => setState((await attempt(api.getCompliance())) ?? null);
  useEffect(() => {
    if (is_owner) void load();
  }, [is_owner]);
  if (!is_owner) return <p class="quiet">{t("Only owners can see the requests for compliance exports.")}</p>;
  if (!state) return <p aria-busy="true" />;
  const then = async (done: Promise<unknown>): Promise<void> => {
    await done;
    await load();
  };
  return (
    <>
      <p>{state.two_owners ? t("Two owners must agree to each compliance export.") : t("The operator of the server makes compliance exports without asking owners.")}</p>
      <p>
        <button type="button" class="button quiet" onClick={() => void attempt(then(api.demandTwoOwners(!state.two_owners)))}>
          {state.two_owners ? t("Ask to end this") : t("Demand two owners")}
        </button>
      </p>
      {state.two_owners && (
        <AddForm form="ask-compliance" title={t("Ask for a compliance export")} button={t("Ask the owners")} fields={fields()} run={(v) => then(api.askForExport(criteria((name) => v.text(name))))} />
      )}
      <RowTable
        label={t("Requests for compliance exports")}
        rows={[...state.requests].reverse()}
        name={(q) => t("Request {id}", { id: q.id })}
        empty={t("No requests")}
        columns={[
          { title: t("Request"), cell: (q) => t("Request {id}", { id: q.id }) },
          { title: t("Time"), cell: (q) => formatDate(q.timestamp) },
          { title: t("Content"), cell: (q) => <Wish request={q} /> },
          { title: t("Owners"), cell: (q) => q.owner_ids.map(userName).join(", ") },
          { title: t("State"), cell: (q) => stateName(q.state) },
        ]}
        actions={[
          {
            label: t("Approve"),
            icon: "check",
            shown: (q) => q.state === "pending" && !q.owner_ids.includes(user_id),
            ask: t("With two owners, the operator of the server can carry it out."),
            run: (q) => then(api.answerRequest(q.id, true)),
          },
          { label: t("Refuse"), icon: "close", shown: (q) => q.state === "pending", run: (q) => then(api.answerRequest(q.id, false)) },
        ]}
      />
    </>
  );
}

function fields(): FormField[] {
  const users = [...read("users").values()].filter((u) => !u.is_system_bot).sort((a, b) => a.full_name.localeCompare(b.full_name));
  const channels = [...read("channels").values()].sort((a, b) => a.name.localeCompare(b.name));
  return [
    { name: "user", label: t("User"), kind: "choice", options: [{ value: "", label: t("All users") }, ...users.map((u) => ({ value: String(u.user_id), label: u.full_name, user: u.user_id }))] },
    { name: "channel", label: t("Channel"), kind: "choice", options: [{ value: "", label: t("All channels") }, ...channels.map((c) => ({ value: String(c.stream_id), label: c.name }))] },
    { name: "from", label: t("First day"), kind: "date" },
    { name: "to", label: t("Last day"), kind: "date" },
    { name: "search", label: t("Text in the messages") },
    { name: "format", label: t("Format"), kind: "choice", value: "jsonl", options: ["jsonl", "csv", "eml"].map((f) => ({ value: f, label: f })) },
  ];
}

// criteria returns what the texts of the form choose.
function criteria(text: (name: string) => string): api.Criteria {
  const last = dayStart(text("to"));
  return {
    user_ids: text("user") ? [Number(text("user"))] : undefined,
    channel_ids: text("channel") ? [Number(text("channel"))] : undefined,
    start: dayStart(text("from")),
    end: last === undefined ? undefined : last + day,
    search: text("search") || undefined,
    format: text("format"),
  };
}

function Wish({ request: q }: { request: api.ComplianceRequest }) {
  if (q.ends_demand) return <>{t("One owner is enough")}</>;
  const channels = read("channels");
  const parts = [...q.user_ids.map(userName), ...q.channel_ids.map((id) => channels.get(id)?.name ?? t("Private channel {id}", { id }))];
  if (q.start) parts.push(`≥ ${formatDate(q.start)}`);
  if (q.end) parts.push(`< ${formatDate(q.end)}`);
  if (q.search) parts.push(`“${q.search}”`);
  return <>{[...(parts.length ? parts : [t("All messages")]), q.format].join(", ")}</>;
}

function stateName(state: api.ComplianceRequest["state"]): string {
  switch (state) {
    case "pending":
      return t("Waits for an owner");
    case "approved":
      return t("Approved");
    case "refused":
      return t("Refused");
    case "used":
      return t("Done");
  }
  return t("Expired");
}
