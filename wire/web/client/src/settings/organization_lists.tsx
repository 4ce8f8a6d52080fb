// Lists of the organization: channels, emoji, linkifiers, playgrounds, profile fields, exports.
import { useEffect, useState } from "preact/hooks";
import * as api from "../api/administration.ts";
import { plural, t } from "../i18n/text.ts";
import { attempt } from "../store/actions.ts";
import { may, userName } from "../store/queries.ts";
import { read } from "../store/store.ts";
import { formatDate } from "../ui/time.ts";
import { closeDialog, Dialog, openDialog } from "../ui/dialogs.tsx";
import { AddForm, Allowed, type FormField, RowTable, SettingsForm } from "../forms/forms.tsx";
import type { Export, Linkifier } from "../api/types.ts";

const adminsOnly = (): string => t("Only administrators can change this.");

export function Channels() {
  const defaults = read("defaultChannels");
  const rows = [...read("channels").values()].filter((c) => !c.is_archived).sort((a, b) => a.name.localeCompare(b.name));
  const isDefault = (id: number): boolean => defaults.includes(id);
  return (
    <Allowed when={read("me").is_admin} reason={adminsOnly()}>
      <RowTable
        label={t("Channels")}
        rows={rows}
        name={(c) => c.name}
        empty={t("No channels")}
        columns={[
          { title: t("Channel"), cell: (c) => c.name },
          { title: t("Description"), cell: (c) => c.description },
          { title: t("Default"), cell: (c) => (isDefault(c.stream_id) ? t("Yes") : t("No")) },
        ]}
        actions={[
          {
            label: t("Make default"),
            icon: "plus",
            shown: (c) => !isDefault(c.stream_id) && !c.invite_only,
            run: (c) => api.setDefaultChannel(c.stream_id, true),
          },
          {
            label: t("No longer default"),
            icon: "close",
            shown: (c) => isDefault(c.stream_id),
            run: (c) => api.setDefaultChannel(c.stream_id, false),
          },
          { label: t("Archive"), icon: "archive", ask: t("Nobody can write there afterwards."), run: (c) => api.archiveChannel(c.stream_id) },
        ]}
      />
    </Allowed>
  );
}

export function CustomEmoji() {
  const me = read("me");
  const rows = [...read("emoji").values()].filter((e) => !e.deactivated);
  return (
    <>
      <Allowed when={may("can_add_custom_emoji_group")} reason={t("You cannot add emoji.")}>
        <AddForm
          form="add-emoji"
          title={t("Add an emoji")}
          button={t("Add")}
          fields={[
            { name: "name", label: t("Name"), required: true },
            { name: "file", label: t("Picture"), kind: "file", accept: "image/*", required: true },
          ]}
          run={(v) => api.addEmoji(v.text("name"), v.file("file"))}
        />
      </Allowed>
      <RowTable
        label={t("Custom emoji")}
        rows={rows}
        name={(e) => e.name}
        empty={t("No custom emoji")}
        columns={[
          { title: t("Picture"), cell: (e) => <img src={e.source_url} alt={e.name} /> },
          { title: t("Name"), cell: (e) => e.name },
          { title: t("Author"), cell: (e) => (e.author_id ? userName(e.author_id) : "") },
        ]}
        actions={[
          {
            label: t("Remove"),
            icon: "trash",
            shown: (e) => me.is_admin || e.author_id === me.user_id,
            ask: t("Messages keep it; new ones cannot use it."),
            run: (e) => api.removeEmoji(e.name),
          },
        ]}
      />
    </>
  );
}

function linkifierFields(l?: Linkifier): FormField[] {
  return [
    { name: "pattern", label: t("Pattern"), value: l?.pattern, required: true, help: "#(?P<id>[0-9]+)" },
    { name: "template", label: t("Address template"), value: l?.url_template, required: true, help: "https://example.com/ticket/{id}" },
  ];
}

