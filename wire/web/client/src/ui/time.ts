// Times and dates as texts, in the user's language and style.
import { currentLanguage, t } from "../i18n/text.ts";
import { serverNow } from "../store/clock.ts";
import { peek } from "../store/store.ts";

const formats = new Map<string, Intl.DateTimeFormat>();

function format(options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = currentLanguage() + JSON.stringify(options);
  let f = formats.get(key);
  if (!f) formats.set(key, (f = new Intl.DateTimeFormat(currentLanguage(), options)));
  return f;
}

function hour12(): boolean | undefined {
  const wanted = peek().settings.twenty_four_hour_time;
  return wanted === null || wanted === undefined ? undefined : !wanted;
}

// formatTime returns a time: of the day, with the date, or in full.
export function formatTime(seconds: number, style: "time" | "short" | "full" = "time"): string {
  const clock = { hour: "numeric", minute: "2-digit", hour12: hour12() } as const;
  const date = new Date(seconds * 1000);
  if (style === "time") return format(clock).format(date);
  if (style === "short") {
    if (dayOf(seconds) === dayOf(serverNow() / 1000)) return format(clock).format(date);
    return formatDay(seconds);
  }
  return format({ weekday: "short", year: "numeric", month: "short", day: "numeric", ...clock }).format(date);
}

// dayOf is a number that differs for messages of different days.
export function dayOf(seconds: number): number {
  const d = new Date(seconds * 1000);
  return d.getFullYear() * 400 + d.getMonth() * 32 + d.getDate();
}

export function formatDay(seconds: number): string {
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
  return format({ dateStyle: "medium" }).format(new Date(seconds * 1000));
}

// formatNowIn returns the time of day in a time zone. Unknown zones throw a RangeError.
export function formatNowIn(timeZone: string): string {
  return format({ timeZone, hour: "numeric", minute: "2-digit", hour12: hour12() }).format(new Date(serverNow()));
}

// formatDate returns the date and the time of day, for tables.
export function formatDate(seconds: number): string {
  return format({ dateStyle: "medium", timeStyle: "short" }).format(new Date(seconds * 1000));
}

// formatAgo returns how long ago something was, such as "5 minutes ago".
export function formatAgo(seconds: number): string {
  const past = Math.max(0, serverNow() / 1000 - seconds);
  const relative = new Intl.RelativeTimeFormat(currentLanguage(), { numeric: "auto" });
  if (past < 60) return t("just now");
  if (past < 3600) return relative.format(-Math.floor(past / 60), "minute");
  if (past < 86_400) return relative.format(-Math.floor(past / 3600), "hour");
  if (past < 30 * 86_400) return relative.format(-Math.floor(past / 86_400), "day");
  return formatDay(seconds);
}
