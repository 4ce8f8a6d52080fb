// The view of messages: a conversation, a channel, the combined feed, a search.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { getMessage } from "../api/endpoints.ts";
import type { Message, Term } from "../api/types.ts";
import { openCompose } from "../compose/state.ts";
import { plural, t } from "../i18n/text.ts";
import { editing } from "../message/edit.ts";
import { contentClicks } from "../message/clicks.ts";
import { copyMessages } from "../message/copy_messages.ts";
import { readingSuspended, selected, setShownIDs, shownList } from "../message/selection.ts";
import { estimateRow, rowsOf, type Row } from "../message/rows.ts";
import { ConversationRow, DayRow, MessageRow, OutgoingRow, UnreadRow } from "../message/row.tsx";
import { EditorRow } from "../message/editor_row.tsx";
import { replaceWith, routes, type Route } from "../store/router.ts";
import { markRead } from "../store/actions.ts";
import { serverNow } from "../api/clock.ts";
import { more, setShown, show, startHistory, type Anchor } from "../store/history.ts";
import type { MessageList } from "../store/lists.ts";
import {
  conversationOf,
  conversationOfMessage,
  listKey,
  type Matched,
  matcher,
  narrowTo,
  operandOfFirst,
  placeKey,
  withoutPosition,
} from "../store/narrow.ts";
import { mayBeOutgoing, type Outgoing } from "../store/outgoing.ts";
import { userNames } from "../store/queries.ts";
import { peek, read } from "../store/store.ts";
import { Icon } from "../ui/icons.tsx";
import { notify } from "../store/notices.ts";
import { VirtualList, type Placement, type RowSource } from "../ui/virtual_list.tsx";
import { ViewHeader } from "./header.tsx";

startHistory();

const source: RowSource<Row> = {
  key: (r) => r.key,
  estimate: estimateRow,
  draw: (r) => <DrawRow row={r} />,
};

function DrawRow({ row }: { row: Row }) {
  switch (row.kind) {
    case "day":
      return <DayRow at={row.at} />;
    case "unread":
      return <UnreadRow />;
    case "conversation":
      return <ConversationRow place={row.place} first={row.first} />;
    case "outgoing":
      return <OutgoingRow outgoing={row.outgoing} head={row.head} />;
    case "message":
      if (editing.value === row.message.id) return <EditorRow message={row.message} />;
      return <MessageRow message={row.message} head={row.head} unread={!row.message.flags.includes("read")} />;
  }
}

// anchorOf returns the message at which the view of a narrow begins.
function anchorOf(terms: Term[]): Anchor {
  const near = operandOfFirst(terms, "near") ?? operandOfFirst(terms, "with");
  if (typeof near === "number" && near > 0) return near;
  if (terms.some((x) => x.operator === "search" || (x.operator === "is" && x.operand === "starred"))) return "newest";
  return "first_unread";
}

// Place is where the user was in a view. The entry of the browser's history has it: the back button and a new loading of
// the page lead there.
interface Place {
  address: string;
  id: number; // the first message in the window
  delta: number;
  selected: number;
}

const placeAfter = 400; // milliseconds without scrolling; browsers allow 100 changes in 30 seconds

let placeTimer: ReturnType<typeof setTimeout> | undefined; // in flight

// keepPlace notes the place; id 0 is the end of the list.
function keepPlace(address: string, id: number, list: VirtualList<Row>): void {
  clearTimeout(placeTimer);
  placeTimer = setTimeout(() => {
    if (shownList.peek()?.list !== list || routes.peek().overlay) return;
    // At the end, the view begins as usual: there may be new messages.
    const place: Place | null = id ? { address, id, delta: list.deltaOf(String(id)), selected: selected.peek() } : null;
    history.replaceState(place && { place }, "");
  }, placeAfter);
}

function keptPlace(address: string): Place | null {
  const place = (history.state as { place?: Place } | null)?.place;
  return place?.address === address ? place : null;
}

