// The channel folders of the organization: their names, their order, and which are archived.
import { useState } from "preact/hooks";
import * as api from "../api/channels.ts";
import type { ChannelFolder } from "../api/types.ts";
import { plural, t } from "../i18n/text.ts";
import { read } from "../store/store.ts";
import { closeDialog, Dialog, openDialog } from "../ui/dialogs.tsx";
import { AddForm, Allowed, RowTable, SettingsForm } from "../forms/forms.tsx";

export function Folders() {
  const [archived, setArchived] = useState(false);
  const all = [...read("folders").values()].sort((a, b) => a.order - b.order);
  const rows = all.filter((f) => archived || !f.is_archived);
  const channels = [...read("channels").values()];
  const count = (f: ChannelFolder): number => channels.filter((c) => c.folder_id === f.id && !c.is_archived).length;
  // move puts a folder before or after its neighbour in the shown list. The order names all folders.
  const move = (f: ChannelFolder, by: 1 | -1): Promise<unknown> => {
    const other = rows[rows.indexOf(f) + by]!;
    const order = all.map((x) => x.id).filter((id) => id !== f.id);
    order.splice(order.indexOf(other.id) + (by === 1 ? 1 : 0), 0, f.id);
    return api.orderFolders(order);
  };
  return (
    <Allowed when={read("me").is_admin} reason={t("Only administrators can change this.")}>
      <AddForm
        form="add-folder"
        title={t("Add a folder")}
        button={t("Add")}
        fields={[
          { name: "name", label: t("Name"), required: true },
          { name: "description", label: t("Description") },
        ]}
        run={(v) => api.createFolder(v.text("name"), v.text("description"))}
      />
      <label class="field switch">
        <input type="checkbox" checked={archived} onChange={(e) => setArchived(e.currentTarget.checked)} />
        <span class="grow">{t("Show archived folders")}</span>
      </label>
      <RowTable
        label={t("Channel folders")}
        rows={rows}
        name={(f) => f.name}
        empty={t("No folders")}
        columns={[
          { title: t("Name"), cell: (f) => f.name },
          { title: t("Description"), cell: (f) => f.description },
          { title: t("Channels"), cell: (f) => (f.is_archived ? t("Archived") : plural(count(f), "{count} channel", "{count} channels")) },
        ]}
        actions={[
          { label: t("Edit"), icon: "edit", run: async (f) => openDialog(<FolderDialog folder={f} />) },
          { label: t("Up"), icon: "up", shown: (f) => rows[0] !== f, run: (f) => move(f, -1) },
          { label: t("Down"), icon: "down", shown: (f) => rows.at(-1) !== f, run: (f) => move(f, 1) },
          { label: t("Archive"), icon: "archive", shown: (f) => !f.is_archived, run: (f) => api.changeFolder(f.id, { is_archived: true }) },
          { label: t("Restore"), icon: "check", shown: (f) => f.is_archived, run: (f) => api.changeFolder(f.id, { is_archived: false }) },
        ]}
      />
    </Allowed>
  );
}

function FolderDialog({ folder: f }: { folder: ChannelFolder }) {
  return (
    <Dialog title={t("Edit folder")}>
      <div class="dialog-text">
        <SettingsForm
          form="change-folder"
          button={t("Save")}
          fields={[
            { name: "name", label: t("Name"), value: f.name, required: true },
            { name: "description", label: t("Description"), value: f.description },
          ]}
          run={async (v) => {
            const name = v.text("name");
            await api.changeFolder(f.id, { name: name === f.name ? undefined : name, description: v.text("description") });
            closeDialog();
          }}
        />
      </div>
    </Dialog>
  );
}
