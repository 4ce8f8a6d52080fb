// The fields of forms for the profile fields of a user, without those that name users.
import { FieldType, type ProfileField, type User } from "../api/types.ts";
import type { Entered, FormField } from "../forms/forms.tsx";
import { t } from "../i18n/text.ts";
import { parsed } from "../people/field_value.tsx";

const inputKinds = new Map<number, FormField["kind"]>([
  [FieldType.longText, "area"],
  [FieldType.date, "date"],
]);

// isInput reports whether a profile field is a field of a form.
export function isInput(f: ProfileField): boolean {
  return f.type !== FieldType.users;
}

export function profileInputs(list: readonly ProfileField[], user: User | undefined): FormField[] {
  const data = user?.profile_data ?? {};
  return list.map((f): FormField => {
    const common = { name: String(f.id), label: f.name, help: f.hint, value: data[f.id]?.value ?? "" };
    if (f.type !== FieldType.choice) return { ...common, kind: inputKinds.get(f.type) };
    const options = Object.entries(parsed<Record<string, { text: string }>>(f.field_data, {}));
    return { ...common, kind: "choice", options: [{ value: "", label: t("None") }, ...options.map(([value, o]) => ({ value, label: o.text }))] };
  });
}

// profileValues returns the entered values by their fields: those that are set, and the fields that were emptied.
export function profileValues(list: readonly ProfileField[], user: User | undefined, v: Entered): { set: { id: number; value: string }[]; emptied: number[] } {
  const before = user?.profile_data ?? {};
  const set = list.map((f) => ({ id: f.id, value: v.text(String(f.id)) })).filter((x) => x.value);
  const emptied = list.map((f) => f.id).filter((id) => !v.text(String(id)) && before[id]);
  return { set, emptied };
}