// findMoved opens the conversation of a message whose link names an earlier one: messages can be moved.
async function findMoved(terms: Term[], id: number): Promise<void> {
  const list = peek().lists.get(listKey(terms));
  if (!list || list.error || list.ids.includes(id) || !terms.some((x) => x.operator === "channel" || x.operator === "dm")) return;
  const m = await getMessage(id).catch(() => null);
  if (!m) {
    if (terms.some((x) => x.operator === "near")) notify(t("This message does not exist, or you cannot see it."), "error");
    return;
  }
  const place = conversationOfMessage(m, peek().me.user_id);
  if (matcher(withoutPosition(terms), peek())(m) === false) replaceWith([...narrowTo(place), { operator: "near", operand: id }]);
}

// jumpToUnread shows the first unread message of the view. It returns false if all are read.
export async function jumpToUnread(terms: Term[]): Promise<boolean> {
  const id = await show(withoutPosition(terms), "first_unread");
  if (id === null || !peek().unread.places.has(id)) return false;
  selected.value = id;
  await new Promise(requestAnimationFrame); // the rows of the list are drawn
  shownList.value?.list.scrollTo({ key: String(id), align: "start" });
  return true;
}

export function MessageView({ route }: { route: Route }) {
  const terms = route.terms ?? [];
  const key = listKey(terms);
  const address = JSON.stringify(terms);
  const channel = operandOfFirst(terms, "channel");
  const hidden = typeof channel === "number" && !read("channels").has(channel);
  const [start, setStart] = useState<{ key: string; at: Placement | "end"; firstUnread: number | null } | null>(null);
  useEffect(() => {
    if (hidden) return;
    let current = true;
    setShown(terms);
    const kept = keptPlace(address);
    const anchor = kept ? kept.id : anchorOf(terms);
    const opened = (id: number | null): void => {
      if (!current) return;
      if (kept && peek().lists.get(key)?.ids.includes(kept.id)) {
        selected.value = kept.selected;
        setStart({ key: address, at: { key: String(kept.id), align: "start", delta: kept.delta }, firstUnread: null });
        return;
      }
      const near = typeof anchor === "number";
      const unread = !near && id !== null && peek().unread.places.has(id) ? id : null;
      // The mark of new messages and the day are above the first unread message.
      const at: Placement | "end" = id === null ? "end" : { key: unread === null ? String(id) : "unread", align: near ? "center" : "start" };
      selected.value = id ?? peek().lists.get(key)?.ids.at(-1) ?? 0;
      setStart({ key: address, at, firstUnread: unread });
    };
    show(terms, anchor).then(
      (id) => {
        opened(id);
        if (current && !kept && typeof anchor === "number") void findMoved(terms, anchor);
      },
      () => opened(null),
    );
    return () => {
      current = false;
      setShown(null);
    };
  }, [address, hidden]);
  const list = read("lists").get(key);
  if (hidden) {
    return (
      <>
        <ViewHeader terms={terms} />
        <div class="virtual empty-view">
          <p class="empty-title">{t("There is no such channel, or you cannot see it.")}</p>
          <a class="button quiet" href="#channels/all">
            {t("Browse channels")}
          </a>
        </div>
      </>
    );
  }
  return (
    <>
      <ViewHeader terms={terms} />
      {start?.key === address && list ? (
        <Messages key={address} list={list} terms={terms} start={start.at} firstUnread={start.firstUnread} />
      ) : (
        <div class="virtual loading" aria-busy="true">
          <Skeleton />
        </div>
      )}
    </>
  );
}

function Skeleton() {
  return (
    <div class="skeleton" aria-hidden="true">
      {[70, 45, 85, 60, 35].map((w) => (
        <div key={w}>
          <span class="skeleton-avatar" />
          <span class="skeleton-line" style={{ width: `${w}%` }} />
        </div>
      ))}
    </div>
  );
}

interface MessagesProps {
  list: MessageList;
  terms: Term[];
  start: Placement | "end";
  firstUnread: number | null;
}

