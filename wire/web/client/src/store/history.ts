// Fetches messages into lists: the first screen of a view, older and newer pages, and stale lists again.
import { effect } from "@preact/signals";
import { errorText } from "../api/client.ts";
import { getMessages, matchNarrow, type MessagesQuery } from "../api/endpoints.ts";
import type { Term } from "../api/types.ts";
import { changeList, mergeIDs, openList, storeMessages, type MessageList } from "./lists.ts";
import { listKey, withoutPosition } from "./narrow.ts";
import type { Change } from "./state.ts";
import { recordNewest } from "./reducers_messages.ts";
import { change, peek, read } from "./store.ts";
import type { GetMessagesAnswer } from "../api/schema.ts";

const firstBatch = 60; // messages on each side of the anchor
const nextBatch = 100;

export type Anchor = number | "newest" | "oldest" | "first_unread";

// show opens the list of a narrow at an anchor, and fetches missing messages. It returns the id of the message at which
// the view begins, or null for the newest.
export async function show(terms: Term[], anchor: Anchor): Promise<number | null> {
  const list = change((c) => openList(c, terms));
  const here = placeIn(list, anchor);
  if (here !== undefined && !list.stale) return here;
  const side = anchor === "newest" ? { before: 2 * firstBatch, after: 0 } : { before: firstBatch, after: firstBatch };
  return fetchFirst(list.key, { anchor, ...side, narrow: withoutPosition(list.terms) });
}

// placeIn returns the message at which a list begins for an anchor, or undefined if that must be fetched.
function placeIn(list: MessageList, anchor: Anchor): number | null | undefined {
  if (list.ids.length === 0) return list.foundNewest && list.foundOldest ? null : undefined;
  if (anchor === "newest") return list.foundNewest ? null : undefined;
  if (anchor === "oldest") return list.foundOldest ? list.ids[0]! : undefined;
  if (anchor === "first_unread") {
    const s = peek();
    const first = list.ids.find((id) => s.unread.places.has(id));
    if (!list.foundOldest || !list.foundNewest) {
      // An unread message before the list would be first.
      return first !== undefined && first !== list.ids[0] ? first : undefined;
    }
    return first ?? null;
  }
  const first = list.ids[0]!;
  const last = list.ids[list.ids.length - 1]!;
  const inside = (list.foundOldest || anchor >= first) && (list.foundNewest || anchor <= last);
  return inside ? anchor : undefined;
}

async function fetchFirst(key: string, q: MessagesQuery): Promise<number | null> {
  change((c) => changeList(c, key, { loading: "first", error: "" }));
  try {
    const a = await getMessages(q);
    change((c) => {
      storeMessages(c, a.messages);
      const ids = a.messages.map((m) => m.id);
      const found = { foundOldest: a.found_oldest, foundNewest: a.found_newest, historyLimited: a.history_limited };
      // Messages that arrived meanwhile are at the end.
      const old = c.state.lists.get(key);
      const late = a.found_newest && old?.foundNewest ? old.ids.filter((id) => id > (ids.at(-1) ?? 0)) : [];
      changeList(c, key, { ids: mergeIDs(ids, late), ...found, loading: "", stale: false });
      for (const m of a.messages) if (m.type === "private") recordNewest(c, m);
    });
    return a.found_anchor || typeof q.anchor === "number" || q.anchor === "first_unread" ? placeOfAnchor(a) : null;
  } catch (err) {
    change((c) => changeList(c, key, { loading: "", error: errorText(err) }));
    throw err;
  }
}

// placeOfAnchor: the server answers a very large anchor if all messages are read.
function placeOfAnchor(a: GetMessagesAnswer): number | null {
  const { anchor = Infinity, messages } = a;
  return messages.find((m) => m.id >= anchor)?.id ?? null;
}

// more fetches the page before or after a list.
export async function more(key: string, direction: "older" | "newer"): Promise<void> {
  const list = peek().lists.get(key);
  if (!list || list.loading || list.ids.length === 0) return;
  const older = direction === "older";
  if (older ? list.foundOldest : list.foundNewest) return;
  change((c) => changeList(c, key, { loading: direction }));
  try {
    const anchor = older ? list.ids[0]! : list.ids.at(-1)!;
    const size = older ? { before: nextBatch, after: 0 } : { before: 0, after: nextBatch };
    const a = await getMessages({ anchor, ...size, narrow: withoutPosition(list.terms) });
    change((c) => addPage(c, key, a, older));
  } catch (err) {
    change((c) => changeList(c, key, { loading: "", error: errorText(err) }));
  }
}

function addPage(c: Change, key: string, a: GetMessagesAnswer, older: boolean): void {
  const list = c.state.lists.get(key);
  if (!list) return;
  storeMessages(c, a.messages);
  const ids = mergeIDs(
    a.messages.map((m) => m.id),
    list.ids,
  );
  const found = older ? { foundOldest: a.found_oldest } : { foundNewest: a.found_newest };
  changeList(c, key, { ids, ...found, historyLimited: list.historyLimited || a.history_limited, loading: "" });
}

// refresh fetches a list again around the message that the user sees, and keeps the old one until then.
async function refresh(key: string): Promise<void> {
  const list = peek().lists.get(key);
  if (!list || list.loading) return;
  const anchor = list.foundNewest ? "newest" : (list.ids[Math.floor(list.ids.length / 2)] ?? "newest");
  change((c) => changeList(c, key, { stale: false, loading: "first" }));
  try {
    const a = await getMessages({ anchor, before: 100, after: 100, narrow: withoutPosition(list.terms) });
    change((c) => {
      storeMessages(c, a.messages);
      changeList(c, key, {
        ids: a.messages.map((m) => m.id),
        foundOldest: a.found_oldest,
        foundNewest: a.found_newest,
        historyLimited: a.history_limited,
        loading: "",
        error: "",
      });
    });
  } catch (err) {
    change((c) => changeList(c, key, { loading: "", error: errorText(err) }));
  }
}

// setShown notes the list on the screen: only this one is fetched again at once, the others when they are opened.
export function setShown(terms: Term[] | null): void {
  peek().shown = terms ? listKey(terms) : "";
}

async function settleUnsure(key: string): Promise<void> {
  const list = peek().lists.get(key);
  if (!list || list.unsure.length === 0) return;
  const ids = list.unsure;
  change((c) => changeList(c, key, { unsure: [] }));
  try {
    const a = await matchNarrow(ids, withoutPosition(list.terms));
    const fits = ids.filter((id) => a.messages[id]);
    change((c) => {
      const now = c.state.lists.get(key);
      if (now && fits.length) changeList(c, key, { ids: mergeIDs(now.ids, fits) });
    });
  } catch {
    change((c) => changeList(c, key, { stale: true }));
  }
}

// startHistory follows the shown list.
export function startHistory(): void {
  effect(() => {
    const list = read("lists").get(peek().shown);
    if (list?.stale) queueMicrotask(() => void refresh(list.key));
    if (list?.unsure.length) queueMicrotask(() => void settleUnsure(list.key));
  });
}
