// The connection to the server: it registers an event queue and polls it until the page ends. After a failure it keeps
// the same queue; only when the server no longer has the queue, it registers again, without loading the page. The tabs of
// a session share a queue, and one of them polls it: see tabs.ts.
import { deleteQueue, pollEvents, register } from "../api/endpoints.ts";
import { ApiError, NetworkError, pause } from "../api/client.ts";
import type { ServerEvent } from "../api/types.ts";
import { change, peek, receive, replace } from "./store.ts";
import { type Connection, fromRegister, fromShared, sharedOf, type SharedState, withOwn } from "./state.ts";
import { alone, join, leads, settled, tell } from "./tabs.ts";

// lostAfter is the time without an answer after which the user is told, in milliseconds.
const lostAfter = 12_000;
const firstPause = 300;
const maxPause = 10_000;
const pollTimeout = 95_000; // longer than the server's heartbeat and the timeout that it promises
const askAgain = 1000; // milliseconds after which a new tab asks again for the state
const sleepAfter = 15_000; // a poll that a sleeping computer interrupted is asked again

type Hook = () => void | Promise<void>;

const onCaughtUp: Hook[] = []; // registry

// afterCatchUp calls fn when the queue has answered again after a failure: all its earlier events were applied.
export function afterCatchUp(fn: Hook): void {
  onCaughtUp.push(fn);
}

let running: AbortController | null = null; // in flight
let wake: (() => void) | null = null; // in flight
let ready: () => void; // in flight
let wantedAt = 0; // in flight: since when a tab that does not poll waits for the newest events, in milliseconds

// start gets the state and follows the queue until the page ends. It resolves when this tab has the state.
export async function start(): Promise<void> {
  const started = new Promise<void>((resolve) => (ready = resolve));
  const session = document.querySelector<HTMLMetaElement>('meta[name="session"]')?.content ?? "";
  await join(session, { events, connection, state, ask: answerAsk, poll: pollNow, lead, follow });
  if (!session || leads()) lead();
  else tell.ask();
  const asking = setInterval(() => leads() || tell.ask(), askAgain);
  await started;
  clearInterval(asking);
  watchSleep();
  addEventListener("online", pollNow);
  addEventListener("pagehide", (e) => {
    if (!e.persisted && alone() && peek().queue.id) void deleteQueue(peek().queue.id).catch(() => {});
  });
}

let polling = false; // in flight

// lead makes this tab poll, until another tab takes over. If it has no state yet, it registers.
function lead(): void {
  if (polling) return;
  polling = true;
  void (async () => {
    if (peek().queue.id) await settled();
    else await registerQueue();
    ready();
    await loop();
    polling = false;
    if (leads()) lead();
  })();
}

// follow ends the poll of this tab, because another tab has taken over.
function follow(): void {
  running?.abort();
  wake?.();
}

// events applies the events of the tab that polls. If earlier ones are missing, it asks for the whole state.
function events(n: { account: number; queue: string; after: number; events: ServerEvent[] }): void {
  const { queue, me } = peek();
  if (!queue.id || n.account !== me.user_id) return;
  if (n.queue === queue.id && n.after <= queue.last) apply(n.events);
  else if (!leads()) tell.ask();
}

function connection(to: Connection, caughtUp: number): void {
  if (!peek().queue.id) return;
  setConnection(to);
  if (caughtUp > 0 && caughtUp >= wantedAt) void afterAnswer();
}

// state takes over the state of the tab that polls, if this tab has none, or misses events.
function state(account: number, shared: SharedState): void {
  const { queue, me } = peek();
  if (queue.id && (account !== me.user_id || (shared.queue.id === queue.id && shared.queue.last <= queue.last))) return;
  const again = queue.id !== "";
  replace(fromShared(shared, peek()));
  setConnection(shared.connection);
  ready();
  if (again) void afterAnswer();
}

let askedFor = false; // in flight: another tab waits for the first state

// answerAsk sends the state to the tabs that need it.
function answerAsk(): void {
  askedFor = !peek().queue.id;
  if (!askedFor) tell.state(peek().me.user_id, sharedOf(peek()));
}