function Messages({ list, terms, start, firstUnread }: MessagesProps) {
  const virtual = useRef<VirtualList<Row>>(null);
  const [atEnd, setAtEnd] = useState(true); // the last loaded row is in the window
  const away = !atEnd || !list.foundNewest;
  const place = conversationOf(terms);
  const all = read("messages");
  const me = read("me").user_id;
  const muted = read("mutedUsers");
  const known = list.ids.map((id) => all.get(id)).filter((m): m is Message => !!m && !muted.has(m.sender_id));
  const sending = list.foundNewest ? outgoingHere(terms, read("outgoing"), known) : [];
  const messages = sending.length ? known.filter((m) => !mayBeOutgoing(m, sending, peek())) : known;
  const rows = rowsOf(messages, sending, { me, interleaved: place === null, firstUnread });
  const empty = messages.length === 0 && sending.length === 0;
  const idsRef = useRef(messages);
  idsRef.current = messages;
  // Not after the next frame: until then, the shortcuts would find no messages.
  useLayoutEffect(() => {
    shownList.value = virtual.current && { list: virtual.current, key: list.key };
    setShownIDs(() => idsRef.current.map((m) => m.id));
    return () => (shownList.value = null);
  }, [list.key, empty]);
  useOwnMessages(virtual, sending);
  const near = terms.some((x) => x.operator === "near");
  const reading = useReading(place !== null, near, rows);
  const onView = (first: number, last: number, end: boolean): void => {
    setAtEnd(end);
    reading(first, last);
    const top = rows.slice(first).find((r) => r.kind === "message");
    const id = end && list.foundNewest ? 0 : top?.kind === "message" ? top.message.id : 0;
    if (virtual.current) keepPlace(JSON.stringify(terms), id, virtual.current);
  };
  if (empty) return <Empty list={list} terms={terms} />;
  const newBelow = away ? messages.filter((m) => !m.flags.includes("read")).length : 0;
  const unread = near || readingSuspended.value ? messages.filter((m) => !m.flags.includes("read")) : [];
  return (
    <div class="message-pane" onClick={contentClicks} onKeyDown={contentClicks} onCopy={copyMessages}>
      {unread.length > 0 && (
        <p class="reading-note" role="note">
          {t("This view does not mark messages as read.")}{" "}
          <button type="button" class="link" onClick={() => markAll(unread)}>
            {t("Mark as read")}
          </button>
        </p>
      )}
      <VirtualList<Row>
        handle={virtual}
        rows={rows}
        source={source}
        start={start}
        label={t("Messages")}
        onView={onView}
        onNearStart={() => void more(list.key, "older")}
        onNearEnd={() => void more(list.key, "newer")}
        head={<ListHead list={list} />}
        foot={<Typing place={place} />}
      />
      {away && (
        <button type="button" class="to-end" onClick={() => jumpToEnd(list, virtual.current!, terms)}>
          <Icon name="down" size={16} />
          {newBelow ? plural(newBelow, "{count} new message", "{count} new messages") : t("Newest messages")}
        </button>
      )}
    </div>
  );
}

function markAll(unread: Message[]): void {
  readingSuspended.value = false;
  markRead(unread.map((m) => m.id));
}

function jumpToEnd(list: MessageList, virtual: VirtualList<Row>, terms: Term[]): void {
  if (list.foundNewest) virtual.scrollToEnd();
  else void show(terms, "newest").then(() => virtual.scrollToEnd());
}

// outgoingHere returns the unsent messages that belong to the view.
export function outgoingHere(terms: Term[], all: Map<string, Outgoing>, shown: Message[]): Outgoing[] {
  if (all.size === 0) return [];
  const s = peek();
  const fits = matcher(terms, s);
  const known = new Set(shown.map((m) => m.id));
  return [...all.values()].filter((o) => {
    if (o.id !== undefined && known.has(o.id)) return false;
    return fits(asMessage(o, s.me.user_id)) === true;
  });
}

function asMessage(o: Outgoing, me: number): Matched {
  const base = { id: Number.MAX_SAFE_INTEGER, sender_id: me, flags: ["read"] };
  if ("channel" in o.to) return { ...base, type: "stream", stream_id: o.to.channel, subject: o.to.topic, display_recipient: "" };
  return { ...base, type: "private", subject: "", display_recipient: [...new Set([...o.to.people, me])].map((id) => ({ id })) };
}

