// Fields of settings that save themselves when they are changed.
import { createContext } from "preact";
import { useContext, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { changeDefaults } from "../api/administration.ts";
import { changeSetting } from "../api/endpoints.ts";
import { errorText } from "../api/client.ts";
import { t } from "../i18n/text.ts";
import { read } from "../store/store.ts";
import { Picker, type PickerOption } from "../ui/picker.tsx";
import { hasEffect } from "./effect.ts";
import type { SettingOf, UserSettings } from "../api/types.ts";

type Save = (value: unknown) => Promise<unknown>;

interface Saving<T> {
  shown: T | undefined; // the value that the field shows
  state: string;
  failed: boolean;
  run: (value: T) => void;
}

// useSaving saves values. Until the event of the change arrives, the field shows the value that is being saved; after a
// refusal it shows the stored value again, with the error.
function useSaving<T>(stored: T | undefined, save: (value: T) => Promise<unknown>): Saving<T> {
  const [pending, setPending] = useState<{ value: T } | null>(null);
  const [state, setState] = useState({ text: "", failed: false });
  const newest = useRef(0); // the number of the last save: answers to earlier ones change nothing
  const saving = useRef(false);
  const now = useRef(stored);
  now.current = stored;
  // The events of earlier saves do not change what the user has chosen since.
  useLayoutEffect(() => {
    if (!saving.current) setPending(null);
  }, [stored]);
  const run = (value: T): void => {
    const number = ++newest.current;
    saving.current = true;
    setPending({ value });
    setState({ text: t("Saving…"), failed: false });
    save(value).then(
      () => {
        if (number !== newest.current) return;
        saving.current = false;
        if (Object.is(now.current, value)) setPending(null); // the event came before the answer
        setState({ text: t("Saved"), failed: false });
        setTimeout(() => number === newest.current && setState({ text: "", failed: false }), 2000);
      },
      (err: unknown) => {
        if (number !== newest.current) return;
        saving.current = false;
        setPending(null);
        setState({ text: errorText(err), failed: true });
      },
    );
  };
  return { shown: pending ? pending.value : stored, state: state.text, failed: state.failed, run };
}

function FieldState({ of: s }: { of: { state: string; failed: boolean } }) {
  return (
    <span class={`field-state ${s.failed ? "form-error" : ""}`} role={s.failed ? "alert" : "status"}>
      {s.state}
    </span>
  );
}

export function Switch(p: { label: string; help?: string; value: boolean; disabled?: boolean; save: Save }) {
  const saving = useSaving<boolean>(p.value, p.save);
  return (
    <label class="field switch">
      <input type="checkbox" checked={saving.shown} disabled={p.disabled} onChange={(e) => saving.run(e.currentTarget.checked)} />
      <span class="grow">
        {p.label}
        {p.help && <small>{p.help}</small>}
      </span>
      <FieldState of={saving} />
    </label>
  );
}

export function Choice<T extends string | number>(p: {
  label: string;
  help?: string;
  value: T | undefined;
  options: PickerOption<T>[];
  disabled?: boolean;
  plain?: boolean; // the field is part of a form that is sent later
  save: (value: T) => Promise<unknown>;
}) {
  const { value } = p;
  const id = useId();
  const saving = useSaving(value, p.save);
  // A value that another client has set and that is not offered here is shown as it is.
  const options = value === undefined || p.options.some((o) => o.value === value) ? p.options : [...p.options, { value, label: String(value ?? "") }];
  return (
    <div class="field">
      <label class="field-label" for={id}>
        {p.label}
      </label>
      <Picker id={id} value={saving.shown} options={options} disabled={p.disabled} describedBy={p.help ? `${id}-help` : undefined} choose={saving.run} />
      {!p.plain && <FieldState of={saving} />}
      {p.help && <small id={`${id}-help`}>{p.help}</small>}
    </div>
  );
}

// PlainChoice is a choice that changes only the page.
export function PlainChoice<T extends string | number>(p: { label: string; value: T; options: PickerOption<T>[]; disabled?: boolean; choose: (value: T) => void }) {
  const id = useId();
  return (
    <div class="field">
      <label class="field-label" for={id}>
        {p.label}
      </label>
      <Picker id={id} value={p.value} options={p.options} disabled={p.disabled} choose={p.choose} />
    </div>
  );
}

// ForNewUsers is true where the fields below are the defaults of new users instead of the user's own settings.
export const ForNewUsers = createContext(false);

// useUserSetting returns a setting of the user, or the default for new users, and the function that changes it.
function useUserSetting<K extends keyof UserSettings>(name: K): [UserSettings[K] | undefined, (value: unknown) => Promise<unknown>] {
  const forNew = useContext(ForNewUsers);
  const settings: Partial<UserSettings> = read(forNew ? "defaults" : "settings");
  return [settings[name], (v) => (forNew ? changeDefaults : changeSetting)({ [name]: v })];
}

// UserSwitch and UserChoice are fields of the user's settings, by their names on the wire.
export function UserSwitch(p: { name: SettingOf<boolean>; label: string; help?: string }) {
  const [value, save] = useUserSetting(p.name);
  if (!hasEffect(p.name)) return null;
  return <Switch label={p.label} help={p.help} value={Boolean(value)} save={save} />;
}

type ChoiceName = SettingOf<string> | SettingOf<number>;

export function UserChoice<K extends ChoiceName>(p: { name: K; label: string; help?: string; options: { value: UserSettings[K]; label: string }[] }) {
  const [value, save] = useUserSetting(p.name);
  if (!hasEffect(p.name)) return null;
  return <Choice label={p.label} help={p.help} value={value} options={p.options} save={save} />;
}
