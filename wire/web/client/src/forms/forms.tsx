// Forms and lists of the settings: a form that sends all of its fields at once, a table with actions, text to copy.
import type { ComponentChildren } from "preact";
import { useId, useRef, useState } from "preact/hooks";
import { errorText } from "../api/client.ts";
import { t } from "../i18n/text.ts";
import { attempt } from "../store/actions.ts";
import { closeDialog, Confirm, Dialog, openDialog } from "../ui/dialogs.tsx";
import { Icon, type IconName } from "../ui/icons.tsx";
import { Picker } from "../ui/picker.tsx";
import { DateField } from "../ui/time_field.tsx";
import { notify } from "../store/notices.ts";
import type { FormName } from "./form_names.ts";
import { afterSuccess, Entered, isChanged, optionsOf, valueOf, valuesOf, type Changes, type FormField, type Value } from "./form_state.ts";

export { Entered, type FormField };

interface FormProps {
  form: FormName;
  title?: string;
  fields: FormField[];
  button: string;
  disabled?: boolean;
  keep?: boolean; // keep the values after success
  stored?: boolean; // the values are stored ones: the buttons are in a bar, which is shown while some are changed
  done?: string;
  run: (v: Entered) => Promise<unknown>;
}

// SettingsForm sends its fields with run. A refusal is shown, and the values stay; otherwise it shows done, and the fields
// have their defaults again.
export function SettingsForm(p: FormProps) {
  const [changes, setChanges] = useState<Changes>({});
  const [sentForms, setSentForms] = useState(0);
  const [state, setState] = useState({ text: "", failed: false, busy: false });
  const sending = useRef(false);
  const fields = useRef(p.fields);
  fields.current = p.fields;
  const submit = (e: SubmitEvent): void => {
    e.preventDefault();
    if (sending.current) return;
    sending.current = true;
    setState({ text: "", failed: false, busy: true });
    const sent = valuesOf(p.fields, changes);
    const missing = p.fields.find((f) => f.kind === "choice" && f.required && sent[f.name] === "");
    if (missing) {
      sending.current = false;
      return setState({ text: t("Choose a value: {field}", { field: missing.label }), failed: true, busy: false });
    }
    p.run(new Entered(sent))
      .then(
        () => {
          setChanges((now) => afterSuccess(fields.current, now, sent, p.keep ?? false));
          setSentForms((n) => n + 1);
          setState({ text: p.done ?? t("Saved"), failed: false, busy: false });
        },
        (err: unknown) => setState({ text: errorText(err), failed: true, busy: false }),
      )
      .finally(() => (sending.current = false));
  };
  const discard = (): void => {
    setChanges({});
    setState({ text: "", failed: false, busy: false });
  };
  return (
    <form class="settings-form" data-form={p.form} onSubmit={submit} aria-label={p.title ?? p.button}>
      {p.title && <h4>{p.title}</h4>}
      <fieldset disabled={p.disabled}>
        {p.fields.map((f) => (
          <FormInput
            key={f.kind === "file" ? `${f.name} ${sentForms}` : f.name} // the file of an element cannot be set
            field={f}
            value={valueOf(f, changes)}
            set={(value) => setChanges((now) => ({ ...now, [f.name]: { value } }))}
          />
        ))}
        {!p.stored && (
          <button class="button" type="submit" disabled={state.busy}>
            {p.button}
          </button>
        )}
        {p.stored && isChanged(p.fields, changes) && (
          <div class="save-bar" role="group" aria-label={t("Unsaved changes")}>
            <span class="grow">{t("You have unsaved changes.")}</span>
            <button class="button small quiet" type="button" disabled={state.busy} onClick={discard}>
              {t("Discard")}
            </button>
            <button class="button small" type="submit" disabled={state.busy}>
              {p.button}
            </button>
          </div>
        )}
      </fieldset>
      <p class={state.failed ? "form-error" : "quiet"} role={state.failed ? "alert" : "status"}>
        {state.text}
      </p>
    </form>
  );
}

// AddForm is a button above a list. It opens the form for a new entry, in a window that closes when the form was sent.
export function AddForm(p: FormProps & { title: string }) {
  return <AddButton title={p.title} open={() => openDialog(<FormDialog {...p} />)} />;
}

