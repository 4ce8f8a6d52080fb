// The only way to the server: request sends one call to /json with the session's cookie and the page's token.
//
// A call that was refused because of the rate limit is sent again after the time in the answer: the server did not
// carry it out. After a network failure or a 5xx answer only calls marked as repeatable are sent again, since the
// server may have carried out the first one.
import { withoutNames } from "./address.ts";
import { setClock } from "./clock.ts";
import type { Success } from "./schema.ts";

type Params = Record<string, unknown>;

interface Call {
  method?: "GET" | "POST" | "PATCH" | "PUT" | "DELETE";
  params?: Params;
  form?: FormData; // sent instead of params, for files
  repeatable?: boolean; // default: for GET
  signal?: AbortSignal;
  timeout?: number; // milliseconds
  keepalive?: boolean; // the call outlives the page
}

// ApiError is an error that the server answered.
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly data: Record<string, unknown>,
  ) {
    super(message);
    this.name = "ApiError";
  }
}

// NetworkError is the error of a call without an answer.
export class NetworkError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "NetworkError";
  }
}

const defaultTimeout = 30_000;
const maxKeepalive = 60_000; // bytes: browsers refuse calls that outlive the page with more than 64 KiB
const maxAttempts = 5;
const maxPause = 10_000;

// csrfToken returns the token of the page, which every call that changes something must carry.
export function csrfToken(): string {
  return document.querySelector<HTMLMetaElement>('meta[name="csrf-token"]')?.content ?? "";
}

// encode writes strings as they are and every other value as JSON, as the protocol wants. Undefined values are left out.
export function encode(params: Params): URLSearchParams {
  const out = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value === undefined) continue;
    out.set(name, typeof value === "string" ? value : JSON.stringify(value));
  }
  return out;
}

// jsonString returns a text as JSON, for parameters that are otherwise numbers, such as a retention of "unlimited".
export function jsonString(text: string): string {
  return JSON.stringify(text);
}

// pause waits, a little longer or shorter than asked so that many clients do not call the server at the same time.
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(done, ms * (0.8 + 0.4 * Math.random()));
    function done(): void {
      signal?.removeEventListener("abort", stop);
      resolve();
    }
    function stop(): void {
      clearTimeout(timer);
      reject(new NetworkError("stopped"));
    }
    signal?.addEventListener("abort", stop, { once: true });
  });
}

// askUser asks the user to prove that they use the session, before a dangerous act, and returns whether they have.
let askUser: () => Promise<boolean> = () => Promise.resolve(false); // registry

export function onConfirmation(ask: () => Promise<boolean>): void {
  askUser = ask;
}

// isConfirmed returns whether a call that was refused may be sent again, because the user has entered the password.
async function isConfirmed(err: unknown): Promise<boolean> {
  return err instanceof ApiError && err.code === "CONFIRMATION_REQUIRED" && err.data.by_password === true && (await askUser());
}

// request returns the answer, of the type that the server's description of the call has (schema.ts).
export async function request<T extends Success = Success>(path: string, call: Call = {}): Promise<T> {
  const method = call.method ?? "GET";
  const repeatable = call.repeatable ?? method === "GET";
  for (let attempt = 0, asked = false; ; attempt++) {
    try {
      return (await send(method, path, call)) as T;
    } catch (err) {
      if (!asked && (await isConfirmed(err))) {
        asked = true;
        continue;
      }
      const wait = retryAfter(err, attempt, repeatable);
      if (wait === null || attempt + 1 >= maxAttempts || call.signal?.aborted) throw err;
      await pause(wait, call.signal);
    }
  }
}

// retryAfter returns the milliseconds until a failed call may be sent again, or null if it must not.
function retryAfter(err: unknown, attempt: number, repeatable: boolean): number | null {
  const growing = Math.min(maxPause, 300 * 2 ** attempt);
  if (err instanceof ApiError) {
    if (err.status === 429) return Math.max(growing, Number(err.data["retry-after"] ?? 1) * 1000);
    return err.status >= 500 && repeatable ? growing : null;
  }
  return err instanceof NetworkError && repeatable ? growing : null;
}

async function send(method: string, path: string, call: Call): Promise<unknown> {
  const headers: Record<string, string> = {};
  let url = "/json" + path;
  let body: BodyInit | undefined;
  if (method === "GET") {
    const query = encode(call.params ?? {}).toString();
    if (query) url += "?" + query;
  } else {
    headers["X-CSRFToken"] = csrfToken();
    body = call.form ?? encode(call.params ?? {});
  }
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), call.timeout ?? defaultTimeout);
  const abort = (): void => stop.abort();
  call.signal?.addEventListener("abort", abort, { once: true });
  if (call.signal?.aborted) stop.abort();
  try {
    let answer: Response;
    let data: Record<string, unknown>;
    try {
      const keepalive = Boolean(call.keepalive) && String(body ?? "").length < maxKeepalive;
      answer = await fetch(url, { method, headers, body, signal: stop.signal, credentials: "same-origin", keepalive });
      setClock(answer.headers.get("Date"));
      data = (await answer.json()) as Record<string, unknown>;
    } catch (err) {
      throw new NetworkError(err instanceof Error ? err.message : String(err));
    }
    if (answer.ok) return data;
    const failure = new ApiError(answer.status, String(data.code ?? "BAD_REQUEST"), String(data.msg ?? ""), data);
    leaveIfLoggedOut(failure);
    throw failure;
  } finally {
    clearTimeout(timer);
    call.signal?.removeEventListener("abort", abort);
  }
}

// leavingUntil is the time until which the navigation in flight is expected to end. A page whose session ends has several
// calls under way: a second navigation would cancel the first one.
let leavingUntil = 0;
const leavingTime = 5_000; // ms; later the navigation has failed, or the user has chosen to stay

// leaveIfLoggedOut opens the login page when the session has ended, and loads the page again when its token is old.
function leaveIfLoggedOut(err: ApiError): void {
  const ended = err.status === 401;
  if ((!ended && err.code !== "CSRF_FAILED") || performance.now() < leavingUntil) return;
  leavingUntil = performance.now() + leavingTime;
  if (ended) {
    // The login page keeps the fragment without names of people, and opens the view again.
    const back = location.pathname + location.search;
    location.assign("/login/" + (back === "/" ? "" : "?next=" + encodeURIComponent(back)) + withoutNames(location.hash));
  } else {
    location.reload();
  }
}

// errorText returns the sentence that a user sees for an error.
export function errorText(err: unknown): string {
  return err instanceof Error ? err.message : String(err);
}
