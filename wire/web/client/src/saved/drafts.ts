// A text that the user leaves in the compose box becomes a draft on the server: when the box is closed, and when the
// page is hidden. When the message is sent or emptied, its draft is deleted. The browser keeps the box of each tab, so
// that it is the same after the page is loaded again, and after a new login of the same user.
import { effect } from "@preact/signals";
import { addDraft, changeDraft, deleteDraft, type DraftText } from "../api/saved.ts";
import type { Draft } from "../api/types.ts";
import { compose, composeRequest, text, type Compose } from "../compose/state.ts";
import { go, goTo } from "../store/router.ts";
import { attempt } from "../store/actions.ts";
import { serverNow } from "../api/clock.ts";
import { narrowTo } from "../store/narrow.ts";
import { peek } from "../store/store.ts";

let current = 0; // view state: the draft that the box holds
let saved = ""; // in flight: the last saved draft, as JSON
let saving: Promise<void> = Promise.resolve(); // in flight

function draftOfBox(): DraftText {
  const c = compose.peek();
  const timestamp = Math.floor(serverNow() / 1000);
  const content = text.peek();
  if (c.direct) return { type: "private", to: c.people, topic: "", content, timestamp };
  return { type: c.channel ? "stream" : "", to: c.channel ? [c.channel] : [], topic: c.topic, content, timestamp };
}

function save(): void {
  if (!peek().settings.enable_drafts_synchronization || !text.peek().trim()) return;
  const d = draftOfBox();
  const key = JSON.stringify({ ...d, timestamp: 0 });
  if (key === saved) return;
  saved = key;
  saving = saving.then(async () => {
    if (current && peek().drafts.has(current)) await attempt(changeDraft(current, d));
    else current = (await attempt(addDraft(d)))?.ids[0] ?? 0;
  });
}

function drop(): void {
  saved = "";
  saving = saving.then(async () => {
    const id = current;
    current = 0;
    if (id && peek().drafts.has(id)) await attempt(deleteDraft(id));
  });
}

// restore puts a draft into the compose box, and shows the conversation that it belongs to.
export function restore(d: Draft): void {
  save();
  saving = saving.then(() => {
    current = d.id;
    saved = "";
    fillBox(d.type === "private", d.to, d.topic, d.content);
  });
}

// fillBox opens the compose box with a text for a place.
export function fillBox(direct: boolean, to: number[], topic: string, content: string): void {
  if (to.length === 0) go("#feed");
  else goTo(narrowTo(direct ? { people: to } : { channel: to[0]!, topic }));
  const place = direct ? { people: to } : { channel: to[0] ?? null };
  compose.value = { ...compose.value, open: true, direct, topic, ...place };
  text.value = content;
  composeRequest.value = { focus: "text" };
}

interface Kept {
  user: number;
  draft: number;
  compose: Compose;
  text: string;
}

const storageKey = "compose-box"; // in the storage of the tab, which other tabs do not have

function keepBox(): void {
  const kept: Kept = { user: peek().me.user_id, draft: current, compose: compose.peek(), text: text.peek() };
  // A message that was refused, such as after the end of the session, is not lost either.
  const refused = [...peek().outgoing.values()].find((o) => o.state === "failed");
  if (!kept.text.trim() && refused) {
    const { to } = refused;
    const place = "people" in to ? { direct: true, people: to.people } : { direct: false, channel: to.channel, topic: to.topic };
    Object.assign(kept, { draft: 0, text: refused.content, compose: { ...kept.compose, ...place, open: true } });
  }
  try {
    if (kept.text.trim()) sessionStorage.setItem(storageKey, JSON.stringify(kept));
    else sessionStorage.removeItem(storageKey);
  } catch {
    // without storage, the draft on the server is what is left
  }
}

function restoreBox(): void {
  let kept: Kept | null = null;
  try {
    kept = JSON.parse(sessionStorage.getItem(storageKey) ?? "null") as Kept | null;
    sessionStorage.removeItem(storageKey);
  } catch {
    return;
  }
  if (!kept || kept.user !== peek().me.user_id) return;
  compose.value = kept.compose;
  text.value = kept.text;
  const d = draftOfBox();
  const same = [...peek().drafts.values()].find((x) => x.content === d.content && x.topic === d.topic && String(x.to) === String(d.to));
  current = same?.id ?? (peek().drafts.has(kept.draft) ? kept.draft : 0);
}

export function startDrafts(): void {
  restoreBox();
  addEventListener("pagehide", keepBox);
  let open = compose.peek().open;
  let full = text.peek() !== "";
  effect(() => {
    const now = compose.value.open;
    if (open && !now) save();
    open = now;
  });
  effect(() => {
    const now = text.value !== "";
    if (full && !now) drop();
    full = now;
  });
  document.addEventListener("visibilitychange", () => document.visibilityState === "hidden" && save());
}