// AddButton opens the window for a new entry of a list.
export function AddButton({ title, open }: { title: string; open: () => void }) {
  return (
    <button type="button" class="button small add-button" onClick={open}>
      <Icon name="plus" size={15} /> {title}
    </button>
  );
}

function FormDialog(p: FormProps & { title: string }) {
  return (
    <Dialog title={p.title}>
      <div class="dialog-text">
        <NewForm {...p} />
      </div>
    </Dialog>
  );
}

// NewForm is the form of a window for a new entry.
export function NewForm({ title: _, ...p }: FormProps) {
  const run = async (v: Entered): Promise<void> => {
    await p.run(v);
    closeDialog();
    if (p.done) notify(p.done);
  };
  return <SettingsForm {...p} run={run} />;
}

function FormInput({ field: f, value, set }: { field: FormField; value: Value; set: (value: Value) => void }) {
  const id = useId();
  if (f.kind === "check") {
    return (
      <label class="field switch">
        <input type="checkbox" name={f.name} checked={value === true} onChange={(e) => set(e.currentTarget.checked)} />
        <span class="grow">{f.label}</span>
      </label>
    );
  }
  if (f.kind === "checks") return <Checks field={f} checked={value as string[]} set={set} />;
  const help = f.help ? `${id}-help` : undefined;
  const common = { id, class: "input", name: f.name, required: f.required, "aria-describedby": help };
  const text = typeof value === "string" ? value : "";
  // A choice that must be made has no option for none.
  const options = f.kind === "choice" ? optionsOf(f).filter((o) => !f.required || o.value !== "") : [];
  return (
    <div class="field">
      <label class="field-label" for={id}>
        {f.label}
      </label>
      {f.kind === "choice" ? (
        <Picker id={id} describedBy={help} name={f.name} required={f.required} value={text} options={options} choose={set} />
      ) : f.kind === "area" ? (
        <textarea {...common} rows={3} value={text} onInput={(e) => set(e.currentTarget.value)} />
      ) : f.kind === "file" ? (
        <FileInput id={id} field={f} file={value instanceof File ? value : null} set={set} />
      ) : f.kind === "date" ? (
        <DateField id={id} name={f.name} required={f.required} describedBy={help} value={text} set={set} />
      ) : (
        <input {...common} type={(f.kind ?? "text") as "text"} value={text} autocomplete={f.kind === "password" ? "off" : undefined} onInput={(e) => set(e.currentTarget.value)} />
      )}
      {f.help && <small id={help}>{f.help}</small>}
    </div>
  );
}

// FileInput shows a button and the name of the chosen file. The field of the browser is there for the keyboard, but not seen.
function FileInput({ id, field: f, file, set }: { id: string; field: FormField; file: File | null; set: (value: Value) => void }) {
  return (
    <span class="file-input">
      <input id={id} class="visually-hidden" name={f.name} required={f.required} type="file" accept={f.accept} onChange={(e) => set(e.currentTarget.files?.[0] ?? null)} />
      <label class="button quiet small" for={id}>
        <Icon name="upload" size={15} /> {t("Choose a file")}
      </label>
      <span class="quiet">{file?.name ?? t("No file chosen")}</span>
    </span>
  );
}

// Checks are check boxes that share a name. Their value lists those that are checked.
function Checks({ field: f, checked, set }: { field: FormField; checked: string[]; set: (value: string[]) => void }) {
  const change = (value: string, on: boolean): void => {
    const all = (f.options ?? []).map((o) => o.value);
    set(all.filter((x) => (x === value ? on : checked.includes(x))));
  };
  return (
    <details class="events">
      <summary>{f.label}</summary>
      <p class="quiet">{f.help}</p>
      <div class="event-list">
        {(f.options ?? []).map((o) => (
          <label key={o.value}>
            <input type="checkbox" name={f.name} value={o.value} checked={checked.includes(o.value)} onChange={(e) => change(o.value, e.currentTarget.checked)} /> {o.label}
          </label>
        ))}
      </div>
    </details>
  );
}

