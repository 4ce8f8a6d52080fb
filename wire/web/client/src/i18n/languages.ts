// The languages of the texts. A table is loaded when a user chooses its language.
import { effect } from "@preact/signals";
import { setTexts } from "./text.ts";

// languageNames are the languages with a table, each in its own language.
export const languageNames: Record<string, string> = { en: "English", de: "Deutsch" };

const tables: Record<string, () => Promise<Record<string, string>>> = {
  de: () => import("./de.ts").then((m) => m.texts),
};

const waitMs = 5000; // the first screen is shown in English if the table has not arrived by then

async function load(wanted: string, chosen: () => string): Promise<void> {
  const language = wanted.split("-")[0]!;
  const table = tables[language];
  if (!table) return setTexts("en", {});
  const texts = await table();
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