export function Linkifiers() {
  const list = read("linkifiers");
  const move = (l: Linkifier, by: number): Promise<unknown> => {
    const order = list.map((x) => x.id).filter((id) => id !== l.id);
    order.splice(list.indexOf(l) + by, 0, l.id);
    return api.orderLinkifiers(order);
  };
  return (
    <Allowed when={read("me").is_admin} reason={adminsOnly()}>
      <AddForm form="add-linkifier" title={t("Add a linkifier")} button={t("Add")} fields={linkifierFields()} run={(v) => api.addLinkifier(v.text("pattern"), v.text("template"))} />
      <RowTable
        label={t("Linkifiers")}
        rows={list}
        name={(l) => l.pattern}
        empty={t("No linkifiers")}
        columns={[
          { title: t("Pattern"), cell: (l) => <code>{l.pattern}</code> },
          { title: t("Address template"), cell: (l) => l.url_template },
        ]}
        actions={[
          { label: t("Edit"), icon: "edit", run: async (l) => openDialog(<LinkifierDialog linkifier={l} />) },
          { label: t("Up"), icon: "up", shown: (l) => list[0] !== l, run: (l) => move(l, -1) },
          { label: t("Down"), icon: "down", shown: (l) => list.at(-1) !== l, run: (l) => move(l, 1) },
          { label: t("Remove"), icon: "trash", run: (l) => api.removeLinkifier(l.id) },
        ]}
      />
    </Allowed>
  );
}

function LinkifierDialog({ linkifier: l }: { linkifier: Linkifier }) {
  return (
    <Dialog title={t("Edit linkifier")}>
      <div class="dialog-text">
        <SettingsForm
          form="change-linkifier"
          button={t("Save")}
          fields={linkifierFields(l)}
          run={async (v) => {
            await api.changeLinkifier(l.id, v.text("pattern"), v.text("template"));
            closeDialog();
          }}
        />
      </div>
    </Dialog>
  );
}

export function Playgrounds() {
  return (
    <Allowed when={read("me").is_admin} reason={adminsOnly()}>
      <AddForm
        form="add-playground"
        title={t("Add a playground")}
        button={t("Add")}
        fields={[
          { name: "name", label: t("Name"), required: true },
          { name: "language", label: t("Language"), required: true },
          { name: "template", label: t("Address template"), required: true, help: "https://play.example.com/?code={code}" },
        ]}
        run={(v) => api.addPlayground(v.text("name"), v.text("language"), v.text("template"))}
      />
      <RowTable
        label={t("Playgrounds")}
        rows={read("playgrounds")}
        name={(p) => p.name}
        empty={t("No playgrounds")}
        columns={[
          { title: t("Name"), cell: (p) => p.name },
          { title: t("Language"), cell: (p) => p.pygments_language },
          { title: t("Address template"), cell: (p) => p.url_template },
        ]}
        actions={[{ label: t("Remove"), icon: "trash", run: (p) => api.removePlayground(p.id) }]}
      />
    </Allowed>
  );
}

export function Exports() {
  const [list, setList] = useState<Export[]>([]);
  const admin = read("me").is_admin;
  const events = read("exports");
  const known = read("exportConsents");
  const [fetched, setFetched] = useState<Map<number, boolean>>(new Map());
  const consents = [...new Map([...fetched, ...known]).values()].filter(Boolean).length;
  useEffect(() => {
    if (admin) void attempt(api.getConsents()).then((a) => a && setFetched(new Map(a.export_consents.map((x) => [x.user_id, x.consented]))));
  }, [admin]);
  useEffect(() => {
    if (admin) void attempt(api.getExports()).then((a) => a && setList(a.exports));
  }, [admin, events]);
  const state = (e: Export): string => {
    if (e.deleted_timestamp) return t("Deleted");
    if (e.failed_timestamp) return t("Failed");
    return e.pending ? t("In progress") : t("Ready");
  };
  return (
    <Allowed when={admin} reason={adminsOnly()}>
      <SettingsForm
        form="start-export"
        title={t("Export the organization")}
        button={t("Start export")}
        done={t("The export has started.")}
        fields={[
          {
            name: "kind",
            label: t("Content"),
            kind: "choice",
            value: "public",
            options: [
              { value: "public", label: t("Public data") },
              { value: "full_with_consent", label: t("Also private data of users with consent") },
            ],
          },
        ]}
        run={(v) => api.startExport(v.text("kind"))}
      />
      <p class="quiet">
        {plural(consents, "{count} user allows the export of private data.", "{count} users allow the export of private data.")}
      </p>
      <RowTable
        label={t("Exports")}
        rows={list}
        name={(e) => formatDate(e.export_time)}
        empty={t("No exports")}
        columns={[
          { title: t("Time"), cell: (e) => formatDate(e.export_time) },
          { title: t("Requested by"), cell: (e) => userName(e.acting_user_id) },
          { title: t("State"), cell: (e) => (e.export_url ? <a href={e.export_url}>{t("Download")}</a> : state(e)) },
        ]}
        actions={[
          {
            label: t("Delete"),
            icon: "trash",
            shown: (e) => !!e.export_url,
            ask: t("The file can no longer be downloaded."),
            run: (e) => api.deleteExport(e.id),
          },
        ]}
      />
    </Allowed>
  );
}
