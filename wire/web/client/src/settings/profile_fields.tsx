// The profile fields of the organization: every kind, their options, their order.
import { useState } from "preact/hooks";
import * as api from "../api/administration.ts";
import { FieldType, type ProfileField } from "../api/types.ts";
import { t } from "../i18n/text.ts";
import { parsed } from "../people/field_value.tsx";
import { read } from "../store/store.ts";
import { closeDialog, Dialog, openDialog } from "../ui/dialogs.tsx";
import { PlainChoice } from "../forms/fields.tsx";
import { AddButton, Allowed, NewForm, RowTable, SettingsForm, type Entered, type FormField } from "../forms/forms.tsx";

const otherAccount = "custom"; // the subtype of external accounts with an address of their own

export function ProfileFields() {
  const kinds = Object.values(read("realm").custom_profile_field_types ?? {}).sort((a, b) => a.id - b.id);
  const list = [...read("profileFields")].sort((a, b) => a.order - b.order);
  const move = (f: ProfileField, by: number): Promise<unknown> => {
    const order = list.map((x) => x.id).filter((id) => id !== f.id);
    order.splice(list.indexOf(f) + by, 0, f.id);
    return api.orderProfileFields(order);
  };
  return (
    <Allowed when={read("me").is_admin} reason={t("Only administrators can change this.")}>
      <AddButton title={t("Add a profile field")} open={() => openDialog(<NewField />)} />
      <RowTable
        label={t("Profile fields")}
        rows={list}
        name={(f) => f.name}
        empty={t("No profile fields")}
        columns={[
          { title: t("Name"), cell: (f) => f.name },
          { title: t("Type"), cell: (f) => kinds.find((k) => k.id === f.type)?.name ?? "" },
          { title: t("Hint"), cell: (f) => f.hint },
          { title: t("On user card"), cell: (f) => (f.display_in_profile_summary ? t("Yes") : t("No")) },
        ]}
        actions={[
          { label: t("Edit"), icon: "edit", run: async (f) => openDialog(<FieldDialog field={f} />) },
          { label: t("Up"), icon: "up", shown: (f) => list[0] !== f, run: (f) => move(f, -1) },
          { label: t("Down"), icon: "down", shown: (f) => list.at(-1) !== f, run: (f) => move(f, 1) },
          { label: t("Remove"), icon: "trash", ask: t("The values of all users are deleted."), run: (f) => api.removeProfileField(f.id) },
        ]}
      />
    </Allowed>
  );
}

// NewField asks for the type of a field first, which decides what else it has.
function NewField() {
  const [type, setType] = useState(1);
  const kinds = Object.values(read("realm").custom_profile_field_types ?? {}).sort((a, b) => a.id - b.id);
  return (
    <Dialog title={t("Add a profile field")}>
      <div class="dialog-text">
        <PlainChoice label={t("Type")} value={type} options={kinds.map((k) => ({ value: k.id, label: k.name }))} choose={setType} />
        <NewForm form="add-profile-field" key={type} button={t("Add")} fields={fieldsOf(type)} run={(v) => api.addProfileField({ ...valuesOf(type, v), field_type: type })} />
      </div>
    </Dialog>
  );
}

function FieldDialog({ field: f }: { field: ProfileField }) {
  return (
    <Dialog title={t("Edit profile field")}>
      <div class="dialog-text">
        <SettingsForm
          form="change-profile-field"
          button={t("Save")}
          fields={fieldsOf(f.type, f)}
          run={async (v) => {
            await api.changeProfileField(f.id, valuesOf(f.type, v, f));
            closeDialog();
          }}
        />
      </div>
    </Dialog>
  );
}

type Options = Record<string, { text: string; order: string }>;

function optionTexts(f: ProfileField | undefined): string[] {
  const options = Object.values(parsed<Options>(f?.field_data ?? "", {}));
  return options.sort((a, b) => Number(a.order) - Number(b.order)).map((o) => o.text);
}

// fieldsOf returns the fields of the form for a kind of profile field, with the values of an existing one.
function fieldsOf(type: number, f?: ProfileField): FormField[] {
  const flag = (name: string, label: string, on: boolean): FormField => ({ name, label, kind: "check", value: String(on) });
  const out: FormField[] = [
    { name: "name", label: t("Name"), value: f?.name, required: type !== FieldType.account },
    { name: "hint", label: t("Hint"), value: f?.hint },
  ];
  if (type === FieldType.choice) {
    out.push({ name: "options", label: t("Options"), kind: "area", value: optionTexts(f).join("\n"), required: true, help: t("One in each line.") });
  }
  if (type === FieldType.account) {
    const known = read("realm").realm_default_external_accounts ?? {};
    const data = parsed<{ subtype: string; url_pattern?: string }>(f?.field_data ?? "", { subtype: Object.keys(known)[0] ?? otherAccount });
    const options = Object.entries(known).map(([value, a]) => ({ value, label: a.text }));
    out.push(
      { name: "subtype", label: t("Account"), kind: "choice", value: data.subtype, options: [...options, { value: otherAccount, label: t("Another one") }] },
      { name: "pattern", label: t("Address of another account"), value: data.url_pattern, help: "https://example.org/%(username)s" },
    );
  }
  out.push(
    flag("summary", t("Display on user card"), f?.display_in_profile_summary ?? false),
    flag("required", t("Required field"), f?.required ?? false),
    flag("editable", t("Users can edit this field for their own account"), f?.editable_by_user ?? true),
  );
  return out;
}

// optionsOf gives each line a key. An option of a field that stays keeps its key, because the values of users name it.
function optionsOf(lines: string, f?: ProfileField): Options {
  const before = Object.entries(parsed<Options>(f?.field_data ?? "", {}));
  const texts = [...new Set(lines.split("\n").map((x) => x.trim()).filter(Boolean))];
  let next = Math.max(-1, ...before.map(([key]) => Number(key))) + 1;
  const keyOf = (text: string): string => before.find(([, o]) => o.text === text)?.[0] ?? String(next++);
  return Object.fromEntries(texts.map((text, i) => [keyOf(text), { text, order: String(i + 1) }]));
}

function valuesOf(type: number, v: Entered, f?: ProfileField): Record<string, unknown> {
  let data: unknown;
  if (type === FieldType.choice) data = optionsOf(v.text("options"), f);
  if (type === FieldType.account) {
    const subtype = v.text("subtype");
    data = subtype === otherAccount ? { subtype, url_pattern: v.text("pattern") } : { subtype };
  }
  return {
    name: v.text("name"),
    hint: v.text("hint"),
    field_data: data,
    display_in_profile_summary: v.has("summary"),
    required: v.has("required"),
    editable_by_user: v.has("editable"),
  };
}
