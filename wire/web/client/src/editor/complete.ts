// The search for completions of one text.
import type { Completer, Match } from "./extras.ts";

function firstMatch(list: readonly Completer[], before: string, after: string): Match | null {
  for (const c of list) {
    const match = c.match(before, after);
    if (match) return match;
  }
  return null;
}

// complete shows the first match for a text. If its completer lacks data, complete loads them and looks a second time,
// while the text is the same one. It never loads twice for one text: a load that fails, or that brings no offer, would
// otherwise be repeated without end, and a load that is done already would stop the page.
export async function complete(
  list: readonly Completer[],
  before: string,
  after: string,
  show: (match: Match | null) => void,
  unchanged: () => boolean,
): Promise<void> {
  const match = firstMatch(list, before, after);
  show(match);
  if (!match?.load) return;
  try {
    await match.load();
  } catch {
    return; // the first offers stay
  }
  if (unchanged()) show(firstMatch(list, before, after));
}
