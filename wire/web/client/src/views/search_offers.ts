// What the search field offers for its text: places to go to, commands and settings, and filters of messages.
import type { Term } from "../api/types.ts";
import { newDirect } from "../compose/state.ts";
import { openShortcuts } from "../help/shortcuts.tsx";
import { t } from "../i18n/text.ts";
import { sections } from "../settings/registry.ts";
import { mainItems } from "../sidebar/main_menu.tsx";
import { conversationOf, narrowTo, operandOfFirst, resolvedMark, withoutPosition } from "../store/narrow.ts";
import { canSearchMeaning } from "../store/permissions.ts";
import { may, topicName, userNames } from "../store/queries.ts";
import { go, goTo, routes } from "../store/router.ts";
import { findWhileTyping } from "../store/people.ts";
import type { State } from "../store/state.ts";
import { peek, read } from "../store/store.ts";
import { loadTopics } from "../store/topics.ts";
import { channelIcon, type IconName } from "../ui/icons.tsx";
import { matches } from "../ui/matches.ts";
import { openPart } from "../ui/parts.ts";
import { encodeOperand, lastFilter, operandText, parseSearch } from "./search_text.ts";
import { visitedPlaces } from "./visited.ts";

export interface Offer {
  icon: IconName;
  user?: number; // whose picture is shown instead of the icon
  color?: string;
  word: string;
  detail: string;
  filters?: Term[]; // of the whole field, when the offer is a filter
  open?: string; // the text of an operator that still needs its operand
  run?: () => unknown; // else
}

const maxOffers = 12;
const maxPlaces = 7; // beside the offers that search
const maxMeaning = 500; // characters of a search by meaning
const maxTopicLoads = 12; // channels whose topics are fetched for the switcher

const fixed: [string, () => string][] = [
  ["is:unread", () => t("Unread messages")],
  ["is:mentioned", () => t("Messages that mention you")],
  ["is:starred", () => t("Starred messages")],
  ["is:dm", () => t("Direct messages")],
  ["is:followed", () => t("Messages in followed topics")],
  ["is:resolved", () => t("Messages in resolved topics")],
  ["is:alerted", () => t("Messages with your alert words")],
  ["is:muted", () => t("Messages in muted topics")],
  ["has:link", () => t("Messages with links")],
  ["has:image", () => t("Messages with images")],
  ["has:attachment", () => t("Messages with files")],
  ["has:reaction", () => t("Messages with reactions")],
  ["in:home", () => t("Messages in the combined feed")],
  ["channels:public", () => t("Messages in all public channels")],
];

const open: [string, () => string][] = [
  ["channel:", () => t("Messages in a channel")],
  ["topic:", () => t("Messages in a topic")],
  ["sender:", () => t("Messages from a person")],
  ["dm:", () => t("Direct messages with people")],
  ["dm-including:", () => t("Direct messages that include people")],
  ["near:", () => t("Messages near one with this number")],
];

// rank orders names by how well they fit a query: the lower, the better; null if a name does not fit.
function rank(name: string, q: string): number | null {
  const low = name.toLowerCase();
  if (low === q) return 0;
  if (low.startsWith(q)) return 1;
  if (matches(low, q)) return 2;
  return low.includes(q) ? 3 : null;
}

// best returns the entries whose names fit a query, the best first, and of equal ones the first.
function best<T>(list: Iterable<T>, name: (x: T) => string, q: string, extra: (x: T) => number = () => 0): { x: T; rank: number }[] {
  const out: { x: T; rank: number }[] = [];
  for (const x of list) {
    const r = rank(name(x), q);
    if (r !== null) out.push({ x, rank: r + extra(x) });
  }
  return out.sort((a, b) => a.rank - b.rank);
}

