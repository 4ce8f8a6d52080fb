// The places that the user has visited in this page, the newest first. The switcher offers them.
import { effect } from "@preact/signals";
import { routes } from "../store/router.ts";
import { conversationOf, narrowTo, withoutPosition } from "../store/narrow.ts";
import { peopleOf } from "../store/state.ts";
import { peek } from "../store/store.ts";
import type { Term } from "../api/types.ts";

const kept = 12; // places

let visited: Term[][] = []; // view state

// startVisits notes each conversation and channel that is shown.
export function startVisits(): void {
  effect(() => {
    const { terms } = routes.value.view;
    if (!terms) return;
    const place = withoutPosition(terms);
    const channelOnly = place.length === 1 && place[0]!.operator === "channel" && !place[0]!.negated;
    if (!channelOnly && !conversationOf(place)) return;
    const key = JSON.stringify(place);
    visited = [place, ...visited.filter((x) => JSON.stringify(x) !== key)].slice(0, kept);
  });
}

// visitedPlaces returns the visited places without the one on the screen, then the newest direct conversations.
export function visitedPlaces(): Term[][] {
  const here = JSON.stringify(withoutPosition(routes.peek().view.terms ?? []));
  const direct = [...peek().conversations].sort((a, b) => b[1] - a[1]).map(([key]) => narrowTo({ people: peopleOf(key) }));
  const all = new Map([...visited, ...direct.slice(0, kept)].map((x) => [JSON.stringify(x), x]));
  all.delete(here);
  return [...all.values()].slice(0, kept);
}
