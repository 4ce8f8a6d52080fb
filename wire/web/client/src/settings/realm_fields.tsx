// Fields of the organization's settings, by their names on the wire without realm_. They save themselves.
import { changeRealm } from "../api/administration.ts";
import { jsonString } from "../api/client.ts";
import { t } from "../i18n/text.ts";
import { read } from "../store/store.ts";
import { hasEffect } from "../forms/effect.ts";
import { Choice, Switch } from "../forms/fields.tsx";
import type { FormName } from "../forms/form_names.ts";
import { SettingsForm } from "../forms/forms.tsx";
import type { RealmSetting, RealmValues } from "../store/state.ts";

export function RealmSwitch(p: { name: RealmSetting<boolean>; label: string; help?: string; disabled?: boolean }) {
  const value = Boolean(read("realm")[`realm_${p.name}`]);
  if (!hasEffect(p.name)) return null;
  return <Switch label={p.label} help={p.help} value={value} disabled={p.disabled} save={(v) => changeRealm({ [p.name]: v })} />;
}

export interface Option<T> {
  value: T;
  label: string;
}

type ChoiceName = RealmSetting<string> | RealmSetting<number>;

export function RealmChoice<N extends ChoiceName>(p: { name: N; label: string; help?: string; options: Option<NonNullable<RealmValues[`realm_${N}`]>>[]; disabled?: boolean }) {
  const value = read("realm")[`realm_${p.name}`] ?? undefined;
  if (!hasEffect(p.name)) return null;
  return <Choice label={p.label} help={p.help} value={value} options={p.options} disabled={p.disabled} save={(v) => changeRealm({ [p.name]: v })} />;
}

const unlimited = -1;
const minute = 60;
const hour = 60 * minute;
const day = 24 * hour;

// RealmLimit is a time in seconds, or no limit: null on the wire, "unlimited" when it is sent.
export function RealmLimit({ name, label }: { name: RealmSetting<number>; label: string }) {
  const now = Number(read("realm")[`realm_${name}`] ?? unlimited);
  const usual: Option<number>[] = [
    { value: unlimited, label: t("At any time") },
    { value: 2 * minute, label: t("For two minutes") },
    { value: 10 * minute, label: t("For ten minutes") },
    { value: hour, label: t("For one hour") },
    { value: day, label: t("For one day") },
    { value: 7 * day, label: t("For one week") },
  ];
  if (!usual.some((o) => o.value === now)) usual.push({ value: now, label: t("For {minutes} minutes", { minutes: Math.round(now / minute) }) });
  return <Choice label={label} value={now} options={usual} save={(v) => changeRealm({ [name]: v === unlimited ? jsonString("unlimited") : v })} />;
}

const none = -1;

// RealmChannel is one of the channels, or none.
export function RealmChannel({ name, label, privateOnly }: { name: RealmSetting<number>; label: string; privateOnly?: boolean }) {
  const now = Number(read("realm")[`realm_${name}`] ?? none);
  const channels = [...read("channels").values()].filter((c) => (!c.is_archived && (!privateOnly || c.invite_only)) || c.stream_id === now);
  channels.sort((a, b) => a.name.localeCompare(b.name));
  const options = [{ value: none, label: t("Nowhere") }, ...channels.map((c) => ({ value: c.stream_id, label: "#" + c.name }))];
  if (now !== none && !channels.some((c) => c.stream_id === now)) options.push({ value: now, label: t("Unknown channel") });
  return <RealmChoice name={name} label={label} options={options} />;
}

// RealmText is a text with a button that saves it. convert makes the value that is sent.
export function RealmText(p: { form: FormName; name: ChoiceName; label: string; help?: string; kind?: "area" | "url" | "number"; button: string; convert?: (text: string) => unknown }) {
  const value = read("realm")[`realm_${p.name}`];
  return (
    <SettingsForm
      form={p.form}
      button={p.button}
      keep
      stored
      fields={[{ name: p.name, label: p.label, help: p.help, kind: p.kind, value: String(value ?? "") }]}
      run={(v) => changeRealm({ [p.name]: p.convert ? p.convert(v.text(p.name)) : v.text(p.name) })}
    />
  );
}
