// The connection to the server: it registers an event queue and polls it until the page ends. After a failure it keeps
// the same queue; only when the server no longer has the queue, it registers again, without loading the page.
import { deleteQueue, pollEvents, register } from "../api/endpoints.ts";
import { ApiError, NetworkError, pause } from "../api/client.ts";
import { change, peek, receive, replace } from "./store.ts";
import { type Connection, fromRegister, withOwn } from "./state.ts";

// lostAfter is the time without an answer after which the user is told, in milliseconds.
const lostAfter = 12_000;
const firstPause = 300;
const maxPause = 10_000;
const pollTimeout = 95_000; // longer than the server's heartbeat and the timeout that it promises
const sleepAfter = 15_000; // a poll that a sleeping computer interrupted is asked again

type Hook = () => void | Promise<void>;

const onCaughtUp: Hook[] = []; // registry

// afterCatchUp calls fn when the queue has answered again after a failure: all its earlier events were applied.
export function afterCatchUp(fn: Hook): void {
  onCaughtUp.push(fn);
}

let running: AbortController | null = null; // in flight
let wake: (() => void) | null = null; // in flight

// start registers and polls until the page ends. It resolves when the first registration is done.
export async function start(): Promise<void> {
  await registerQueue();
  void loop();
  watchSleep();
  addEventListener("online", pollNow);
  addEventListener("pagehide", (e) => {
    if (!e.persisted && peek().queue.id) void deleteQueue(peek().queue.id).catch(() => {});
  });
}

// pollNow asks the queue at once: the network is back, or the computer woke up.
export function pollNow(): void {
  wake?.();
  running?.abort();
}

async function registerQueue(): Promise<void> {
  for (let failures = 0; ; failures++) {
    try {
      const answer = await register();
      replace(withOwn(fromRegister(answer), peek()));
      answered();
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
  for (let failures = 0; ; ) {
    try {
      await poll(failures > 0);
      if (failures > 0) for (const fn of onCaughtUp) await fn();
      failures = 0;
      answered();
    } catch (err) {
      if (err instanceof ApiError && err.code === "BAD_EVENT_QUEUE_ID") {
        await registerQueue();
        for (const fn of onCaughtUp) await fn();
        failures = 0;
        continue;
      }
      if (!(err instanceof ApiError || err instanceof NetworkError)) throw err;
      await afterFailure(err, failures++);
    }
  }
}

// poll asks once. After a failure it asks for an answer at once, so that the user soon sees that all is well.
async function poll(now: boolean): Promise<void> {
  const { id, last } = peek().queue;
  running = new AbortController();
  try {
    const timeout = now ? 10_000 : pollTimeout;
    const answer = await pollEvents({ queue: id, last, now, timeout, signal: running.signal });
    receive(answer.events, (e, err) => console.error("event not applied", e, err));
    if (answer.events.some((e) => e.type === "web_reload_client")) reloadWhenQuiet();
  } finally {
    running = null;
  }
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
