// The windows #drafts, #scheduled and #reminders, and the question for a time.
import { useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import type { Destination } from "../api/endpoints.ts";
import { cancelReminder, cancelScheduled, deleteDraft, remind, type Repetition, schedule } from "../api/saved.ts";
import type { Message } from "../api/types.ts";
import { placeName } from "../store/queries.ts";
import { t } from "../i18n/text.ts";
import { Content } from "../content/content.tsx";
import { closeOverlay } from "../store/router.ts";
import type { FormName } from "../forms/form_names.ts";
import { PlainChoice } from "../forms/fields.tsx";
import { attempt } from "../store/actions.ts";
import { serverNow } from "../api/clock.ts";
import { peek, read } from "../store/store.ts";
import { Dialog, useSubmit } from "../ui/dialogs.tsx";
import { Icon } from "../ui/icons.tsx";
import { notify } from "../store/notices.ts";
import { formatTime } from "../ui/time.ts";
import { localTime, TimeField } from "../ui/time_field.tsx";
import { fillBox, restore } from "./drafts.ts";

// keys moves between the entries, and edits or deletes the one that has the focus.
function keys(e: KeyboardEvent): void {
  const entries = [...(e.currentTarget as Element).querySelectorAll<HTMLElement>("[data-entry]")];
  const at = entries.findIndex((x) => x.contains(document.activeElement));
  const press = (name: string): void => entries[at]?.querySelector<HTMLElement>(`[data-press="${name}"]`)?.click();
  if (e.key === "ArrowDown") entries[Math.min(at + 1, entries.length - 1)]?.focus();
  else if (e.key === "ArrowUp") entries[Math.max(at - 1, 0)]?.focus();
  else if (e.key === "Enter" && document.activeElement === entries[at]) press("edit");
  else if (e.key === "Backspace" || e.key === "Delete") {
    press("delete");
    (entries[at + 1] ?? entries[at - 1])?.focus();
  } else return;
  e.preventDefault();
  e.stopPropagation();
}

function Window({ title, empty, reason, children }: { title: string; empty: string; reason: string; children: ComponentChildren[] }) {
  return (
    <Dialog title={title} class="channels" onClose={closeOverlay} keys={keys}>
      <ul class="channel-list saved-list" tabIndex={0} aria-label={title}>
        {children.length > 0 ? (
          children
        ) : (
          <li class="empty-list">
            <strong>{empty}</strong>
            <span class="quiet">{reason}</span>
            <button type="button" class="button small quiet" onClick={closeOverlay}>
              {t("Close")}
            </button>
          </li>
        )}
      </ul>
    </Dialog>
  );
}

interface EntryProps {
  place: string;
  at: number;
  children: ComponentChildren;
  edit?: () => void;
  remove: () => unknown;
  failed?: boolean;
  every?: string;
}

function Entry(p: EntryProps) {
  return (
    <li tabIndex={-1} data-entry>
      <div class="grow">
        <strong>{p.place}</strong>
        <small>
          {formatTime(p.at, "full")}
          {p.every && ` · ${p.every}`}
          {p.failed && ` · ${t("Not delivered")}`}
        </small>
        {p.children}
      </div>
      {p.edit && (
        <button type="button" class="icon-button" aria-label={t("Edit")} title={t("Edit")} data-press="edit" onClick={p.edit}>
          <Icon name="edit" size={16} />
        </button>
      )}
      <button type="button" class="icon-button" aria-label={t("Delete")} title={t("Delete")} data-press="delete" onClick={() => void p.remove()}>
        <Icon name="trash" size={16} />
      </button>
    </li>
  );
}

function place(type: string, to: number[], topic: string): string {
  if (type === "private") return to.length ? placeName({ people: to }) : t("Direct message");
  return to.length ? placeName({ channel: to[0]!, topic }) : t("No channel");
}

export function Drafts() {
  const list = [...read("drafts").values()].sort((a, b) => b.timestamp - a.timestamp);
  return (
    <Window title={t("Drafts")} empty={t("You have no drafts.")} reason={t("A text that you leave in the box is kept here.")}>
      {list.map((d) => {
        const edit = (): void => restore(d);
        return (
          <Entry key={d.id} place={place(d.type, d.to, d.topic)} at={d.timestamp} edit={edit} remove={() => attempt(deleteDraft(d.id))}>
            <p class="saved-text" dir="auto">
              {d.content}
            </p>
          </Entry>
        );
      })}
    </Window>
  );
}

export function Scheduled() {
  const list = [...read("scheduled").values()].sort((a, b) => a.scheduled_delivery_timestamp - b.scheduled_delivery_timestamp);
  return (
    <Window title={t("Scheduled messages")} empty={t("You have no scheduled messages.")} reason={t("To send a text later, open the menu beside Send.")}>
      {list.map((m) => {
        const to = [m.to].flat();
        const edit = async (): Promise<void> => {
          if (!(await attempt(cancelScheduled(m.scheduled_message_id)))) return;
          fillBox(m.type === "private", to, m.topic ?? "", m.content);
        };
        return (
          <Entry
            key={m.scheduled_message_id}
            place={place(m.type, to, m.topic ?? "")}
            at={m.scheduled_delivery_timestamp}
            failed={m.failed}
            every={m.repeat && repetitions().find((x) => x.value === m.repeat?.every)?.label}
            edit={() => void edit()}
            remove={() => attempt(cancelScheduled(m.scheduled_message_id))}
          >
            <Content html={m.rendered_content} />
          </Entry>
        );
      })}
    </Window>
  );
}

export function Reminders() {
  const list = [...read("reminders").values()].sort((a, b) => a.scheduled_delivery_timestamp - b.scheduled_delivery_timestamp);
  return (
    <Window title={t("Reminders")} empty={t("You have no reminders.")} reason={t("The menu of a message can remind you of it.")}>
      {list.map((r) => (
        <Entry key={r.reminder_id} place={t("Reminder")} at={r.scheduled_delivery_timestamp} failed={r.failed} remove={() => attempt(cancelReminder(r.reminder_id))}>
          <Content html={r.rendered_content} />
        </Entry>
      ))}
    </Window>
  );
}

function nextMorning(days: number): Date {
  const d = new Date(serverNow());
  d.setDate(d.getDate() + days);
  d.setHours(9, 0, 0, 0);
  return d;
}

function repetitions(): { value: Repetition; label: string }[] {
  return [
    { value: "", label: t("Once") },
    { value: "daily", label: t("Every day") },
    { value: "weekdays", label: t("Monday to Friday") },
    { value: "weekly", label: t("Every week") },
    { value: "monthly", label: t("Every month") },
  ];
}

interface TimeDialogProps {
  form: FormName;
  title: string;
  button: string;
  note?: boolean;
  repeat?: boolean;
  run: (at: number, note: string, every: Repetition) => Promise<unknown>;
}

function TimeDialog(p: TimeDialogProps) {
  const [at, setAt] = useState(localTime(nextMorning(1)));
  const [note, setNote] = useState("");
  const [every, setEvery] = useState<Repetition>("");
  const choices: [string, Date][] = [
    [t("In one hour"), new Date(serverNow() + 3600_000)],
    [t("Tomorrow"), nextMorning(1)],
    [t("Next Monday"), nextMorning(((8 - new Date(serverNow()).getDay()) % 7) || 7)],
  ];
  const [busy, send] = useSubmit();
  const submit = (e: Event): void => {
    e.preventDefault();
    if (Number.isNaN(Date.parse(at))) return notify(t("This is no date."), "error");
    send(() => attempt(p.run(Math.floor(new Date(at).getTime() / 1000), note, every)).then(Boolean));
  };
  return (
    <Dialog title={p.title}>
      <form class="dialog-text channel-form" data-form={p.form} onSubmit={submit}>
        <div class="time-choices">
          {choices.map(([label, time]) => (
            <button key={label} type="button" class="button small quiet" onClick={() => setAt(localTime(time))}>
              {label}
            </button>
          ))}
        </div>
        <TimeField value={at} set={setAt} />
        {p.repeat && (
          <PlainChoice label={t("How often")} value={every} options={repetitions()} choose={setEvery} />
        )}
        {p.note && (
          <label class="field">
            <span class="field-label">{t("Note")}</span>
            <input class="input" value={note} maxLength={Number(peek().realm.max_reminder_note_length ?? 1000)} onInput={(e) => setNote(e.currentTarget.value)} />
          </label>
        )}
        <footer class="dialog-foot">
          <button type="submit" class="button" aria-busy={busy}>
            {p.button}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

export function ScheduleDialog({ to, content, sent }: { to: Destination; content: string; sent: () => void }) {
  const run = async (at: number, _note: string, every: Repetition): Promise<boolean> => {
    await schedule(to, content, at, every);
    sent();
    notify(t("The message will be sent {time}.", { time: formatTime(at, "full") }));
    return true;
  };
  return <TimeDialog form="send-later" title={t("Send later")} button={t("Schedule")} repeat run={run} />;
}

export function RemindDialog({ message }: { message: Message }) {
  const run = async (at: number, note: string): Promise<boolean> => {
    await remind(message.id, at, note);
    notify(t("You will be reminded {time}.", { time: formatTime(at, "full") }));
    return true;
  };
  return <TimeDialog form="remind-me" title={t("Remind me")} button={t("Remind me")} note run={run} />;
}
