import { currentLanguage } from "../i18n/text.ts";

// formatDate returns day and time of a number of seconds.
export function formatDate(seconds: number): string {
  const form = new Intl.DateTimeFormat(currentLanguage(), { dateStyle: "medium", timeStyle: "short" });
  return form.format(new Date(seconds * 1000));
}
