// Forms and lists of the settings: a form that sends all of its fields at once, a table with actions, text to copy.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { errorText } from "../api/client.ts";
import { t } from "../i18n/text.ts";
import { attempt } from "../store/actions.ts";
import { Confirm, openDialog } from "../ui/dialogs.tsx";
import { Icon, type IconName } from "../ui/icons.tsx";
import { notify } from "../ui/notices.ts";

export interface FormField {
  name: string;
  label: string;
  kind?: "text" | "password" | "email" | "url" | "number" | "date" | "area" | "file" | "check" | "choice";
  options?: { value: string; label: string }[];
  value?: string;
  help?: string;
  required?: boolean;
  accept?: string; // of files
}

// Entered are the values of a form. A box that is not checked is missing.
export class Entered {
  constructor(private readonly data: FormData) {}

  text(name: string): string {
    const v = this.data.get(name);
    return typeof v === "string" ? v.trim() : "";
  }

  // secret returns a text with its spaces, for passwords.
  secret(name: string): string {
    return String(this.data.get(name) ?? "");
  }

  number(name: string): number {
    return Number(this.text(name));
  }

  has(name: string): boolean {
    return this.data.has(name);
  }

  all(name: string): string[] {
    return this.data.getAll(name).map(String);
  }

  file(name: string): File {
    return this.data.get(name) as File;
  }
}

// SettingsForm sends its fields with run. A refusal is shown, and the values stay; otherwise it shows done.
export function SettingsForm(p: {
  title?: string;
  fields: FormField[];
  button: string;
  disabled?: boolean;
  keep?: boolean; // keep the values after success
  children?: ComponentChildren;
  done?: string;
  run: (v: Entered) => Promise<unknown>;
}) {
  const [state, setState] = useState({ text: "", failed: false, busy: false });
  const submit = (e: SubmitEvent): void => {
    e.preventDefault();
    const form = e.currentTarget as HTMLFormElement;
    setState({ text: "", failed: false, busy: true });
    p.run(new Entered(new FormData(form))).then(
      () => {
        if (!p.keep) form.reset();
        setState({ text: p.done ?? t("Saved"), failed: false, busy: false });
      },
      (err: unknown) => setState({ text: errorText(err), failed: true, busy: false }),
    );
  };
  return (
    <form class="settings-form" onSubmit={submit} aria-label={p.title ?? p.button}>
      {p.title && <h4>{p.title}</h4>}
      <fieldset disabled={p.disabled}>
        {p.fields.map((f) => (
          <FormInput key={f.name} field={f} />
        ))}
        {p.children}
        <button class="button" type="submit" disabled={state.busy}>
          {p.button}
        </button>
      </fieldset>
      <p class={state.failed ? "form-error" : "quiet"} role={state.failed ? "alert" : "status"}>
        {state.text}
      </p>
    </form>
  );
}

function FormInput({ field: f }: { field: FormField }) {
  if (f.kind === "check") {
    return (
      <label class="field switch">
        <input type="checkbox" name={f.name} value="true" defaultChecked={f.value === "true"} />
        <span class="grow">{f.label}</span>
      </label>
    );
  }
  const common = { class: "input", name: f.name, required: f.required };
  return (
    <label class="field">
      <span class="field-label">{f.label}</span>
      {f.kind === "choice" ? (
        <select {...common} defaultValue={f.value}>
          {(f.options ?? []).map((o) => (
            <option key={o.value} value={o.value} selected={o.value === f.value}>
              {o.label}
            </option>
          ))}
        </select>
      ) : f.kind === "area" ? (
        <textarea {...common} rows={3} defaultValue={f.value} />
      ) : (
        <input {...common} type={(f.kind ?? "text") as "text"} defaultValue={f.value} accept={f.accept} autocomplete={f.kind === "password" ? "off" : undefined} />
      )}
      {f.help && <small>{f.help}</small>}
    </label>
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

export interface Column<R> {
  title: string;
  cell: (row: R) => ComponentChildren;
}

export interface Action<R> {
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
  if (p.rows.length === 0) return <p class="quiet">{p.empty}</p>;
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
              <th key={c.title} scope="col">
                {c.title}
              </th>
            ))}
            {p.actions && <th scope="col">{t("Actions")}</th>}
          </tr>
        </thead>
        <tbody>
          {p.rows.map((row, i) => (
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
