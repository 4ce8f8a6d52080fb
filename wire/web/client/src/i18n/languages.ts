// The languages of the texts. A table is loaded when a user chooses its language. catalogue.mjs makes it of a file in
// locale.
import { effect } from "@preact/signals";
import { setTexts } from "./text.ts";

// languageNames are the languages with a table, by their codes on the server, each in its own language.
export const languageNames: Record<string, string> = {
  en: "English",
  de: "Deutsch",
  fr: "Français",
  es: "Español",
  pt: "Português",
  it: "Italiano",
  nl: "Nederlands",
  ja: "日本語",
  "zh-hans": "简体中文",
  ar: "العربية",
};

type Table = () => Promise<{ texts: Record<string, string> }>;

// tables has the languages by their standard codes.
const tables: Record<string, Table> = {
  de: () => import("../../locale/de.json"),
  fr: () => import("../../locale/fr.json"),
  es: () => import("../../locale/es.json"),
  pt: () => import("../../locale/pt.json"),
  it: () => import("../../locale/it.json"),
  nl: () => import("../../locale/nl.json"),
  ja: () => import("../../locale/ja.json"),
  "zh-Hans": () => import("../../locale/zh-Hans.json"),
  ar: () => import("../../locale/ar.json"),
};

const waitMs = 5000; // the first screen is shown in English if the table has not arrived by then

// standardCode returns the code of the table for a language of the server, "en" if there is none.
export function standardCode(wanted: string): string {
  if (wanted.toLowerCase() === "zh-hans") return "zh-Hans";
  const language = wanted.split("-")[0]!;
  return language in tables ? language : "en";
}

async function load(wanted: string, chosen: () => string): Promise<void> {
  const language = standardCode(wanted);
  const texts = (await tables[language]?.())?.texts ?? {};
  if (chosen() === wanted) setTexts(language, texts);
}

// startTexts loads the texts of the language that chosen returns, and those of another one when that changes.
export async function startTexts(chosen: () => string): Promise<void> {
  let shown = "";
  let first = Promise.resolve();
  effect(() => {
    const wanted = chosen();
    if (wanted === shown) return;
    shown = wanted;
    first = load(wanted, chosen).catch((err: unknown) => console.info("the texts could not be loaded", err));
  });
  await Promise.race([first, new Promise((resolve) => setTimeout(resolve, waitMs))]);
}
