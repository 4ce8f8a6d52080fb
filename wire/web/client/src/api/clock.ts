// The server's clock. That of the computer may be wrong, and may be set while the page is open. Presence, typing notices,
// limits of edits and "today" compare times of the server, so they use this clock.

// Answers of the server set the clock. Between answers it goes on with the browser's monotonic clock, which setting the
// computer's clock does not change. It may stop while the computer sleeps: the next answer corrects that.
let at: { server: number; local: number } | null = null; // cache; milliseconds

const accuracy = 1500; // milliseconds; the header has whole seconds, and an answer takes time

// setClock takes the Date header of an answer.
export function setClock(date: string | null): void {
  const server = Date.parse(date ?? "") + 500;
  if (Number.isNaN(server)) return;
  if (!at || Math.abs(server - serverNow()) > accuracy) at = { server, local: performance.now() };
}

// serverNow returns the time of the server in milliseconds, or that of the computer before the first answer.
export function serverNow(): number {
  return at ? at.server + performance.now() - at.local : Date.now();
}
