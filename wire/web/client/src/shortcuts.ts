// The shortcuts of the client, as in Zulip.
import { effect } from "@preact/signals";
import { setTopicPolicy } from "./api/endpoints.ts";
import { type EmojiChoice, type Message, type Term, TopicPolicy } from "./api/types.ts";
import { closeCompose, compose, insertText, openCompose, newDirect } from "./compose/state.ts";
import { forward, mentionText, quote } from "./compose/quote.ts";
import { t } from "./i18n/text.ts";
import { openCondensed } from "./message/shortened.tsx";
import { startEdit } from "./message/edit.ts";
import { openEmojiPicker } from "./emoji/open_picker.ts";
import { MessageMenu } from "./message/menu.tsx";
import { closeOverlay, go, goTo, homeHash, linkOf, routes } from "./store/router.ts";
import { markUnreadFrom, selected, shownList } from "./message/selection.ts";
import { openUserCard } from "./people/card.tsx";
import { channelsInOrder } from "./sidebar/left.tsx";
import { openMainMenu } from "./sidebar/main_menu.tsx";
import { attempt, markRead, toggleCollapsed, toggleReaction, toggleStar } from "./store/actions.ts";
import { show } from "./store/history.ts";
import { canEdit, canMove } from "./store/permissions.ts";
import { conversationOf, conversationOfMessage, hashOfTopics, isTopicMuted, listKey, type Matched, matcher, narrowTo, operandOfFirst, termsOf, topicPolicy, withoutPosition } from "./store/narrow.ts";
import { peopleKey, peopleOf, type State } from "./store/state.ts";
import type { Place } from "./store/unread.ts";
import { peek, read } from "./store/store.ts";
import { outgoingHere } from "./views/message_view.tsx";
import { openPopover } from "./ui/dialogs.tsx";
import { notify } from "./store/notices.ts";
import { openShortcuts } from "./help/shortcuts.tsx";
import { copyText } from "./ui/clipboard.ts";
import { addShortcuts, type Shortcut } from "./ui/keys.ts";
import { closeColumns, closePeople, covered, focusWhenDrawn, leftOpen, peopleFloat, rightOpen } from "./ui/layout.ts";
import { h } from "preact";
import { openPart } from "./ui/parts.ts";

function current(): Message | undefined {
  return shownList.value ? peek().messages.get(selected.value) : undefined;
}

// onMessage makes a shortcut of the selected message.
function onMessage(fn: (m: Message) => unknown): () => boolean | void {
  return () => {
    const m = current();
    if (!m) return false;
    fn(m);
  };
}

function elementOf(m: Message): Element | DOMRect {
  return document.querySelector(`[data-message="${m.id}"]`) ?? new DOMRect(innerWidth / 2, innerHeight / 2);
}

// move selects the next or previous message, or moves the focus in lists of links.
function move(by: 1 | -1): () => boolean | void {
  return () => {
    const shown = shownList.value;
    if (!shown) return moveFocus(by);
    const ids = peek().lists.get(shown.key)?.ids ?? [];
    const at = ids.indexOf(selected.value);
    const next = at < 0 ? ids.length - 1 : Math.max(0, Math.min(ids.length - 1, at + by));
    select(ids[next]);
    if (by === 1 && next === ids.length - 1) shown.list.scrollToEnd();
  };
}

function select(id: number | undefined): void {
  const shown = shownList.value;
  if (!shown || id === undefined) return;
  selected.value = id;
  shown.list.scrollTo({ key: String(id), align: "nearest" });
}

function moveFocus(by: 1 | -1): boolean | void {
  const items = [...document.querySelectorAll<HTMLElement>("[data-list-item]")];
  if (items.length === 0) return false;
  // The focus may also be on a button of the row.
  const at = items.findIndex((x) => x.parentElement!.contains(document.activeElement));
  items[Math.max(0, Math.min(items.length - 1, at + by))]?.focus();
}

