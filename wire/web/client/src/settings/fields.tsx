// Fields of settings that save themselves when they are changed.
import { useState } from "preact/hooks";
import { changeSetting } from "../api/endpoints.ts";
import { errorText } from "../api/client.ts";
import { t } from "../i18n/text.ts";
import { read } from "../store/store.ts";

type Save = (value: unknown) => Promise<unknown>;

function useSaving(save: Save): { state: string; run: (value: unknown) => void } {
  const [state, setState] = useState("");
  const run = (value: unknown): void => {
    setState(t("Saving…"));
    save(value).then(
      () => {
        setState(t("Saved"));
        setTimeout(() => setState(""), 2000);
      },
      (err: unknown) => setState(errorText(err)),
    );
  };
  return { state, run };
}

export function Switch(p: { label: string; help?: string; value: boolean; disabled?: boolean; save: Save }) {
  const { state, run } = useSaving(p.save);
  return (
    <label class="field switch">
      <input type="checkbox" checked={p.value} disabled={p.disabled} onChange={(e) => run(e.currentTarget.checked)} />
      <span class="grow">
        {p.label}
        {p.help && <small>{p.help}</small>}
      </span>
      <span class="field-state" role="status">
        {state}
      </span>
    </label>
  );
}

export function Choice<T extends string | number>(p: {
  label: string;
  help?: string;
  value: T;
  options: { value: T; label: string }[];
  disabled?: boolean;
  save: (value: T) => Promise<unknown>;
}) {
  const { state, run } = useSaving((v) => p.save(v as T));
  return (
    <label class="field">
      <span class="field-label">{p.label}</span>
      <select class="input" value={String(p.value)} disabled={p.disabled} onChange={(e) => run(p.options.find((o) => String(o.value) === e.currentTarget.value)!.value)}>
        {p.options.map((o) => (
          <option key={o.value} value={String(o.value)}>
            {o.label}
          </option>
        ))}
      </select>
      <span class="field-state" role="status">
        {state}
      </span>
      {p.help && <small>{p.help}</small>}
    </label>
  );
}

// UserSwitch and UserChoice are fields of the user's own settings, by their names on the wire.
export function UserSwitch(p: { name: string; label: string; help?: string }) {
  const value = Boolean(read("settings")[p.name]);
  return <Switch label={p.label} help={p.help} value={value} save={(v) => changeSetting({ [p.name]: v })} />;
}

export function UserChoice<T extends string | number>(p: { name: string; label: string; help?: string; options: { value: T; label: string }[] }) {
  const value = read("settings")[p.name] as T;
  return <Choice label={p.label} help={p.help} value={value} options={p.options} save={(v) => changeSetting({ [p.name]: v })} />;
}
