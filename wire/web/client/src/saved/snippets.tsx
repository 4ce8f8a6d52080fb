// Snippets: texts that the user has saved, to insert them into messages.
import { useState } from "preact/hooks";
import { addSnippet, changeSnippet, deleteSnippet } from "../api/saved.ts";
import type { Snippet } from "../api/types.ts";
import { insert } from "../editor/text_field.ts";
import { t } from "../i18n/text.ts";
import { SettingsForm } from "../forms/forms.tsx";
import { attempt } from "../store/actions.ts";
import { read } from "../store/store.ts";
import { closeDialog, Dialog } from "../ui/dialogs.tsx";
import { Icon } from "../ui/icons.tsx";

// Snippets is the window that the compose box and the editors of messages open. It inserts a snippet into their text
// field. The text of the field is offered as the content of a new snippet.
export function Snippets({ area }: { area: HTMLTextAreaElement }) {
  const [edited, setEdited] = useState<Snippet | "new" | null>(null);
  const list = [...read("snippets").values()].sort((a, b) => a.title.localeCompare(b.title));
  return (
    <Dialog title={t("Snippets")} class="channels">
      {edited ? (
        <SnippetForm snippet={edited === "new" ? { id: 0, title: "", content: area.value, date_created: 0 } : edited} done={() => setEdited(null)} />
      ) : (
        <>
          <div class="channel-tools">
            <button type="button" class="button small" onClick={() => setEdited("new")}>
              {t("New snippet")}
            </button>
          </div>
          <ul class="channel-list" tabIndex={0} aria-label={t("Snippets")}>
            {list.map((x) => (
              <Row key={x.id} snippet={x} area={area} edit={() => setEdited(x)} />
            ))}
            {list.length === 0 && <li class="quiet">{t("You have no snippets.")}</li>}
          </ul>
        </>
      )}
    </Dialog>
  );
}

function Row({ snippet: x, area, edit }: { snippet: Snippet; area: HTMLTextAreaElement; edit: () => void }) {
  const use = (): void => {
    closeDialog();
    requestAnimationFrame(() => insert(area, x.content)); // the field gets no focus while the window is open
  };
  return (
    <li>
      <span class="grow">
        <strong>{x.title}</strong>
        <small class="saved-text">{x.content}</small>
      </span>
      <button type="button" class="button small" aria-label={t("Insert {name}", { name: x.title })} onClick={use}>
        {t("Insert")}
      </button>
      <button type="button" class="icon-button" aria-label={t("Edit {name}", { name: x.title })} onClick={edit}>
        <Icon name="edit" size={16} />
      </button>
      <button type="button" class="icon-button" aria-label={t("Delete {name}", { name: x.title })} onClick={() => void attempt(deleteSnippet(x.id))}>
        <Icon name="trash" size={16} />
      </button>
    </li>
  );
}

function SnippetForm({ snippet: x, done }: { snippet: Snippet; done: () => void }) {
  return (
    <div class="dialog-text">
      <h3 class="settings-title">{x.id ? t("Edit snippet") : t("New snippet")}</h3>
      <SettingsForm
        form="snippet"
        button={t("Save")}
        keep
        fields={[
          { name: "title", label: t("Title"), value: x.title, required: true },
          { name: "content", label: t("Text"), kind: "area", value: x.content, required: true },
        ]}
        run={async (v) => {
          const [title, content] = [v.text("title"), v.text("content")];
          await (x.id ? changeSnippet(x.id, title, content) : addSnippet(title, content));
          done();
        }}
      />
      <button type="button" class="button quiet" onClick={done}>
        {t("Cancel")}
      </button>
    </div>
  );
}