// offersFor returns the offers for the filters and the text of the field.
export function offersFor(pills: Term[], text: string): Offer[] {
  const filter = lastFilter(text);
  void read("users"); // the server may find more
  findWhileTyping(filter ? filter.value.split(",").at(-1)! : text);
  if (filter) {
    const head = [...pills, ...parseSearch(filter.head, peek())];
    const list = operands(filter.operator, filter.value, head).map((o): Offer => {
      const term: Term = { operator: filter.operator, operand: o.operand, ...(filter.negated ? { negated: true } : {}) };
      return { ...o, word: `${filter.negated ? "-" : ""}${filter.operator}:${operandText(term, peek())}`, filters: [...head, term] };
    });
    return [...list, ...(list.length ? [] : [searchFor(pills, text)])].slice(0, maxOffers);
  }
  const words = text.trim();
  if (!words) return pills.length ? operators("", pills, "") : begin();
  const places = pills.length ? [] : placesFor(words.toLowerCase());
  return [...places, searchFor(pills, words), ...searchMeaning(pills, words), ...searchHere(pills, words), ...operators(words, pills, text)].slice(0, maxOffers);
}

// begin are the offers of the empty field.
function begin(): Offer[] {
  const places = visitedPlaces().map(placeOffer).filter((x) => x !== null).slice(0, 5);
  return [...places, ...operators("", [], "").filter((o) => !/near|muted|in:/.test(o.word))].slice(0, maxOffers);
}

function searchFor(pills: Term[], text: string): Offer {
  return { icon: "search", word: text, detail: t("Search for these words"), filters: [...pills, ...parseSearch(text, peek())] };
}

// searchMeaning offers to search for messages that mean the same as the words.
function searchMeaning(pills: Term[], words: string): Offer[] {
  const terms = [...pills, ...parseSearch(words, peek())];
  const isText = (x: Term): boolean => x.operator === "search" && !x.negated;
  const text = terms.filter(isText).map((x) => String(x.operand)).join(" ");
  if (!canSearchMeaning() || !text) return [];
  const run = (): void => openPart(import("../message/meaning.tsx"), (x) => x.openMeaning(text.slice(0, maxMeaning), terms.filter((y) => !isText(y))));
  return [{ icon: "search", word: text, detail: t("Search by meaning"), run }];
}

// searchHere offers to search only in the channel or the conversation on the screen.
function searchHere(pills: Term[], words: string): Offer[] {
  if (pills.length) return [];
  const here = withoutPosition(routes.peek().view.terms ?? []).filter((x) => ["channel", "topic", "dm"].includes(x.operator));
  const offer = here.length && placeOffer(here);
  if (!offer) return [];
  return [{ icon: "search", word: words, detail: t("Search in {place}", { place: offer.word }), filters: [...here, ...parseSearch(words, peek())] }];
}

// placeOffer is the offer that opens a conversation or a channel, null if it no longer exists.
function placeOffer(terms: Term[]): Offer | null {
  const s = peek();
  const run = (): void => goTo(terms);
  const place = conversationOf(terms);
  const id = operandOfFirst(terms, "channel");
  if (typeof id === "number") {
    const c = s.channels.get(id);
    if (!c) return null;
    if (place && "topic" in place) return topicOffer(id, place.topic);
    return { icon: channelIcon(c), color: s.subscriptions.get(id)?.color, word: c.name, detail: t("Channel"), run };
  }
  if (!place || !("people" in place)) return null;
  return { icon: "people", user: place.people.length === 1 ? place.people[0] : undefined, word: userNames(place.people), detail: t("Direct messages"), run };
}

function topicOffer(channel: number, topic: string): Offer {
  const icon = topic.startsWith(resolvedMark) ? "check" : "topic";
  const detail = `#${peek().channels.get(channel)?.name ?? ""}`;
  return { icon, word: topicName(topic.replace(resolvedMark, "")), detail, run: () => goTo(narrowTo({ channel, topic })) };
}