// Allowed disables its content and shows the reason when the user may not change it. The server decides anyway.
export function Allowed(p: { when: boolean; reason: string; children: ComponentChildren }) {
  return (
    <fieldset class="allowed" disabled={!p.when}>
      {!p.when && <p class="quiet">{p.reason}</p>}
      {p.children}
    </fieldset>
  );
}

// Card is a group of settings with a heading.
export function Card({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="settings-card" aria-label={title}>
      <h4>{title}</h4>
      {children}
    </section>
  );
}

interface Column<R> {
  title: string;
  cell: (row: R) => ComponentChildren;
  order?: (a: R, b: R) => number; // with it, the heading sorts the rows
}

interface Action<R> {
  label: string;
  icon: IconName;
  shown?: (row: R) => boolean;
  ask?: string; // a question before the action
  run: (row: R) => Promise<unknown>;
}

// RowTable is a table whose rows have buttons. name gives the row's name for the labels of the buttons.
export function RowTable<R>(p: {
  label: string;
  rows: R[];
  columns: Column<R>[];
  name: (row: R) => string;
  actions?: Action<R>[];
  empty: string;
}) {
  const [sorting, setSorting] = useState<{ by: string; down: boolean } | null>(null);
  if (p.rows.length === 0) return <p class="empty-rows">{p.empty}</p>;
  const order = p.columns.find((c) => c.title === sorting?.by)?.order;
  const rows = order ? p.rows.toSorted((a, b) => (sorting!.down ? order(b, a) : order(a, b))) : p.rows;
  const sort = (by: string): void => setSorting({ by, down: sorting?.by === by && !sorting.down });
  const run = (a: Action<R>, row: R): void => {
    const act = (): unknown => attempt(a.run(row));
    if (!a.ask) void act();
    else openDialog(<Confirm danger title={a.label} text={`${p.name(row)}: ${a.ask}`} button={a.label} run={act} />);
  };
  return (
    <div class="table-scroll" tabIndex={0} role="region" aria-label={p.label}>
      <table class="settings-table row-table">
        <thead>
          <tr>
            {p.columns.map((c) => (
              <th key={c.title} scope="col" aria-sort={c.order && sorting?.by === c.title ? (sorting.down ? "descending" : "ascending") : undefined}>
                {c.order ? (
                  <button type="button" class="sort" onClick={() => sort(c.title)}>
                    {c.title}
                    <Icon name={sorting?.by === c.title && sorting.down ? "up" : "down"} size={12} />
                  </button>
                ) : (
                  c.title
                )}
              </th>
            ))}
            {p.actions && <th scope="col">{t("Actions")}</th>}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, i) => (
            <tr key={i}>
              {p.columns.map((c) => (
                <td key={c.title}>{c.cell(row)}</td>
              ))}
              {p.actions && (
                <td class="row-actions">
                  {p.actions
                    .filter((a) => a.shown?.(row) ?? true)
                    .map((a) => (
                      <button
                        key={a.label}
                        type="button"
                        class="icon-button"
                        title={a.label}
                        aria-label={`${a.label}: ${p.name(row)}`}
                        onClick={() => run(a, row)}
                      >
                        <Icon name={a.icon} size={16} />
                      </button>
                    ))}
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

// FilterField is the field above a table that chooses its rows by their text.
export function FilterField({ value, set }: { value: string; set: (value: string) => void }) {
  return (
    <label class="field">
      <span class="field-label">{t("Filter")}</span>
      <input class="input" type="search" value={value} onInput={(e) => set(e.currentTarget.value)} />
    </label>
  );
}

// CopyBox shows a text with a button that copies it.
export function CopyBox({ label, text }: { label: string; text: string }) {
  const copy = (): void => {
    navigator.clipboard.writeText(text).then(
      () => notify(t("Copied")),
      () => notify(t("The browser refused to copy."), "error"),
    );
  };
  return (
    <div class="copy-box">
      <label class="field">
        <span class="field-label">{label}</span>
        <input class="input" readOnly value={text} onFocus={(e) => e.currentTarget.select()} />
      </label>
      <button type="button" class="button quiet" onClick={copy} aria-label={`${t("Copy")}: ${label}`}>
        <Icon name="copy" size={16} /> {t("Copy")}
      </button>
    </div>
  );
}