function toEdge(first: boolean): () => boolean | void {
  return () => {
    const shown = shownList.value;
    const ids = shown && peek().lists.get(shown.key)?.ids;
    if (!shown || !ids?.length) return false;
    const terms = peek().lists.get(shown.key)!.terms;
    void show(terms, first ? "oldest" : "newest").then(() => {
      const all = peek().lists.get(shown.key)?.ids ?? [];
      if (first) return select(all[0]);
      markRead(unreadIn(terms));
      selected.value = all.at(-1)!;
      shown.list.scrollToEnd();
    }, () => {});
  };
}

// unreadIn returns the unread messages of a narrow, also those that were not fetched; of narrows that only the server can
// answer, those on the screen.
function unreadIn(terms: Term[]): number[] {
  const s = peek();
  const fits = matcher(terms, s);
  const shown = new Set(s.lists.get(listKey(terms))?.ids);
  return [...s.unread.places].flatMap(([id, place]) => {
    const m = s.messages.get(id);
    const found = m ? fits(m) : fits(unfetched(id, place, s));
    return found || (found === null && shown.has(id)) ? [id] : [];
  });
}

// unfetched is what is known of an unread message that was not fetched.
function unfetched(id: number, place: Place, s: State): Matched {
  const base = { id, sender_id: 0, flags: s.unread.mentions.has(id) ? ["mentioned"] : [] };
  if ("channel" in place) return { ...base, type: "stream", stream_id: place.channel, subject: place.topic, display_recipient: "" };
  const people = [...new Set([...peopleOf(place.people), s.me.user_id])];
  return { ...base, type: "private", subject: "", display_recipient: people.map((user) => ({ id: user })) };
}

// holdsWhole reports whether a view has all messages of each conversation in it: no search, no starred messages.
function holdsWhole(terms: Term[]): boolean {
  return withoutPosition(terms).every((x) => !x.negated && (["channel", "channels", "topic", "dm", "in"].includes(x.operator) || x.operand === "dm" || x.operand === "followed"));
}

function reply(): boolean | void {
  const m = current();
  if (m) return openCompose(conversationOfMessage(m, peek().me.user_id));
  const terms = routes.value.view.terms;
  const place = terms && conversationOf(terms);
  if (!place) return false;
  openCompose(place);
}

function newMessage(): void {
  const terms = routes.value.view.terms;
  const channel = terms && operandOfFirst(terms, "channel");
  const m = current();
  if (typeof channel === "number") openCompose({ channel });
  else if (m?.stream_id) openCompose({ channel: m.stream_id });
  else openCompose({ channel: peek().subscriptions.keys().next().value ?? 0 });
}

// nextUnread opens the next conversation with unread messages.
function nextUnread(direct: boolean, followed = false): boolean | void {
  const s = peek();
  if (direct) {
    const terms = routes.value.view.terms;
    const here = terms && conversationOf(terms);
    const now = here && "people" in here ? peopleKey(here.people, s.me.user_id) : "";
    const key = [...s.unread.direct.keys()].find((k) => k !== now);
    if (key === undefined) return notify(t("No other direct conversation has unread messages."));
    return goTo(narrowTo({ people: peopleOf(key) }));
  }
  const here = routes.value.view.terms && conversationOf(routes.value.view.terms);
  const order = channelsInOrder();
  const at = here && "channel" in here ? Math.max(0, order.indexOf(here.channel)) : 0;
  for (const channel of [...order.slice(at), ...order.slice(0, at)]) {
    for (const [topic, ids] of s.unread.topics.get(channel) ?? []) {
      const place = s.unread.places.get(ids.values().next().value!)!;
      if (!("channel" in place) || isTopicMuted(s, channel, topic)) continue;
      if (followed && topicPolicy(s, channel, topic) !== TopicPolicy.followed) continue;
      if (here && "channel" in here && here.channel === channel && here.topic.toLowerCase() === topic) continue;
      return goTo(narrowTo(place));
    }
  }
  notify(followed ? t("No followed topic has unread messages.") : t("No other topic has unread messages."));
}

