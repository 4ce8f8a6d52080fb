// Presence: sends whether the user is active, and stores the presence of others from the answer.
import { sendPresence } from "../api/endpoints.ts";
import { serverNow } from "../api/clock.ts";
import { isShort } from "./people.ts";
import { change, peek } from "./store.ts";

const idleAfter = 5 * 60_000; // milliseconds without input

let lastInput = 0; // view state
let inputSince = true; // in flight

export function startPresence(): void {
  lastInput = serverNow();
  const input = (): void => {
    const wasIdle = serverNow() - lastInput > idleAfter;
    lastInput = serverNow();
    inputSince = true;
    if (wasIdle) void ping();
  };
  for (const type of ["mousemove", "keydown", "touchstart", "focus"]) addEventListener(type, input, { passive: true });
  const seconds = Number(peek().realm.server_presence_ping_interval_seconds ?? 60);
  setInterval(() => void ping(), seconds * 1000);
  void ping();
}

const maxPolled = 500; // users, as the server allows

// polled returns the users whose presence a page of a large organization asks for: those that became known last.
function polled(): number[] | undefined {
  if (!isShort()) return undefined;
  return [...peek().users.values()].filter((u) => u.is_active && !u.is_bot).slice(-maxPolled).map((u) => u.user_id);
}

async function ping(): Promise<void> {
  const idle = serverNow() - lastInput > idleAfter;
  const input = inputSince;
  inputSince = false;
  try {
    const a = await sendPresence(idle ? "idle" : "active", peek().presenceID, input, polled());
    change((c) => {
      for (const [id, p] of Object.entries(a.presences ?? {})) if ("active_timestamp" in p) c.state.presences.set(Number(id), p);
      if (a.presence_last_update_id !== undefined) c.state.presenceID = a.presence_last_update_id;
      c.touch("presences");
    });
  } catch {
    inputSince = input; // the next request sends it
  }
}
