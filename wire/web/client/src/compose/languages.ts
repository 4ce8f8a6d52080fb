// Languages of code blocks, completed after three backticks or tildes. The names are those that the server highlights:
// the table is the one of its Markdown package.
import { t } from "../i18n/text.ts";
import { peek } from "../store/store.ts";
import type { Completer, Completion } from "../editor/extras.ts";

export interface Language {
  name: string; // as it is written in the message
  title: string; // for people
}

// blocks are not code in spite of their fence, or code that is not highlighted.
const blocks: [string, () => string][] = [
  ["quote", () => t("Quotation")],
  ["spoiler", () => t("Text that is hidden until it is clicked")],
  ["math", () => t("Formula")],
  ["latex", () => t("LaTeX, as code")],
  ["text", () => t("Code without colours")],
];

// common languages are offered before others that begin with the same letters. Their order is that of the list.
const common = [
  "python", "javascript", "typescript", "java", "go", "rust", "c", "cpp", "c++", "csharp", "c#", "bash", "sh", "sql",
  "html", "css", "json", "yaml", "php", "ruby", "perl", "kotlin", "swift", "r", "diff", "console", "xml", "toml",
  "markdown", "docker", "make",
];

const maxOffers = 8;

// parseLanguages reads lines of a class, the name and the aliases of a language, with tabs between them.
export function parseLanguages(table: string): Language[] {
  const list: Language[] = [];
  for (const line of table.split("\n")) {
    const [mark, title, ...aliases] = line.split("\t");
    if (!mark || !title || mark.startsWith("#")) continue;
    for (const name of aliases) list.push({ name, title });
  }
  return list;
}

let known: Language[] = []; // cache
let loading: Promise<void> | null = null; // in flight

function load(): Promise<void> {
  loading ??= import("./language_table.ts").then(
    (m) => void (known = parseLanguages(m.table)),
    () => void (loading = null),
  );
  return loading;
}

// languagesFor returns the languages whose names begin with a text: an exact name first, then those that have a
// playground, blocks that are not code, common languages and all others. A playground names the language by its title.
export function languagesFor(query: string, all: readonly Language[], playgrounds: readonly string[], special: readonly Language[]): Language[] {
  const q = query.toLowerCase();
  const own = new Set(playgrounds.map((p) => p.toLowerCase()));
  const unknown = playgrounds
    .filter((p) => !/[^\w+\-./#,]/.test(p) && !all.some((l) => l.title.toLowerCase() === p.toLowerCase()))
    .map((p) => ({ name: p, title: p }));
  const taken = new Set<string>();
  const list = [...special, ...unknown, ...all].filter((l) => {
    if (!l.name.toLowerCase().startsWith(q) || taken.has(l.name)) return false;
    taken.add(l.name);
    return true;
  });
  const rank = (l: Language): number => {
    if (l.name.toLowerCase() === q) return 0;
    if (own.has(l.title.toLowerCase())) return 1;
    if (special.includes(l)) return 2;
    const at = common.indexOf(l.name);
    return at < 0 ? 3 + common.length : 3 + at;
  };
  return list.sort((a, b) => rank(a) - rank(b) || a.name.length - b.name.length || a.name.localeCompare(b.name)).slice(0, maxOffers);
}

// insideCode reports whether lines end in an open block of code, where a fence begins nothing.
function insideCode(lines: string[]): boolean {
  const open: { mark: string; code: boolean }[] = [];
  for (const line of lines) {
    const m = /^(`{3,}|~{3,})([^`~]*)$/.exec(line);
    if (!m) continue;
    const top = open.at(-1);
    if (line.trimEnd() === top?.mark) open.pop();
    else if (!top?.code) open.push({ mark: m[1]!, code: !/^\{?\.?(quoted?|spoiler)\b/i.test(m[2]!.trimStart()) });
  }
  return open.at(-1)?.code ?? false;
}

// fenceQuery returns the beginning of a language after a fence at the end of a text, or null.
export function fenceQuery(before: string): string | null {
  const lines = before.split("\n");
  const found = /^(?:`{3,}|~{3,}) *([\w+\-./#,]{1,40})$/.exec(lines.pop()!);
  return found && !insideCode(lines) ? found[1]! : null;
}

export const languages: Completer = {
  match(before, after) {
    const query = fenceQuery(before);
    if (query === null) return null;
    const special = blocks.map(([name, title]) => ({ name, title: title() }));
    const playgrounds = peek().playgrounds.map((p) => String(p.pygments_language));
    const end = after === "" ? "\n" : ""; // otherwise the next line is there already
    const offers = languagesFor(query, known, playgrounds, special).map(
      (l): Completion => ({ label: l.name, detail: l.title === l.name ? undefined : l.title, insert: l.name + (l.name === "spoiler" ? " " : end) }),
    );
    return { start: before.length - query.length, offers, load: known.length ? undefined : load };
  },
};
