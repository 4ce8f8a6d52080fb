// Every text that a user sees goes through t. A table has the translations; a text without one is shown in English.
//
//   t("Mark as read")
//   t("{count} unread messages", { count })
//   plural(count, "{count} message", "{count} messages")

export type Values = Record<string, string | number>;

let table: Record<string, string> = {};
let language = "en";

// setTexts replaces the table of translations.
export function setTexts(lang: string, texts: Record<string, string>): void {
  language = lang;
  table = texts;
  rules = new Intl.PluralRules(lang);
}

let rules = new Intl.PluralRules("en");

export function currentLanguage(): string {
  return language;
}

export function t(english: string, values?: Values): string {
  const text = table[english] ?? english;
  if (!values) return text;
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => (name in values ? String(values[name]) : whole));
}

// plural chooses the form for a number. The translation of the second text may have the keys "TEXT|few" and so on.
export function plural(count: number, one: string, other: string, values: Values = {}): string {
  const all = { count: formatNumber(count), ...values };
  const category = rules.select(count);
  const special = table[`${other}|${category}`];
  if (special !== undefined) return t(`${other}|${category}`, all);
  return t(category === "one" ? one : other, all);
}

export function formatNumber(n: number): string {
  return new Intl.NumberFormat(language).format(n);
}
