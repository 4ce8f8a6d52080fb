// The address in the browser chooses the view. All addresses are fragments, and those of narrows are the same as in
// Zulip.
import { computed, signal } from "@preact/signals";
import type { Message, Term } from "../api/types.ts";
import { conversationOfMessage, hashOf, narrowTo, termsOf } from "./narrow.ts";
import { peek, read } from "./store.ts";

export const hash = signal(location.hash); // view state

addEventListener("hashchange", () => {
  hash.value = location.hash;
});

// Route is an address in its parts: #settings/profile has the name "settings" and the rest ["profile"].
export interface Route {
  name: string;
  rest: string[];
  terms: Term[] | null; // of a narrow
}

// overlays are the addresses that are shown above the view from which they were opened.
const overlays = new Set([
  "settings",
  "organization",
  "channels",
  "streams",
  "groups",
  "user",
  "drafts",
  "scheduled",
  "reminders",
  "about-zulip",
  "invite",
  "keyboard-shortcuts",
  "message-formatting",
  "search-operators",
]);

function parse(text: string): Route {
  const [name = "", ...rest] = text.replace(/^#/, "").split("/");
  if (name === "recent_topics") return parse("#recent"); // older links
  const terms = name === "feed" || name === "all_messages" ? [{ operator: "in", operand: "home" }] : null;
  return { name: terms ? "narrow" : name, rest: rest.map(safeDecode), terms: terms ?? termsOf(text, peek()) };
}

function safeDecode(s: string): string {
  try {
    return decodeURIComponent(s);
  } catch {
    return s;
  }
}

let lastView = ""; // view state

// routes is the address in its parts. overlay is the part above the view, if there is one.
export const routes = computed<{ view: Route; overlay: Route | null }>(() => {
  void read("me"); // narrows by name are resolved again after a registration
  const route = parse(hash.value);
  if (overlays.has(route.name)) return { view: parse(lastView || homeHash()), overlay: route };
  if (route.name === "") return { view: parse(homeHash()), overlay: null };
  lastView = hash.value;
  return { view: route, overlay: null };
});

// homeHash is the address of the view that the user has chosen as home.
export function homeHash(): string {
  switch (read("settings").web_home_view) {
    case "all_messages":
      return "#feed";
    case "recent":
    case "recent_topics":
      return "#recent";
  }
  return "#inbox";
}

export function go(to: string): void {
  if (location.hash === to) return;
  location.hash = to;
  hash.value = location.hash;
}

// replaceWith goes to an address in place of the current one, to which the back button then does not lead.
export function replaceWith(terms: Term[]): void {
  const to = hashOf(terms, peek());
  if (routes.peek().overlay) {
    lastView = to; // shown when the overlay closes
    return;
  }
  history.replaceState(null, "", to);
  hash.value = location.hash;
}

export function goTo(terms: Term[]): void {
  go(hashOf(terms, peek()));
}

// closeOverlay returns to the view below.
export function closeOverlay(): void {
  go(lastView || homeHash());
}

// linkOf returns the full address of a message.
export function linkOf(m: Message): string {
  const s = peek();
  const terms = narrowTo(conversationOfMessage(m, s.me.user_id));
  return location.origin + "/" + hashOf([...terms, { operator: "near", operand: m.id }], s);
}
