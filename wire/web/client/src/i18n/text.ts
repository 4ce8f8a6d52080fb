// Every text that a user sees goes through t. A table has the translations; a text without one is shown in English.
//
//   t("Mark as read")
//   t("{count} unread messages", { count })
//   plural(count, "{count} message", "{count} messages")

import { signal } from "@preact/signals";

export type Values = Record<string, string | number>;

interface Texts {
  language: string;
  table: Record<string, string>;
  rules: Intl.PluralRules;
}

// current is a cache of a table. It is a signal, so that components are drawn again in another language.
const current = signal<Texts>({ language: "en", table: {}, rules: new Intl.PluralRules("en") });

// setTexts replaces the table of translations.
export function setTexts(language: string, table: Record<string, string>): void {
  current.value = { language, table, rules: new Intl.PluralRules(language) };
}

// currentLanguage returns the language of the texts, which is English if the chosen language has no table.
export function currentLanguage(): string {
  return current.value.language;
}

export function t(english: string, values?: Values): string {
  const text = current.value.table[english] ?? english;
  return values ? fill(text, values) : text;
}

function fill(text: string, values: Values): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => (name in values ? String(values[name]) : whole));
}

// plural chooses the form for a number, by the rules of the language.
export function plural(count: number, one: string, other: string, values: Values = {}): string {
  const { rules, table } = current.value;
  const form = table[`${other}|${rules.select(count)}`] ?? table[`${other}|other`];
  return fill(form ?? (count === 1 ? one : other), { count: formatNumber(count), ...values });
}

export function formatNumber(n: number): string {
  return new Intl.NumberFormat(currentLanguage()).format(n);
}