// useOwnMessages scrolls to the end when the user sends a message, and selects it once it has arrived.
function useOwnMessages(virtual: { current: VirtualList<Row> | null }, sending: Outgoing[]): void {
  const before = useRef(sending);
  useEffect(() => {
    const old = before.current;
    before.current = sending;
    if (sending.length > old.length) virtual.current?.scrollToEnd();
    // The event usually arrives before the server's answer, so the outgoing message may have had no id.
    const { arrived, messages } = peek();
    for (const o of old) {
      const id = arrived?.localID === o.localID ? arrived.id : o.id;
      if (id !== undefined && messages.has(id) && !sending.some((x) => x.localID === o.localID)) selected.value = id;
    }
  }, [sending.map((o) => `${o.localID} ${o.id ?? ""}`).join()]);
}

// useReading marks messages as read when they have been in the window, as far as the user wants that. A view around one
// message does not mark them, as in Zulip.
function useReading(conversation: boolean, near: boolean, rows: Row[]): (first: number, last: number) => void {
  const seen = useRef({ first: 0, last: -1 });
  const latest = useRef(rows);
  latest.current = rows;
  const mark = (): void => {
    if (!document.hasFocus() || document.visibilityState !== "visible" || readingSuspended.peek()) return;
    if (near) return;
    const policy = peek().settings.web_mark_read_on_scroll_policy ?? 1;
    if (policy === 3 || (policy === 2 && !conversation)) return;
    const ids: number[] = [];
    for (const r of latest.current.slice(seen.current.first, seen.current.last + 1)) {
      if (r.kind === "message" && !r.message.flags.includes("read")) ids.push(r.message.id);
    }
    if (ids.length) markRead(ids);
  };
  useEffect(() => {
    addEventListener("focus", mark);
    return () => removeEventListener("focus", mark);
  }, []);
  return (first, last) => {
    seen.current = { first, last };
    queueMicrotask(mark);
  };
}

function ListHead({ list }: { list: MessageList }) {
  if (list.loading === "older") return <div class="list-head" aria-busy="true">{t("Loading older messages…")}</div>;
  if (list.historyLimited) return <div class="list-head">{t("Older messages are not available.")}</div>;
  if (list.foundOldest) return <div class="list-head quiet">{t("This is the beginning.")}</div>;
  return <div class="list-head" />;
}

function Empty({ list, terms }: { list: MessageList; terms: Term[] }) {
  const place = conversationOf(terms);
  if (list.error) {
    return (
      <div class="virtual empty-view" role="alert">
        <p>{list.error}</p>
        <button type="button" class="button" onClick={() => void show(terms, "first_unread")}>
          {t("Try again")}
        </button>
      </div>
    );
  }
  return (
    <div class="virtual empty-view">
      <p class="empty-title">{t("There are no messages here yet.")}</p>
      {place && (
        <button type="button" class="button" onClick={() => openCompose(place)}>
          {t("Write the first one")}
        </button>
      )}
    </div>
  );
}

// Typing shows the users that are writing in the conversation.
function Typing({ place }: { place: ReturnType<typeof conversationOf> }) {
  const [now, setNow] = useState(serverNow);
  const { me, mutedUsers } = peek();
  const here = place && read("settings").receives_typing_notifications !== false && read("typing").get(placeKey(place, me.user_id));
  const users = [...(here || [])].filter(([id, until]) => until > now && id !== me.user_id && !mutedUsers.has(id)).map(([id]) => id);
  useEffect(() => {
    if (users.length === 0) return;
    const timer = setInterval(() => setNow(serverNow()), 5000);
    return () => clearInterval(timer);
  }, [users.length]);
  return (
    <div class="typing" aria-live="polite">
      {users.length > 0 &&
        (users.length > 3
          ? t("Several people are typing…")
          : plural(users.length, "{names} is typing…", "{names} are typing…", { names: userNames(users) }))}
    </div>
  );
}

