// The one store. Components call read("users") and are drawn again when that part changes; every other change goes
// through change() or the events of the queue.
import { serverNow } from "../api/clock.ts";
import { batch, signal, type Signal } from "@preact/signals";
import type { ServerEvent } from "../api/types.ts";
import { apply } from "./reducers.ts";
import { emptyState, parts, type Change, type Part, type State } from "./state.ts";

let state: State = emptyState();

const versions = Object.fromEntries(parts.map((p) => [p, signal(0)])) as Record<Part, Signal<number>>;

// read returns a part. A component or effect that calls it runs again when the part changes.
export function read<P extends Part>(part: P): State[P] {
  void versions[part].value;
  return state[part];
}

// peek returns the whole state without following it.
export function peek(): State {
  return state;
}

function announce(changed: Iterable<Part>): void {
  batch(() => {
    for (const p of changed) versions[p].value++;
  });
}

// replace puts a new state, after a registration.
export function replace(now: State): void {
  state = now;
  announce(parts);
}

// change runs a function that changes the state and names the parts that it touched.
export function change<T>(fn: (c: Change) => T): T {
  const changed = new Set<Part>();
  const out = fn({ state, now: serverNow(), touch: (p) => changed.add(p) });
  announce(changed);
  return out;
}

type Listener = (e: ServerEvent) => void;

const listeners: Listener[] = []; // registry

// afterEvent calls fn once for each event of the queue. The state is that after this event, before later ones of the
// same answer. Components are drawn again after all of them.
export function afterEvent(fn: Listener): void {
  listeners.push(fn);
}

// receive applies events of the queue.
export function receive(events: readonly ServerEvent[], onError: (e: ServerEvent, err: unknown) => void): void {
  const fresh = events.filter((e) => e.id > state.queue.last);
  const changed = new Set<Part>();
  for (const e of fresh) {
    for (const part of apply(state, [e], serverNow(), onError)) changed.add(part);
    try {
      for (const fn of listeners) fn(e);
    } catch (err) {
      onError(e, err);
    }
  }
  announce(changed);
}
