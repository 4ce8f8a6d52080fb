// Uploads of files in pieces with tus 1.0: after a failure the upload continues after the last byte that the server
// has received.
import { parseAddress } from "./address.ts";
import { ApiError, csrfToken, NetworkError, pause } from "./client.ts";

const pieceBytes = 8 << 20;
const maxFailures = 6; // in a row

export interface Uploading {
  file: File;
  progress(bytes: number): void;
  signal: AbortSignal;
}

export interface Uploaded {
  url: string;
  filename: string;
}

function base64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

export async function upload(u: Uploading): Promise<Uploaded> {
  const type = u.file.type || "application/octet-stream";
  const headers = { "Upload-Length": String(u.file.size), "Upload-Metadata": `filename ${base64(u.file.name)},filetype ${base64(type)}` };
  const created = await send("POST", "/api/v1/tus", headers, null, u.signal);
  let answer = created;
  const place = parseAddress(created.getResponseHeader("Location") ?? "", location.href)?.pathname;
  if (!place) throw new ApiError(created.status, "", "The server named no place for the file.", {});
  let offset = 0;
  for (let failures = 0; !answer.responseText.includes('"url"'); ) {
    try {
      const piece = u.file.slice(offset, offset + pieceBytes);
      const more = { "Upload-Offset": String(offset), "Content-Type": "application/offset+octet-stream" };
      answer = await send("PATCH", place, more, piece, u.signal, (n) => u.progress(offset + n));
      offset = Number(answer.getResponseHeader("Upload-Offset") ?? offset + piece.size);
      failures = 0;
    } catch (err) {
      const final = err instanceof ApiError && err.status < 500 && ![409, 423, 429].includes(err.status);
      if (final || u.signal.aborted || ++failures >= maxFailures) throw err;
      await pause(400 * 2 ** failures, u.signal);
      offset = await receivedBytes(place, u.signal).catch(() => offset);
    }
  }
  return JSON.parse(answer.responseText) as Uploaded;
}

// receivedBytes asks how much of a file the server has.
async function receivedBytes(place: string, signal: AbortSignal): Promise<number> {
  return Number((await send("HEAD", place, {}, null, signal)).getResponseHeader("Upload-Offset") ?? 0);
}

// send uses XMLHttpRequest, because fetch does not report how much of a body was sent.
function send(
  method: string,
  url: string,
  headers: Record<string, string>,
  body: Blob | null,
  signal: AbortSignal,
  progress?: (bytes: number) => void,
): Promise<XMLHttpRequest> {
  return new Promise((resolve, reject) => {
    const x = new XMLHttpRequest();
    x.open(method, url);
    x.setRequestHeader("Tus-Resumable", "1.0.0");
    x.setRequestHeader("X-CSRFToken", csrfToken());
    for (const [name, value] of Object.entries(headers)) x.setRequestHeader(name, value);
    x.upload.onprogress = (e) => progress?.(e.loaded);
    const stop = (): void => x.abort();
    signal.addEventListener("abort", stop, { once: true });
    x.onloadend = () => {
      signal.removeEventListener("abort", stop);
      if (x.status >= 200 && x.status < 300) resolve(x);
      else if (x.status === 0) reject(new NetworkError(signal.aborted ? "stopped" : "no connection"));
      else reject(failure(x));
    };
    x.send(body);
  });
}

function failure(x: XMLHttpRequest): ApiError {
  let data: Record<string, unknown> = {};
  try {
    data = JSON.parse(x.responseText) as Record<string, unknown>;
  } catch {
    // An answer of a proxy.
  }
  return new ApiError(x.status, String(data.code ?? ""), String(data.msg ?? data.message ?? x.statusText), data);
}
