// The state of a form, as data: what the user has changed, over the defaults that its fields state. The elements of the
// page only show it, so that nothing in the browser decides what is sent.

import { t } from "../i18n/text.ts";

export interface FormField {
  name: string;
  label: string;
  kind?: "text" | "password" | "email" | "url" | "number" | "date" | "area" | "file" | "check" | "checks" | "choice";
  options?: { value: string; label: string; user?: number }[]; // of a choice, and of check boxes that share a name; user is whose picture is shown
  value?: string; // the default; of a check box "true" or "false"
  values?: string[]; // the default of check boxes that share a name: those that are checked
  help?: string;
  required?: boolean;
  accept?: string; // of files
}

export type Value = string | boolean | string[] | File | null;

// Change is a value that the user has entered.
export interface Change {
  value: Value;
  saved?: Value; // the default when the value was sent: a newer default replaces the value
}

export type Changes = Readonly<Record<string, Change>>;

// defaultOf returns the value of a field that the user has not changed. Only the field's own statement counts: a choice
// without a default has the empty value, which the user must replace, and never the first of its options.
export function defaultOf(f: FormField): Value {
  if (f.kind === "check") return f.value === "true";
  if (f.kind === "checks") return f.values ?? [];
  if (f.kind === "file") return null;
  return f.value ?? "";
}

// optionsOf returns the options of a choice. A default that is none of them, such as one that another client has stored,
// is an option too: it is shown and sent as it is.
export function optionsOf(f: FormField): { value: string; label: string; user?: number }[] {
  const options = f.options ?? [];
  const now = f.value ?? "";
  return options.some((o) => o.value === now) ? options : [{ value: now, label: now || t("Choose…") }, ...options];
}

// valueOf returns the value of a field, which is shown and sent. A chosen option that no longer exists is no value: the
// field has its default again.
export function valueOf(f: FormField, changes: Changes): Value {
  const change = changes[f.name];
  if (!change) return defaultOf(f);
  if (change.saved !== undefined && !same(change.saved, defaultOf(f))) return defaultOf(f);
  if (f.kind === "choice" && !optionsOf(f).some((o) => o.value === change.value)) return defaultOf(f);
  return change.value;
}

export type Values = Readonly<Record<string, Value>>;

export function valuesOf(fields: readonly FormField[], changes: Changes): Values {
  return Object.fromEntries(fields.map((f) => [f.name, valueOf(f, changes)]));
}

// afterSuccess returns the changes that are left when the server has accepted values: those that the user has made since.
// With keep, the others stay until the stored values, which are the defaults, become different.
export function afterSuccess(fields: readonly FormField[], changes: Changes, sent: Values, keep: boolean): Changes {
  const left: Record<string, Change> = {};
  for (const f of fields) {
    const change = changes[f.name];
    if (!change) continue;
    if (!same(change.value, sent[f.name] ?? null)) left[f.name] = change;
    else if (keep && f.kind !== "file") left[f.name] = { value: change.value, saved: defaultOf(f) };
  }
  return left;
}

// isChanged reports whether the user has entered a value that is not stored.
export function isChanged(fields: readonly FormField[], changes: Changes): boolean {
  return fields.some((f) => !same(valueOf(f, changes), defaultOf(f)));
}

function same(a: Value, b: Value): boolean {
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((x) => b.includes(x));
  return a === b;
}

// Entered are the values of a form that is sent.
export class Entered {
  constructor(private readonly values: Values) {}

  text(name: string): string {
    return this.secret(name).trim();
  }

  // secret returns a text with its spaces, for passwords.
  secret(name: string): string {
    const v = this.values[name];
    return typeof v === "string" ? v : "";
  }

  number(name: string): number {
    return Number(this.text(name));
  }

  // has reports whether a box is checked.
  has(name: string): boolean {
    return this.values[name] === true;
  }

  all(name: string): string[] {
    const v = this.values[name];
    return Array.isArray(v) ? v : [];
  }

  file(name: string): File {
    return this.values[name] as File;
  }
}