function toTopic(m: Message): void {
  const place = conversationOfMessage(m, peek().me.user_id);
  goTo([...narrowTo(place), { operator: "near", operand: m.id }]);
}

// toOther opens the channel of a conversation, or the conversation of the selected message.
function toOther(): boolean | void {
  const m = current();
  const terms = routes.value.view.terms;
  const place = terms && conversationOf(terms);
  if (place && "channel" in place) return goTo([{ operator: "channel", operand: place.channel }]);
  if (!m || place) return false;
  goTo(narrowTo(conversationOfMessage(m, peek().me.user_id)));
}

// focusedTopic returns the topic of the line of a list that has the focus, such as one of the inbox.
function focusedTopic(): { channel: number; topic: string } | null {
  const item = [...document.querySelectorAll("[data-list-item]")].find((x) => x.parentElement!.contains(document.activeElement));
  const href = item?.getAttribute("href");
  const terms = href ? termsOf(href, peek()) : null;
  const place = terms && conversationOf(terms);
  return place && "channel" in place ? place : null;
}

// toTopics opens the list of all topics of the channel of the view, or of the selected message.
function toTopics(): boolean | void {
  const terms = routes.value.view.terms;
  const channel = (terms && operandOfFirst(terms, "channel")) ?? current()?.stream_id ?? focusedTopic()?.channel;
  if (typeof channel !== "number") return false;
  go(hashOfTopics(channel, peek()));
}

// nextChannel opens the channel after or before the one of the view, in the order of the column at the side.
function nextChannel(by: 1 | -1): () => boolean | void {
  return () => {
    const ids = channelsInOrder();
    if (ids.length === 0) return false;
    const terms = routes.value.view.terms;
    const now = ids.indexOf(Number((terms && operandOfFirst(terms, "channel")) ?? 0));
    const next = now < 0 ? 0 : (now + by + ids.length) % ids.length;
    goTo([{ operator: "channel", operand: ids[next]! }]);
  };
}

// replyToSender opens a direct message to the sender of the selected message.
function replyToSender(m: Message): void {
  openCompose({ people: [m.sender_id] });
}

function replyWithMention(m: Message): void {
  openCompose(conversationOfMessage(m, peek().me.user_id));
  insertText(mentionText(m.sender_id) + " ");
}

// editLast edits the newest message of the view that the user can edit. A message that is being sent is edited as soon as
// the server has it, unless the user does something else first: to edit the one before would be a surprise.
function editLast(): boolean | void {
  const shown = shownList.value;
  const s = peek();
  const list = shown && s.lists.get(shown.key);
  const sending = list ? outgoingHere(list.terms, s.outgoing, []).findLast((o) => o.state !== "failed" && !s.messages.has(o.id ?? 0)) : undefined;
  if (sending) return editWhenSent(sending.localID);
  const ids = list?.ids ?? [];
  const last = ids.toReversed().map((id) => s.messages.get(id)).find((m) => m && canEdit(m));
  if (!last) return false;
  select(last.id);
  startEdit(last);
}

let stopWaiting = (): void => {}; // in flight

function editWhenSent(localID: string): void {
  stopWaiting();
  const until = new AbortController();
  stopWaiting = () => until.abort();
  const start = performance.now();
  for (const type of ["keydown", "pointerdown", "hashchange"]) {
    addEventListener(type, (e) => e.timeStamp > start && stopWaiting(), { capture: true, signal: until.signal });
  }
  const dispose = effect(() => {
    const state = read("outgoing").get(localID)?.state;
    if (state && state !== "failed") return;
    queueMicrotask(() => {
      if (until.signal.aborted) return;
      stopWaiting();
      if (!state) editLast();
    });
  });
  until.signal.addEventListener("abort", dispose);
}

function openImages(m: Message): boolean | void {
  const image = document.querySelector<HTMLAnchorElement>(`[data-message="${m.id}"] .message_inline_image a`);
  if (!image) return false;
  openPart(import("./message/lightbox.tsx"), (x) => x.openLightbox(image));
}