async function afterAnswer(): Promise<void> {
  for (const fn of onCaughtUp) await fn();
}

// pollNow asks the queue at once: the network is back, the computer woke up, or the answer to a message was lost.
export function pollNow(): void {
  if (!leads()) {
    wantedAt = Date.now();
    tell.poll();
    return;
  }
  wake?.();
  running?.abort();
}

async function registerQueue(): Promise<void> {
  for (let failures = 0; ; failures++) {
    try {
      const answer = await register();
      const again = peek().queue.id !== "";
      replace(withOwn(fromRegister(answer), peek()));
      answered();
      if (askedFor || (again && !alone())) answerAsk();
      return;
    } catch (err) {
      await afterFailure(err, failures);
    }
  }
}

let lostTimer: ReturnType<typeof setTimeout> | undefined; // in flight

// answered notes that the server has answered.
function answered(): void {
  clearTimeout(lostTimer);
  lostTimer = undefined;
  setConnection("live");
}

function setConnection(to: Connection): void {
  if (peek().connection === to) return;
  change((c) => {
    c.state.connection = to;
    c.touch("connection");
  });
  if (leads()) tell.connection(to, 0);
}

// afterFailure notes a failure and waits before the next attempt.
async function afterFailure(err: unknown, failures: number): Promise<void> {
  if (peek().connection === "live") setConnection("trying");
  lostTimer ??= setTimeout(() => setConnection("lost"), lostAfter);
  const told = err instanceof ApiError ? Number(err.data["retry-after"] ?? 0) * 1000 : 0;
  const wait = Math.max(told, Math.min(maxPause, firstPause * 2 ** failures));
  await Promise.race([pause(wait), new Promise<void>((resolve) => (wake = resolve))]);
  wake = null;
}

async function loop(): Promise<void> {
  for (let failures = 0; leads(); ) {
    try {
      const began = Date.now();
      await poll(failures > 0);
      if (!leads()) return;
      if (failures > 0) {
        tell.connection("live", began);
        await afterAnswer();
      }
      failures = 0;
      answered();
    } catch (err) {
      if (!leads()) return;
      if (err instanceof ApiError && lostQueue(err)) {
        const { last } = peek().queue;
        await settled();
        if (peek().queue.last > last) continue; // they came from the tab that polled before
        await registerQueue();
        await afterAnswer();
        failures = 0;
        continue;
      }
      if (!(err instanceof ApiError || err instanceof NetworkError)) throw err;
      await afterFailure(err, failures++);
    }
  }
}

// lostQueue reports whether a poll failed because the server has no queue, or because another tab has had its newest
// events and is gone.
function lostQueue(err: ApiError): boolean {
  return err.code === "BAD_EVENT_QUEUE_ID" || (err.code === "BAD_REQUEST" && /already been pruned/.test(err.message));
}

// poll asks once. After a failure it asks for an answer at once, so that the user soon sees that all is well.
async function poll(now: boolean): Promise<void> {
  const { id, last } = peek().queue;
  running = new AbortController();
  try {
    const timeout = now ? 10_000 : pollTimeout;
    const answer = await pollEvents({ queue: id, last, now, timeout, signal: running.signal });
    if (!leads()) return; // the new leader gets the same events
    if (answer.events.length > 0) tell.events(peek().me.user_id, id, last, answer.events);
    apply(answer.events);
  } finally {
    running = null;
  }
}

function apply(events: ServerEvent[]): void {
  receive(events, (e, err) => console.error("event not applied", e, err));
  if (events.some((e) => e.type === "web_reload_client")) reloadWhenQuiet();
}

// reloadWhenQuiet loads the page of a new version while the page is hidden and no message is being sent.
function reloadWhenQuiet(): void {
  const quiet = (): void => {
    if (document.visibilityState === "hidden" && peek().outgoing.size === 0) location.reload();
  };
  document.addEventListener("visibilitychange", quiet);
  quiet();
}

// watchSleep notices that the computer slept, or that its clock was set.
function watchSleep(): void {
  let last = Date.now();
  setInterval(() => {
    const now = Date.now();
    if (Math.abs(now - last) > sleepAfter) pollNow();
    last = now;
  }, 5000);
}
