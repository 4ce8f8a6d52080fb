// Times and dates as texts, in the user's language and style.
import { currentLanguage, t } from "../i18n/text.ts";
import { serverNow } from "../api/clock.ts";
import { peek } from "../store/store.ts";

const formats = new Map<string, Intl.DateTimeFormat>(); // cache

function format(options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = currentLanguage() + JSON.stringify(options);
  let f = formats.get(key);
  if (!f) formats.set(key, (f = new Intl.DateTimeFormat(currentLanguage(), options)));
  return f;
}

// lastSecond is the last timestamp that a Date of JavaScript can have, in seconds (ECMAScript, "Time Values").
const lastSecond = 8.64e12;

// isTime reports whether a number of seconds is a time. The formats throw a RangeError for others, such as 10^18, and an
// app may store any number: one bad row must not hide its list.
function isTime(seconds: number): boolean {
  return Math.abs(seconds) <= lastSecond;
}

function hour12(): boolean | undefined {
  const wanted = peek().settings.twenty_four_hour_time;
  return wanted === null || wanted === undefined ? undefined : !wanted;
}

// formatTime returns a time: of the day, with the date, or in full.
export function formatTime(seconds: number, style: "time" | "short" | "full" = "time"): string {
  if (!isTime(seconds)) return t("Unknown time");
  const clock = { hour: "numeric", minute: "2-digit", hour12: hour12() } as const;
  const date = new Date(seconds * 1000);
  if (style === "time") return format(clock).format(date);
  if (style === "short") {
    if (dayOf(seconds) === dayOf(serverNow() / 1000)) return format(clock).format(date);
    return formatDay(seconds);
  }
  return format({ weekday: "short", year: "numeric", month: "short", day: "numeric", ...clock }).format(date);
}

// dayOf is a number that differs for messages of different days; 0 if the time is unknown.
export function dayOf(seconds: number): number {
  if (!isTime(seconds)) return 0;
  const d = new Date(seconds * 1000);
  return d.getFullYear() * 400 + d.getMonth() * 32 + d.getDate();
}

export function formatDay(seconds: number): string {
  if (!isTime(seconds)) return t("Unknown time");
  const now = serverNow() / 1000;
  if (dayOf(seconds) === dayOf(now)) return t("Today");
  if (dayOf(seconds) === dayOf(now - 86_400)) return t("Yesterday");
  const sameYear = new Date(seconds * 1000).getFullYear() === new Date(now * 1000).getFullYear();
  return format({ weekday: "short", month: "short", day: "numeric", year: sameYear ? undefined : "numeric" }).format(
    new Date(seconds * 1000),
  );
}

// formatDayInYear returns the date with its year.
export function formatDayInYear(seconds: number): string {
  if (!isTime(seconds)) return t("Unknown time");
  return format({ dateStyle: "medium" }).format(new Date(seconds * 1000));
}

// formatNowIn returns the time of day in a time zone, or "" if the browser does not know the zone.
export function formatNowIn(timeZone: string): string {
  try {
    return format({ timeZone, hour: "numeric", minute: "2-digit", hour12: hour12() }).format(new Date(serverNow()));
  } catch {
    return "";
  }
}

// formatDate returns the date and the time of day, for tables.
export function formatDate(seconds: number): string {
  if (!isTime(seconds)) return t("Unknown time");
  return format({ dateStyle: "medium", timeStyle: "short" }).format(new Date(seconds * 1000));
}

// formatAgo returns how long ago something was, such as "5 minutes ago".
export function formatAgo(seconds: number): string {
  if (!isTime(seconds)) return t("Unknown time");
  const past = Math.max(0, serverNow() / 1000 - seconds);
  const relative = new Intl.RelativeTimeFormat(currentLanguage(), { numeric: "auto" });
  if (past < 60) return t("just now");
  if (past < 3600) return relative.format(-Math.floor(past / 60), "minute");
  if (past < 86_400) return relative.format(-Math.floor(past / 3600), "hour");
  if (past < 30 * 86_400) return relative.format(-Math.floor(past / 86_400), "day");
  return formatDay(seconds);
}