function toggleMute(): boolean | void {
  const m = current();
  const place = m?.stream_id ? { channel: m.stream_id, topic: m.subject } : focusedTopic();
  if (!place) return false;
  const muted = topicPolicy(peek(), place.channel, place.topic) === TopicPolicy.muted;
  void attempt(setTopicPolicy(place.channel, place.topic, muted ? TopicPolicy.inherit : TopicPolicy.muted));
}

// escape closes what is in front: a window, a column of a narrow page, the compose box. Then it goes home.
function escape(home: boolean): boolean | void {
  if (routes.value.overlay) return closeOverlay();
  if (rightOpen.value && (covered.value || peopleFloat.value)) return closePeople();
  if (closeColumns()) return;
  if (compose.value.open) return closeCompose();
  if (!home) return false;
  go(homeHash());
}

// toggleDrafts is the only shortcut of a window for its own key: in other windows the key does nothing.
function toggleDrafts(): boolean | void {
  const { overlay } = routes.value;
  if (!overlay) return go("#drafts");
  if (overlay.name !== "drafts") return false;
  closeOverlay();
}

function toRecent(): boolean | void {
  if (routes.value.view.name === "recent") return focus("[data-recent-filter]")();
  go("#recent");
}

function toInbox(): boolean | void {
  if (routes.value.view.name === "inbox") return focus("[data-inbox-filter]")();
  go("#inbox");
}

function mainMenu(): boolean | void {
  const button = document.querySelector("[data-main-menu]");
  if (!button) return false;
  openMainMenu(button);
}

function focus(selector: string): () => boolean | void {
  return () => {
    const el = document.querySelector<HTMLElement>(selector);
    if (!el) return false;
    el.focus();
  };
}

const thumbsUp: EmojiChoice = { emoji_name: "+1", emoji_code: "1f44d", reaction_type: "unicode_emoji" };

const s = (group: Shortcut["group"], keys: string[], label: () => string, run: Shortcut["run"], inOverlays = false): Shortcut => ({ group, keys, label, run, inOverlays });

