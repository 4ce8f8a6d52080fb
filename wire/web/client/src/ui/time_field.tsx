// Fields for a date and a time, instead of those of the browser: a calendar, and a picker of times. Values have the form
// 2031-04-05T09:30 or 2031-04-05, in the time zone of the browser.
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { currentLanguage, t } from "../i18n/text.ts";
import { Icon } from "./icons.tsx";
import { Picker, type PickerOption } from "./picker.tsx";

// localTime writes a time as the fields have it.
export function localTime(at: Date): string {
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

const everyMinutes = 15; // of the offered times

function times(now: string): PickerOption<string>[] {
  const list = new Set<string>();
  for (let m = 0; m < 24 * 60; m += everyMinutes) list.add(`${String(Math.floor(m / 60)).padStart(2, "0")}:${String(m % 60).padStart(2, "0")}`);
  if (/^\d\d:\d\d$/.test(now)) list.add(now);
  const format = new Intl.DateTimeFormat(currentLanguage(), { hour: "numeric", minute: "2-digit" });
  return [...list].sort().map((value) => ({ value, label: format.format(new Date(`2000-01-01T${value}`)), detail: value }));
}

export function TimeField({ value, set }: { value: string; set: (value: string) => void }) {
  const id = useId();
  const [date = "", time = "09:00"] = value.split("T");
  return (
    <div class="time-field">
      <div class="field">
        <label class="field-label" for={`${id}-date`}>
          {t("Date")}
        </label>
        <DateField id={`${id}-date`} value={date} set={(d) => set(`${d}T${time}`)} />
      </div>
      <div class="field">
        <label class="field-label" for={`${id}-time`}>
          {t("Time")}
        </label>
        <Picker id={`${id}-time`} value={time} options={times(time)} choose={(x) => set(`${date}T${x}`)} />
      </div>
    </div>
  );
}

// parts returns year, month (0 to 11) and day of a date, null for other texts.
function parts(date: string): [number, number, number] | null {
  const m = /^(\d{4})-(\d\d)-(\d\d)$/.exec(date);
  if (!m) return null;
  const [y, mo, d] = [Number(m[1]), Number(m[2]) - 1, Number(m[3])];
  const real = new Date(Date.UTC(y, mo, d));
  return real.getUTCMonth() === mo && real.getUTCDate() === d ? [y, mo, d] : null;
}

function iso(y: number, month: number, day: number): string {
  return new Date(Date.UTC(y, month, day)).toISOString().slice(0, 10);
}

interface DateProps {
  id: string;
  value: string;
  set: (value: string) => void;
  name?: string;
  required?: boolean;
  describedBy?: string;
}

// DateField is a text such as 2031-04-05, with a button that opens a calendar.
export function DateField({ id, value, set, name, required, describedBy }: DateProps) {
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLSpanElement>(null);
  return (
    <span class="picker date-field" ref={box}>
      <input
        id={id}
        class="picker-input"
        type="text"
        inputMode="numeric"
        name={name}
        required={required}
        aria-describedby={describedBy}
        placeholder={t("YYYY-MM-DD")}
        pattern="\d{4}-\d\d-\d\d"
        autocomplete="off"
        data-date
        value={value}
        onInput={(e) => set(e.currentTarget.value)}
        onKeyDown={(e) => {
          if (e.key !== "ArrowDown") return;
          e.preventDefault();
          setOpen(true);
        }}
      />
      <button type="button" class="icon-button small" aria-label={t("Open the calendar")} title={t("Open the calendar")} aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name="calendar" size={16} />
      </button>
      {open && (
        <Calendar
          anchor={box}
          value={value}
          close={() => setOpen(false)}
          choose={(date) => {
            set(date);
            setOpen(false);
            box.current?.querySelector("input")?.focus();
          }}
        />
      )}
    </span>
  );
}

// Calendar shows one month. The arrow keys go through the days, PageUp and PageDown through the months.
function Calendar({ anchor, value, choose, close }: { anchor: { current: HTMLElement | null }; value: string; choose: (date: string) => void; close: () => void }) {
  const today = localTime(new Date()).slice(0, 10);
  const [day, setDay] = useState(parts(value) ? value : today);
  const el = useRef<HTMLDivElement>(null);
  const [y, month] = parts(day)!;
  const language = currentLanguage();
  const title = new Intl.DateTimeFormat(language, { month: "long", year: "numeric", timeZone: "UTC" }).format(new Date(Date.UTC(y, month, 1)));
  const weekday = new Intl.DateTimeFormat(language, { weekday: "short", timeZone: "UTC" });
  const full = new Intl.DateTimeFormat(language, { dateStyle: "full", timeZone: "UTC" });
  useLayoutEffect(() => {
    const box = el.current!;
    box.showPopover();
    const at = anchor.current!.getBoundingClientRect();
    const { width, height } = box.getBoundingClientRect();
    const gap = 4;
    box.style.left = `${Math.max(gap, Math.min(at.left, innerWidth - width - gap))}px`;
    box.style.top = `${at.bottom + gap + height < innerHeight ? at.bottom + gap : Math.max(gap, at.top - gap - height)}px`;
    const outside = (e: Event): void => {
      if (!box.contains(e.target as Node) && !anchor.current?.contains(e.target as Node)) close();
    };
    addEventListener("mousedown", outside, true);
    return () => removeEventListener("mousedown", outside, true);
  }, []);
  useLayoutEffect(() => el.current!.querySelector<HTMLElement>(`[data-day="${day}"]`)?.focus(), [day]);
  const move = (days: number): void => setDay(iso(y, month, parts(day)![2] + days));
  const turn = (by: number): void => setDay(iso(y, month + by, Math.min(parts(day)![2], new Date(Date.UTC(y, month + by + 1, 0)).getUTCDate())));
  const keys = (e: KeyboardEvent): void => {
    const rtl = document.documentElement.dir === "rtl" ? -1 : 1;
    const days = { ArrowRight: rtl, ArrowLeft: -rtl, ArrowDown: 7, ArrowUp: -7 }[e.key];
    if (days !== undefined) move(days);
    else if (e.key === "PageDown") turn(1);
    else if (e.key === "PageUp") turn(-1);
    else if (e.key === "Escape") {
      close();
      anchor.current?.querySelector("input")?.focus();
    } else return;
    e.preventDefault();
    e.stopPropagation();
  };
  const first = (new Date(Date.UTC(y, month, 1)).getUTCDay() + 6) % 7; // 0 is Monday
  const count = new Date(Date.UTC(y, month + 1, 0)).getUTCDate();
  const cells = [...Array<null>(first).fill(null), ...Array.from({ length: count }, (_, i) => iso(y, month, i + 1))];
  const weeks = Array.from({ length: Math.ceil(cells.length / 7) }, (_, i) => cells.slice(i * 7, i * 7 + 7));
  return (
    <div ref={el} popover="manual" class="calendar" role="group" aria-label={title} onKeyDown={keys}>
      <div class="calendar-head">
        <button type="button" class="icon-button small turned" aria-label={t("Previous month")} onClick={() => turn(-1)}>
          <Icon name="chevronRight" size={16} />
        </button>
        <strong aria-live="polite">{title}</strong>
        <button type="button" class="icon-button small" aria-label={t("Next month")} onClick={() => turn(1)}>
          <Icon name="chevronRight" size={16} />
        </button>
      </div>
      <table role="grid" aria-label={title}>
        <thead>
          <tr>
            {[1, 2, 3, 4, 5, 6, 7].map((n) => (
              <th key={n} scope="col">
                {weekday.format(new Date(Date.UTC(2024, 0, n)))}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {weeks.map((week, i) => (
            <tr key={i}>
              {week.map((d, k) =>
                d ? (
                  <td key={d} aria-selected={d === value}>
                    <button
                      type="button"
                      data-day={d}
                      tabIndex={d === day ? 0 : -1}
                      class={`${d === value ? "chosen" : ""} ${d === today ? "today" : ""}`}
                      aria-label={full.format(new Date(d + "T00:00Z"))}
                      onClick={() => choose(d)}
                    >
                      {Number(d.slice(8))}
                    </button>
                  </td>
                ) : (
                  <td key={`none ${k}`} />
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
