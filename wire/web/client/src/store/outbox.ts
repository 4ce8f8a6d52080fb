// Sending: a message is shown at once and sent. If no answer arrives, the client first waits until the queue has
// caught up: if the server had received the message, its event has arrived by then. Otherwise the client sends it
// again. So no message is sent twice. Messages are sent one after another: the server stores them in the order in which
// the user wrote them.
import { ApiError, errorText } from "../api/client.ts";
import { sendMessage, type Destination } from "../api/endpoints.ts";
import { serverNow } from "../api/clock.ts";
import { afterCatchUp, pollNow } from "./connection.ts";
import type { Outgoing } from "./outgoing.ts";
import { change, peek } from "./store.ts";

let lastLocalID = 0; // in flight
const page = String(Math.random()).slice(2, 8).padEnd(6, "7"); // the tabs of a session share the queue

// newLocalID is unique for the queue, also when the page was loaded again.
function newLocalID(): string {
  lastLocalID = Math.max(lastLocalID + 1, Date.now());
  return `${lastLocalID}.${page}`;
}

export function send(to: Destination, content: string): string {
  const localID = newLocalID();
  const timestamp = Math.floor(serverNow() / 1000);
  put({ localID, queue: peek().queue.id, to, content, timestamp, state: "sending" });
  void postAll();
  return localID;
}

function put(o: Outgoing): void {
  change((c) => {
    c.state.outgoing.set(o.localID, o);
    c.touch("outgoing");
  });
}

function update(localID: string, changed: Partial<Outgoing>): void {
  const o = peek().outgoing.get(localID);
  if (o) put({ ...o, ...changed });
}

export function discard(localID: string): void {
  change((c) => {
    c.state.outgoing.delete(localID);
    c.touch("outgoing");
  });
  void postAll();
}

// resend tries a message again that the server refused, or that the user does not want to wait for.
export function resend(localID: string): void {
  update(localID, { state: "sending", error: undefined, failures: 0, queue: peek().queue.id });
  void postAll();
}

const noSpace = 507; // the server's disk is full: it has not stored the message
const firstPause = 300; // milliseconds
const maxPause = 10_000;

let posting = false; // in flight

// postAll sends the waiting messages in their order. It ends at a message that the server may or may not have: later
// ones wait until the queue has caught up.
async function postAll(): Promise<void> {
  if (posting) return;
  posting = true;
  for (let o = nextWaiting(); o; o = nextWaiting()) await post(o);
  posting = false;
}

function nextWaiting(): Outgoing | undefined {
  for (const o of peek().outgoing.values()) {
    if (o.state === "unknown") return undefined;
    if (o.state === "sending") return o;
  }
  return undefined;
}

async function post(o: Outgoing): Promise<void> {
  const { localID } = o;
  try {
    const answer = await sendMessage({ to: o.to, content: o.content, queue: o.queue, localID });
    // The event usually arrives first. If it has been applied, nothing is left to do.
    if (peek().messages.has(answer.id)) discard(localID);
    else update(localID, { state: "sent", id: answer.id });
  } catch (err) {
    if (err instanceof ApiError && (err.status < 500 || err.status === noSpace)) {
      update(localID, { state: "failed", error: errorText(err) });
      return;
    }
    const failures = o.failures ?? 0;
    update(localID, { state: "unknown", failures: failures + 1, error: err instanceof ApiError ? errorText(err) : undefined });
    // The next answer of the queue shows whether the server has the message. A server that answers the queue but refuses
    // the message is asked more and more rarely.
    if (failures === 0) pollNow();
    else setTimeout(pollNow, pauseAfter(err, failures));
  }
}

function pauseAfter(err: unknown, failures: number): number {
  const told = err instanceof ApiError ? Number(err.data["retry-after"] ?? 0) * 1000 : 0;
  return Math.max(told, Math.min(maxPause, firstPause * 2 ** failures));
}

// The queue has caught up: messages that are still waiting were not received by the server.
export function startOutbox(): void {
  addEventListener("beforeunload", (e) => {
    // The browser asks the user: these messages exist only in this page.
    if ([...peek().outgoing.values()].some((o) => o.state === "sending" || o.state === "unknown")) e.preventDefault();
  });
  afterCatchUp(() => {
    for (const o of peek().outgoing.values()) {
      if (o.state === "sent" && o.queue !== peek().queue.id) discard(o.localID);
      if (o.state === "unknown") update(o.localID, { state: "sending", queue: peek().queue.id });
    }
    void postAll();
  });
}