export function installShortcuts(): void {
  addShortcuts(
    s("navigate", ["ArrowDown", "j"], () => t("Next message"), move(1)),
    s("navigate", ["ArrowUp", "k"], () => t("Previous message"), move(-1)),
    s("navigate", ["End", "Shift+G"], () => t("Newest message; all are read"), toEdge(false)),
    s("navigate", ["Home"], () => t("Oldest message"), toEdge(true)),
    s("navigate", ["PageDown", " ", "Shift+J"], () => t("One page down"), () => shownList.value?.list.page(1) ?? (shownList.value ? undefined : false)),
    s("navigate", ["PageUp", "Shift+ ", "Shift+K"], () => t("One page up"), () => shownList.value?.list.page(-1) ?? (shownList.value ? undefined : false)),
    s("navigate", ["n"], () => t("Next unread topic"), () => nextUnread(false)),
    s("navigate", ["Shift+N"], () => t("Next unread followed topic"), () => nextUnread(false, true)),
    s("navigate", ["p"], () => t("Next unread direct message"), () => nextUnread(true)),
    { ...s("navigate", ["/", "Ctrl+k"], () => t("Search, or go to a place"), focus("[data-search]")), inFields: ["Ctrl+k"] },
    s("navigate", ["q"], () => t("Filter channels"), () => {
      leftOpen.value = true; // on wide pages it is always there
      focusWhenDrawn("[data-channel-filter]");
    }),
    s("navigate", ["w"], () => t("Filter people"), () => {
      rightOpen.value = true;
      focusWhenDrawn("[data-people-filter]");
    }),
    s("navigate", ["Escape"], () => t("Close, or back home"), () => escape(peek().settings.web_escape_navigates_to_home_view !== false), true),
    s("navigate", ["Ctrl+["], () => t("Back home"), () => escape(true), true),
    s("view", ["Shift+I"], () => t("Inbox; again: filter it"), toInbox),
    s("view", ["t"], () => t("Recent conversations; again: filter them"), toRecent),
    s("view", ["a"], () => t("Combined feed"), () => go("#feed")),
    s("view", ["s"], () => t("Conversation of the message, or its channel"), toOther),
    s("view", ["y"], () => t("All topics of the channel"), toTopics),
    s("view", ["z"], () => t("The message in its conversation"), onMessage(toTopic)),
    s("view", ["Shift+D"], () => t("Next channel"), nextChannel(1)),
    s("view", ["Shift+A"], () => t("Previous channel"), nextChannel(-1)),
    s("view", ["Shift+P"], () => t("All direct messages"), () => go("#narrow/is/dm")),
    s("view", ["*"], () => t("Starred messages"), () => go("#narrow/is/starred")),
    s("view", ["g"], () => t("Main menu"), mainMenu),
    s("view", ["d"], () => t("Drafts"), toggleDrafts, true),
    s("view", ["?"], () => t("This list of shortcuts"), openShortcuts, true),
    s("message", ["r"], () => t("Reply"), reply),
    s("message", ["Enter"], () => t("Reply; in a search: open the conversation"), () => {
      const terms = routes.value.view.terms;
      const m = current();
      if (m && terms && !holdsWhole(terms)) toTopic(m);
      else return reply();
    }),
    s("message", [">"], () => t("Quote and reply"), onMessage((m) => quote(m))),
    s("message", [":"], () => t("Add a reaction"), onMessage((m) => openEmojiPicker(elementOf(m), (e) => toggleReaction(m, e)))),
    s("message", ["Shift+R"], () => t("Direct message to the sender"), onMessage(replyToSender)),
    s("message", ["@"], () => t("Reply with a mention of the sender"), onMessage(replyWithMention)),
    s("message", ["<"], () => t("Forward"), onMessage((m) => forward(m))),
    s("message", ["+"], () => t("Thumbs up"), onMessage((m) => toggleReaction(m, thumbsUp))),
    s("message", ["="], () => t("The first reaction also from you"), onMessage((m) => m.reactions[0] && toggleReaction(m, m.reactions[0]))),
    s("message", ["-"], () => t("Collapse or show"), onMessage((m) => openCondensed(m.id) || toggleCollapsed(m))),
    s("message", ["u"], () => t("Card of the sender"), onMessage((m) => openUserCard(m.sender_id, elementOf(m)))),
    s("message", ["v"], () => t("Images"), () => { const m = current(); return m ? openImages(m) : false; }),
    s("message", ["ArrowLeft"], () => t("Edit your last message"), editLast),
    s("message", ["e"], () => t("Edit, or view the source"), onMessage(startEdit)),
    s("message", ["m"], () => t("Move"), onMessage((m) => canMove(m) && openPart(import("./message/move.tsx"), (x) => x.openMove(m)))),
    s("message", ["Ctrl+s"], () => t("Star"), onMessage(toggleStar)),
    s("message", ["Shift+U"], () => t("Mark as unread from here"), onMessage(markUnreadFrom)),
    s("message", ["Shift+M"], () => t("Mute or unmute the topic"), toggleMute),
    s("message", ["Shift+V"], () => t("Read by"), onMessage((m) => openPart(import("./message/receipts.tsx"), (x) => x.openReceipts(m)))),
    s("message", ["Shift+H"], () => t("Edit history"), onMessage((m) => openPart(import("./message/history.tsx"), (x) => x.openHistory(m)))),
    s("message", ["Shift+L"], () => t("Copy link"), onMessage((m) => copyText(linkOf(m), t("Link copied.")))),
    s("message", ["i"], () => t("Message actions"), onMessage((m) => openPopover(elementOf(m), h(MessageMenu, { id: m.id }), "i"))),
    s("compose", ["c"], () => t("New channel message"), newMessage),
    s("compose", ["x"], () => t("New direct message"), newDirect),
  );
}

