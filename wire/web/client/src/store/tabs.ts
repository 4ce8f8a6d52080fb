// The tabs of one session share one event queue: one of them, the leader, polls it and sends the events to the others.
// Browsers open at most six connections of HTTP/1.1 to a server, so the seventh poll would wait for ever.
//
// A Web Lock elects the leader. The browser gives it to another tab when the leader's tab is closed or crashes. A tab
// that hears nothing of the leader for a while takes the lock away, because the leader's process does not run. Notes
// between tabs are data: a note of another account or of another queue is ignored.
import type { ServerEvent } from "../api/types.ts";
import type { Connection, SharedState } from "./state.ts";

// Note is what one tab tells the others.
type Note =
  | { kind: "events"; account: number; queue: string; after: number; events: ServerEvent[] }
  | { kind: "connection"; to: Connection; caughtUp: number } // the time when the poll began that has caught up, or 0
  | { kind: "state"; account: number; state: SharedState }
  | { kind: "ping" } // is there a leader?
  | { kind: "pong" } // the leader runs
  | { kind: "ask" } // a new tab needs the state
  | { kind: "poll" } // a tab needs the newest events
  | { kind: "count" } // a new leader counts the tabs
  | { kind: "here" | "left"; tab: string };

// Tab is the part of the client that the notes are for. Only the leader gets "ask" and "poll".
interface Tab {
  events(n: Extract<Note, { kind: "events" }>): void;
  connection(to: Connection, caughtUp: number): void;
  state(account: number, state: SharedState): void;
  ask(): void;
  poll(): void;
  lead(): void; // this tab has become the leader
  follow(): void; // another tab has taken over
}

// Times in milliseconds: a leader that does not run is replaced within a second.
const tick = 150;
const silence = 300; // without a note of the leader, it is asked
const patience = 350; // for its answer
const settling = 60; // notes of the last leader may still be on their way

let channel: BroadcastChannel | null = null; // in flight
let leading = false; // in flight
let name = ""; // in flight
let tab: Tab; // registry
let heard = 0; // in flight
let asked = 0; // in flight
let waiting: AbortController | null = null; // in flight
const self = String(Math.random());
const others = new Set<string>(); // in flight
let counted = false; // in flight

// leads reports whether this tab polls.
export function leads(): boolean {
  return leading;
}

// alone reports whether no other tab uses the queue.
export function alone(): boolean {
  return !channel || (leading && counted && others.size === 0);
}

function post(n: Note): void {
  channel?.postMessage(n);
}

// tell sends a note to the other tabs.
export const tell = {
  events: (account: number, queue: string, after: number, events: ServerEvent[]) =>
    post({ kind: "events", account, queue, after, events }),
  connection: (to: Connection, caughtUp: number) => post({ kind: "connection", to, caughtUp }),
  state: (account: number, state: SharedState) => post({ kind: "state", account, state }),
  ask: () => post({ kind: "ask" }),
  poll: () => post({ kind: "poll" }),
};

// join lets this tab take part under the name of its session. It resolves when the tab leads or when a leader runs. A
// browser without Web Locks, as with plain http to another computer, has a leader in each tab.
export async function join(session: string, t: Tab): Promise<void> {
  tab = t;
  if (!session || !("locks" in navigator) || typeof BroadcastChannel === "undefined") {
    leading = true;
    return;
  }
  name = "parley-" + session;
  channel = new BroadcastChannel(name);
  channel.onmessage = (m: MessageEvent<Note>) => receive(m.data);
  addEventListener("pagehide", () => post({ kind: "left", tab: self }));
  heard = performance.now();
  if (!(await request({ ifAvailable: true }))) wait();
  watch();
}

// request asks for the lock. It resolves to false if another tab has it, and the lock is not waited for.
function request(options: LockOptions): Promise<boolean> {
  return new Promise((resolve) => {
    const got = (lock: Lock | null): Promise<void> | undefined => {
      resolve(lock !== null);
      if (!lock) return undefined;
      begin();
      return new Promise<void>(() => {}); // held until the page ends or another tab takes it
    };
    navigator.locks.request(name, options, got).catch(() => {
      resolve(false);
      if (leading) end();
    });
  });
}

function begin(): void {
  leading = true;
  waiting = null;
  counted = false;
  others.clear();
  post({ kind: "count" });
  setTimeout(() => (counted = true), silence);
  tab.lead();
}

function end(): void {
  leading = false;
  heard = performance.now();
  wait();
  tab.follow();
}

// wait waits for the lock, behind the other tabs.
function wait(): void {
  post({ kind: "here", tab: self });
  waiting = new AbortController();
  void request({ signal: waiting.signal });
}

// settled resolves when the notes of the last leader have arrived.
export function settled(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, settling));
}

function receive(n: Note): void {
  switch (n.kind) {
    case "here":
      others.add(n.tab);
      return;
    case "left":
      others.delete(n.tab);
      return;
    case "ping":
      if (leading) post({ kind: "pong" });
      return;
    case "ask":
      if (leading) tab.ask();
      return;
    case "poll":
      if (leading) tab.poll();
      return;
  }
  // A leader that was replaced may have had events that this one lacks: they come in no other way.
  if (n.kind === "events") tab.events(n);
  if (leading) return;
  heard = performance.now();
  asked = 0;
  switch (n.kind) {
    case "connection":
      tab.connection(n.to, n.caughtUp);
      break;
    case "state":
      tab.state(n.account, n.state);
      break;
    case "count":
      post({ kind: "here", tab: self });
      break;
  }
}

// watch replaces a leader that does not answer.
function watch(): void {
  let last = performance.now();
  setInterval(() => {
    const now = performance.now();
    const late = now - last > 3 * tick; // this tab itself did not run
    last = now;
    if (leading || late) {
      asked = 0;
      return;
    }
    if (asked === 0 && now - heard > silence) {
      asked = now;
      post({ kind: "ping" });
    } else if (asked > 0 && now - asked > patience) {
      asked = 0;
      waiting?.abort();
      void request({ steal: true });
    }
  }, tick);
}
