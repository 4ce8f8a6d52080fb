// Windows that write something into the text field: a poll, a list of tasks, a time.
import { useState } from "preact/hooks";
import { serverNow } from "../api/clock.ts";
import { change } from "../editor/text_field.ts";
import { t } from "../i18n/text.ts";
import { closeDialog, Dialog, openDialog } from "../ui/dialogs.tsx";
import { TimeField, localTime } from "../ui/time_field.tsx";
import { Icon } from "../ui/icons.tsx";
import { formatTime } from "../ui/time.ts";

const maxLines = 20; // options or tasks

// write puts a text in place of a part of a field, else of all of it. The field gets no focus while the window is open.
function write(area: HTMLTextAreaElement, insert: string, part?: Part): void {
  closeDialog();
  requestAnimationFrame(() => change(area, (s) => ({ from: part?.start ?? 0, to: part?.end ?? s.value.length, insert })));
}

// Part is what was selected in a field when the window was opened.
interface Part {
  start: number;
  end: number;
}

function Foot({ button, disabled, run }: { button: string; disabled: boolean; run: () => void }) {
  return (
    <footer class="dialog-foot">
      <button type="button" class="button quiet" onClick={closeDialog}>
        {t("Cancel")}
      </button>
      <button type="button" class="button" disabled={disabled} onClick={run}>
        {button}
      </button>
    </footer>
  );
}

// Lines are fields below each other. The last one is empty: typing into it adds another.
function Lines({ label, lines, set }: { label: string; lines: string[]; set: (lines: string[]) => void }) {
  return (
    <fieldset class="insert-lines">
      <legend class="field-label">{label}</legend>
      {[...lines, ""].slice(0, maxLines).map((line, i) => (
        <span key={i} class="insert-line">
          <input class="input" aria-label={`${label} ${i + 1}`} value={line} onInput={(e) => set([...lines.slice(0, i), e.currentTarget.value, ...lines.slice(i + 1)])} />
          {i < lines.length && (
            <button type="button" class="icon-button" aria-label={t("Remove {name}", { name: line || `${label} ${i + 1}` })} onClick={() => set(lines.filter((_, k) => k !== i))}>
              <Icon name="close" size={15} />
            </button>
          )}
        </span>
      ))}
    </fieldset>
  );
}

function PollDialog({ area }: { area: HTMLTextAreaElement }) {
  const [question, setQuestion] = useState("");
  const [options, setOptions] = useState(["", ""]);
  const given = options.map((x) => x.trim()).filter(Boolean);
  return (
    <Dialog title={t("New poll")}>
      <div class="dialog-text">
        <label class="field">
          <span class="field-label">{t("Question")}</span>
          <input class="input" autofocus value={question} onInput={(e) => setQuestion(e.currentTarget.value)} />
        </label>
        <Lines label={t("Option")} lines={options} set={setOptions} />
        <Foot button={t("Add poll")} disabled={!question.trim()} run={() => write(area, [`/poll ${question.trim()}`, ...given].join("\n"))} />
      </div>
    </Dialog>
  );
}

function TodoDialog({ area }: { area: HTMLTextAreaElement }) {
  const [title, setTitle] = useState("");
  const [tasks, setTasks] = useState([""]);
  const given = tasks.map((x) => x.trim()).filter(Boolean);
  return (
    <Dialog title={t("New todo list")}>
      <div class="dialog-text">
        <label class="field">
          <span class="field-label">{t("Title")}</span>
          <input class="input" autofocus value={title} onInput={(e) => setTitle(e.currentTarget.value)} />
        </label>
        <Lines label={t("Task")} lines={tasks} set={setTasks} />
        <Foot button={t("Add todo list")} disabled={!title.trim()} run={() => write(area, [`/todo ${title.trim()}`, ...given].join("\n"))} />
      </div>
    </Dialog>
  );
}

function TimeDialog({ area, part }: { area: HTMLTextAreaElement; part: Part }) {
  const [at, setAt] = useState(localTime(new Date(Math.ceil(serverNow() / 3_600_000) * 3_600_000)));
  const ms = Date.parse(at);
  const valid = !Number.isNaN(ms);
  return (
    <Dialog title={t("Insert a time")}>
      <div class="dialog-text">
        <TimeField value={at} set={setAt} />
        <p class="quiet">{valid && t("Everyone sees this in their own time zone: {time}", { time: formatTime(ms / 1000, "full") })}</p>
        <Foot button={t("Insert")} disabled={!valid} run={() => write(area, `<time:${new Date(ms).toISOString().slice(0, 19)}Z> `, part)} />
      </div>
    </Dialog>
  );
}

export function openPoll(area: HTMLTextAreaElement): void {
  openDialog(<PollDialog area={area} />);
}

export function openTodo(area: HTMLTextAreaElement): void {
  openDialog(<TodoDialog area={area} />);
}

export function openTime(area: HTMLTextAreaElement): void {
  openDialog(<TimeDialog area={area} part={{ start: area.selectionStart, end: area.selectionEnd }} />);
}