// placesFor returns the places and commands whose names fit, the best ones first.
function placesFor(q: string): Offer[] {
  const s = peek();
  const out: { rank: number; offer: Offer }[] = [];
  const put = (rank: number, offer: Offer | null): void => void (offer && out.push({ rank, offer }));
  const recent = new Set(visitedPlaces().map((x) => JSON.stringify(x)));
  const seen = (terms: Term[]): number => (recent.has(JSON.stringify(terms)) ? -0.5 : 0);
  const channels = [...s.channels.values()].filter((c) => !c.is_archived);
  for (const { x: c, rank } of best(channels, (c) => c.name, q, (c) => (s.subscriptions.has(c.stream_id) ? 0 : 0.4))) {
    const terms = [{ operator: "channel", operand: c.stream_id }];
    put(rank + seen(terms), placeOffer(terms));
  }
  const people = [...s.users.values()].filter((u) => u.is_active && !u.is_system_bot);
  for (const { x: u, rank } of best(people, (u) => u.full_name, q, (u) => (u.is_bot ? 0.3 : 0.1))) {
    const terms = narrowTo({ people: [u.user_id] });
    put(rank + seen(terms), placeOffer(terms));
  }
  for (const { x, rank } of best(knownTopics(), (x) => topicName(x.topic.replace(resolvedMark, "")), q, () => 0.2)) {
    put(rank + seen(narrowTo(x)), topicOffer(x.channel, x.topic));
  }
  for (const { x, rank } of best(commands(), (x) => x.word, q, () => 0.35)) put(rank, x);
  return out
    .sort((a, b) => a.rank - b.rank)
    .slice(0, maxPlaces)
    .map((x) => x.offer);
}

// loadTopicsOfChannels fetches the topics of the first channels of the user, so that the switcher can offer them.
export function loadTopicsOfChannels(): void {
  for (const id of [...peek().subscriptions.keys()].slice(0, maxTopicLoads)) void loadTopics(id);
}

function* knownTopics(): Iterable<{ channel: number; topic: string }> {
  const s = peek();
  const loaded = read("topics");
  for (const channel of s.subscriptions.keys()) {
    const topics = loaded.get(channel);
    if (topics) for (const x of [...topics.values()].sort((a, b) => b.max_id - a.max_id)) yield { channel, topic: x.name };
    else for (const ids of s.unread.topics.get(channel)?.values() ?? []) {
      const place = s.unread.places.get(ids.values().next().value!);
      if (place && "channel" in place) yield place;
    }
  }
}

// commands are the items of the main menu, ways to begin something, and the sections of the settings.
function commands(): Offer[] {
  const out: Offer[] = [
    { icon: "person", word: t("New direct message"), detail: t("Command"), run: newDirect },
    { icon: "help", word: t("Keyboard shortcuts"), detail: t("Command"), run: openShortcuts },
  ];
  if (may("can_create_public_channel_group") || may("can_create_private_channel_group")) {
    out.push({ icon: "plus", word: t("New channel"), detail: t("Command"), run: () => go("#channels/new") });
  }
  for (const item of mainItems()) {
    if (item && !out.some((x) => x.word === item.label)) out.push({ icon: item.icon ?? "dots", word: item.label, detail: t("Command"), run: item.run });
  }
  const areas = { settings: t("Settings"), organization: t("Organization") };
  for (const x of sections) out.push({ icon: x.icon, word: x.title(), detail: areas[x.area], run: () => go(`#${x.area}/${x.name}`) });
  return out;
}

