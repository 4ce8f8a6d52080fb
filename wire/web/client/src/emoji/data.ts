// The names of all emoji: those of Unicode are fetched from the server once, the organization's own from the store.
import { change, peek, read } from "../store/store.ts";
import type { Emoji } from "../store/state.ts";

// blocks are the parts of Unicode in the order in which the picker shows their emoji: faces and hands, other pictures,
// vehicles, then symbols. The server's list has no order of its own.
const blocks = [
  [0x1f600, 0x1f64f],
  [0x1f910, 0x1f93f],
  [0x1f970, 0x1f97f],
  [0x1fae0, 0x1faff],
  [0x1f300, 0x1f5ff],
  [0x1f680, 0x1f6ff],
  [0x1f900, 0x1fadf],
  [0x2000, 0x3fff],
] as const;

function blockOf(code: string): number {
  const point = parseInt(code, 16);
  const at = blocks.findIndex(([first, last]) => point >= first && point <= last);
  return at < 0 ? blocks.length : at;
}

let loading: Promise<void> | null = null; // in flight

// loadEmoji fetches the names. It may be called often.
export function loadEmoji(): Promise<void> {
  loading ??= fetch(String(peek().realm.server_emoji_data_url))
    .then((r) => r.json())
    .then((data: { code_to_names: Record<string, string[]> }) => {
      const list = Object.entries(data.code_to_names).map(([code, names]): Emoji => ({
        emoji_code: code,
        emoji_name: names[0]!,
        names,
        reaction_type: "unicode_emoji",
      }));
      change((c) => {
        c.state.unicodeEmoji = list.sort((a, b) => blockOf(a.emoji_code) - blockOf(b.emoji_code));
        c.touch("unicodeEmoji");
      });
    })
    .catch(() => {
      loading = null;
    });
  return loading;
}

// allEmoji returns the organization's emoji, then those of Unicode that they do not replace.
export function allEmoji(): Emoji[] {
  const own: Emoji[] = [];
  const taken = new Set<string>();
  for (const e of read("emoji").values()) {
    if (e.deactivated) continue;
    own.push({ emoji_code: e.id, emoji_name: e.name, names: [e.name], reaction_type: "realm_emoji" });
    taken.add(e.name);
  }
  return [...own, ...read("unicodeEmoji").filter((e) => !taken.has(e.emoji_name))];
}

// popular are offered first (their codes).
export const popular = ["1f44d", "1f389", "1f642", "2764", "1f6e0", "1f419", "1f440", "1f64f", "1f602", "1f914", "2705"];

// searchEmoji returns the best matches of a query, the closest first.
export function searchEmoji(query: string, limit: number): Emoji[] {
  const q = query.toLowerCase().replace(/[\s-]+/g, "_");
  const scored: [number, Emoji][] = [];
  for (const e of allEmoji()) {
    let best = 99;
    for (const name of e.names) best = Math.min(best, score(name, q));
    if (best < 99) scored.push([best - (popular.includes(e.emoji_code) ? 0.5 : 0) - (e.reaction_type === "realm_emoji" ? 0.25 : 0), e]);
  }
  return scored
    .sort((a, b) => a[0] - b[0])
    .slice(0, limit)
    .map((x) => x[1]);
}

function score(name: string, q: string): number {
  if (name === q) return 0;
  if (name.startsWith(q)) return 1;
  if (name.includes("_" + q)) return 2;
  return name.includes(q) ? 3 : 99;
}