// operators are the filters that go on from the last word of a text.
function operators(words: string, pills: Term[], text: string): Offer[] {
  const last = /\S*$/.exec(words)![0];
  const minus = last.startsWith("-") ? "-" : "";
  const word = last.slice(minus.length).toLowerCase();
  const head = text.trimEnd().slice(0, text.trimEnd().length - last.length);
  const before = [...pills, ...parseSearch(head, peek())];
  const list = [
    ...open.map(([w, detail]): Offer => ({ icon: "search", word: minus + w, detail: detail(), open: head + minus + w })),
    ...fixed.map(([w, detail]): Offer => ({ icon: "search", word: minus + w, detail: detail(), filters: [...before, ...parseSearch(minus + w, peek())] })),
  ];
  if (!word) return list;
  const out = list.filter((o) => o.word.startsWith(minus + word) || o.word.includes(":" + word));
  const s = peek();
  const filter = (term: Term, detail: string): Offer => {
    const one = minus ? { ...term, negated: true } : term;
    return { icon: "search", word: `${minus}${one.operator}:${operandText(one, s)}`, detail, filters: [...before, one] };
  };
  const channels = best([...s.channels.values()].filter((c) => !c.is_archived), (c) => c.name, word).slice(0, 2);
  const users = best([...s.users.values()].filter((u) => u.is_active), (u) => u.full_name, word).slice(0, 2);
  return [
    ...out,
    ...channels.map(({ x }) => filter({ operator: "channel", operand: x.stream_id }, t("Messages in a channel"))),
    ...users.map(({ x }) => filter({ operator: "sender", operand: x.user_id }, t("Messages from {name}", { name: x.full_name }))),
  ];
}

type Operand = Pick<Offer, "icon" | "user" | "color" | "detail"> & { operand: Term["operand"] };

// operands are the values that an operator can have, as far as they fit the typed one.
function operands(operator: string, typed: string, head: Term[]): Operand[] {
  const s = peek();
  const q = typed.trim().toLowerCase();
  switch (operator) {
    case "channel":
      return best(s.channels.values(), (c) => c.name, q).map(({ x }) => ({ icon: channelIcon(x), color: s.subscriptions.get(x.stream_id)?.color, operand: x.stream_id, detail: x.description.slice(0, 60) }));
    case "topic":
      return topicsOf(head, q);
    case "sender":
      return peopleFor(s, q).map((id) => ({ icon: "person", user: id, operand: id, detail: "" }));
    case "dm":
    case "dm-including": {
      const names = q.split(",").map((x) => x.trim());
      const chosen = names.slice(0, -1).flatMap((n) => peopleFor(s, n).slice(0, 1));
      return peopleFor(s, names.at(-1)!)
        .filter((id) => !chosen.includes(id))
        .map((id) => ({ icon: "person", user: id, operand: [...chosen, id], detail: "" }));
    }
    case "near":
    case "id":
      return [];
  }
  return fixed
    .filter(([w]) => w.startsWith(`${operator}:${q}`))
    .map(([w, detail]) => ({ icon: "search", operand: w.slice(operator.length + 1), detail: detail() }));
}

// peopleFor returns the users whose names fit; "me" is the user themself.
function peopleFor(s: State, q: string): number[] {
  const me = q && "me".startsWith(q) ? [s.me.user_id] : [];
  const others = best([...s.users.values()].filter((u) => u.is_active && !(me.length && u.user_id === me[0])), (u) => u.full_name, q, (u) => (u.is_bot ? 0.5 : 0));
  const found = others.map(({ x }) => x.user_id);
  return q === "me" ? [...me, ...found] : [...found, ...me];
}

function topicsOf(head: Term[], q: string): Operand[] {
  const view = routes.peek().view.terms ?? [];
  const channel = operandOfFirst(head, "channel") ?? operandOfFirst(view, "channel");
  if (typeof channel !== "number") return [];
  void loadTopics(channel);
  const list = [...(read("topics").get(channel)?.values() ?? [])].sort((a, b) => b.max_id - a.max_id);
  return best(list, (x) => topicName(x.name), q).map(({ x }) => ({ icon: "topic", operand: x.name, detail: `#${peek().channels.get(channel)?.name ?? ""}` }));
}

// textOf writes a filter so that it can be edited.
export function textOf(term: Term): string {
  return `${term.negated ? "-" : ""}${term.operator}:${encodeOperand(operandText(term, peek()))}`;
}
