// Narrows: the messages of a view as terms, their addresses, and which messages they hold.
import { TopicPolicy, type Message, type Term } from "../api/types.ts";
import { peopleKey, type State } from "./state.ts";

// canonical replaces old names of operators.
export function canonical(operator: string): string {
  switch (operator) {
    case "stream":
      return "channel";
    case "streams":
      return "channels";
    case "subject":
      return "topic";
    case "pm-with":
      return "dm";
    case "group-pm-with":
    case "pm-including":
      return "dm-including";
    case "from":
      return "sender";
  }
  return operator;
}

// encodePart writes a text for the fragment of an address, with dots for percent signs, as Zulip's clients do.
function encodePart(text: string): string {
  return encodeURIComponent(text)
    .replace(/[!'()*~]/g, (c) => "%" + c.charCodeAt(0).toString(16).toUpperCase())
    .replace(/\./g, "%2E")
    .replace(/%/g, ".");
}

function decodePart(text: string): string {
  try {
    return decodeURIComponent(text.replace(/\./g, "%"));
  } catch {
    return text;
  }
}

// slug is the readable end of an id in an address.
function slug(name: string): string {
  return name
    .trim()
    .replace(/[^\p{L}\p{N}]+/gu, "-")
    .replace(/^-+|-+$/g, "");
}

// hashOf returns the address of a narrow, such as #narrow/channel/5-general/topic/lunch.
export function hashOf(terms: readonly Term[], s: State): string {
  if (terms.length === 1 && terms[0]!.operator === "in" && terms[0]!.operand === "home") return "#feed";
  let out = "#narrow";
  for (const t of terms) {
    out += "/" + (t.negated ? "-" : "") + t.operator + "/" + operandPart(t, s);
  }
  return out;
}

// hashOfChannel returns the address of all messages of a channel.
export function hashOfChannel(channel: number, s: State): string {
  return hashOf([{ operator: "channel", operand: channel }], s);
}

// hashOfTopics returns the address of the list of all topics of a channel.
export function hashOfTopics(channel: number, s: State): string {
  return hashOfChannel(channel, s).replace("#narrow/", "#topics/");
}

function operandPart(t: Term, s: State): string {
  if (t.operator === "channel" && typeof t.operand === "number") {
    const name = slug(s.channels.get(t.operand)?.name ?? "");
    return encodePart(name ? `${t.operand}-${name}` : String(t.operand));
  }
  if (Array.isArray(t.operand)) {
    if (t.operand.length === 1) {
      const name = slug(s.users.get(t.operand[0]!)?.full_name ?? "");
      return encodePart(name ? `${t.operand[0]}-${name}` : String(t.operand[0]));
    }
    return encodePart(t.operand.join(",") + (t.operand.length > 1 ? "-group" : ""));
  }
  if (typeof t.operand === "number" && t.operator === "sender") {
    return encodePart(`${t.operand}-${slug(s.users.get(t.operand)?.full_name ?? "user")}`);
  }
  return encodePart(String(t.operand));
}

// termsOf reads the address of a narrow, also in older forms. It returns null for other addresses.
export function termsOf(hash: string, s: State): Term[] | null {
  const parts = hash.replace(/^#/, "").split("/");
  if (parts.shift() !== "narrow") return null;
  if (parts.length && parts[parts.length - 1] === "") parts.pop();
  const out: Term[] = [];
  for (let i = 0; i + 1 < parts.length; i += 2) {
    let operator = parts[i]!;
    const negated = operator.startsWith("-");
    if (negated) operator = operator.slice(1);
    operator = canonical(operator);
    const text = decodePart(parts[i + 1]!);
    const operand = operandOf(operator, text, s);
    out.push(negated ? { operator, operand, negated } : { operator, operand });
  }
  return out;
}

function operandOf(operator: string, text: string, s: State): Term["operand"] {
  switch (operator) {
    case "channel": {
      const id = /^(\d+)(-.*)?$/.exec(text);
      if (id && s.channels.has(Number(id[1]))) return Number(id[1]);
      for (const c of s.channels.values()) if (c.name === text || c.name.replace(/ /g, "-") === text) return c.stream_id;
      return id ? Number(id[1]) : text;
    }
    case "dm":
    case "dm-including": {
      const ids = /^([\d,]+)/.exec(text);
      if (ids) return ids[1]!.split(",").filter(Boolean).map(Number);
      return usersByEmail(text, s);
    }
    case "sender": {
      const id = /^(\d+)(-.*)?$/.exec(text);
      return id ? Number(id[1]) : (usersByEmail(text, s)[0] ?? text);
    }
    case "near":
    case "id":
    case "with":
      return Number(text);
  }
  return text;
}

function usersByEmail(text: string, s: State): number[] {
  const wanted = text.split(",").map((x) => x.trim().toLowerCase());
  const out: number[] = [];
  for (const u of s.users.values()) if (wanted.includes(u.email.toLowerCase())) out.push(u.user_id);
  return out;
}

// listKey is the key of a list of messages: its terms without the position in it.
export function listKey(terms: readonly Term[]): string {
  return JSON.stringify(
    withoutPosition(terms).map((t) => [t.operator, typeof t.operand === "string" ? t.operand.toLowerCase() : t.operand, !!t.negated]),
  );
}

// withoutPosition returns the terms that choose messages: the server takes the position as an anchor.
export function withoutPosition(terms: readonly Term[]): Term[] {
  return terms.filter((t) => t.operator !== "near" && t.operator !== "with");
}

export function operandOfFirst(terms: readonly Term[], operator: string): Term["operand"] | undefined {
  return terms.find((t) => t.operator === operator && !t.negated)?.operand;
}

// Conversation is the conversation that a narrow shows, if it shows exactly one.
export type Conversation = { channel: number; topic: string } | { people: number[] };

export function conversationOf(terms: readonly Term[]): Conversation | null {
  const channel = operandOfFirst(terms, "channel");
  const topic = operandOfFirst(terms, "topic");
  const rest = withoutPosition(terms);
  if (typeof channel === "number" && typeof topic === "string" && rest.length === 2) return { channel, topic };
  const dm = operandOfFirst(terms, "dm");
  if (Array.isArray(dm) && rest.length === 1) return { people: dm };
  return null;
}

// placeKey is the key of a conversation, for example of the users that type in it.
export function placeKey(c: Conversation, me: number): string {
  return "channel" in c ? `${c.channel}:${c.topic.toLowerCase()}` : peopleKey(c.people, me);
}

export function narrowTo(c: Conversation): Term[] {
  if ("people" in c) return [{ operator: "dm", operand: c.people }];
  return [
    { operator: "channel", operand: c.channel },
    { operator: "topic", operand: c.topic },
  ];
}

export function conversationOfMessage(m: Message, me: number): Conversation {
  if (m.type === "stream") return { channel: m.stream_id!, topic: m.subject };
  return { people: peopleIn(m, me) };
}

// peopleIn returns the other users of a direct message, or the user themself for notes to oneself.
function peopleIn(m: Message, me: number): number[] {
  return peopleKey(recipientIDs(m), me).split(",").map(Number);
}

export function recipientIDs(m: Pick<Matched, "display_recipient">): number[] {
  return typeof m.display_recipient === "string" ? [] : m.display_recipient.map((p) => p.id);
}

// Matched is what narrows look at in a message.
export type Matched = Pick<Message, "id" | "type" | "stream_id" | "subject" | "sender_id" | "flags"> & {
  display_recipient: string | { id: number }[];
};

// Match reports whether a message belongs to a narrow; null means that only the server can tell.
export type Match = (m: Matched) => boolean | null;

export function matcher(terms: readonly Term[], s: State): Match {
  const all = withoutPosition(terms).map((t) => {
    const one = termMatcher(t, s);
    if (!t.negated) return one;
    return (m: Matched) => {
      const r = one(m);
      return r === null ? null : !r;
    };
  });
  return (m) => {
    let out: boolean | null = true;
    for (const one of all) {
      const r = one(m);
      if (r === false) return false;
      if (r === null) out = null;
    }
    return out;
  };
}

function termMatcher(t: Term, s: State): Match {
  const me = s.me.user_id;
  const people = Array.isArray(t.operand) ? t.operand : [];
  switch (t.operator) {
    case "channel":
      return (m) => m.type === "stream" && m.stream_id === t.operand;
    case "topic": {
      const topic = String(t.operand).toLowerCase();
      return (m) => m.type === "stream" && m.subject.toLowerCase() === topic;
    }
    case "dm": {
      const key = peopleKey(people, me);
      return (m) => m.type === "private" && peopleKey(recipientIDs(m), me) === key;
    }
    case "dm-including": {
      return (m) => m.type === "private" && people.every((id) => recipientIDs(m).includes(id));
    }
    case "sender":
      return (m) => m.sender_id === t.operand;
    case "id":
      return (m) => m.id === t.operand;
    case "in":
      return t.operand === "home" ? (m) => isInHome(m, s) : () => true;
    case "is":
      return isMatcher(String(t.operand), s);
    case "channels":
      if (t.operand === "public") return (m) => m.type === "stream" && s.channels.get(m.stream_id!)?.invite_only === false;
      return () => null;
  }
  return () => null;
}

function isMatcher(what: string, s: State): Match {
  const flag = (name: string): Match => (m) => m.flags.includes(name);
  switch (what) {
    case "dm":
    case "private":
      return (m) => m.type === "private";
    case "starred":
      return flag("starred");
    case "mentioned":
      return (m) => m.flags.some((f) => f === "mentioned" || f.endsWith("wildcard_mentioned"));
    case "unread":
      return (m) => !m.flags.includes("read");
    case "alerted":
      return flag("has_alert_word");
    case "resolved":
      return (m) => m.type === "stream" && m.subject.startsWith(resolvedMark);
    case "followed":
      return (m) => m.type === "stream" && topicPolicy(s, m.stream_id!, m.subject) === TopicPolicy.followed;
    case "muted":
      return (m) => !isInHome(m, s);
  }
  return () => null;
}

export const resolvedMark = "✔ ";

export function topicPolicy(s: State, channel: number, topic: string): number {
  return s.topicPolicies.get(channel)?.get(topic.toLowerCase())?.visibility_policy ?? TopicPolicy.inherit;
}

// isTopicMuted reports whether a topic does not appear in the combined feed: it is muted, or its channel is and it is
// neither unmuted nor followed.
export function isTopicMuted(s: State, channel: number, topic: string): boolean {
  const policy = topicPolicy(s, channel, topic);
  if (policy === TopicPolicy.muted) return true;
  return policy === TopicPolicy.inherit && (s.subscriptions.get(channel)?.is_muted ?? false);
}

function isInHome(m: Matched, s: State): boolean {
  if (m.type === "private") return !recipientIDs(m).every((id) => id === s.me.user_id || s.mutedUsers.has(id)) || isNote(m, s);
  if (m.flags.includes("mentioned")) return true;
  return s.subscriptions.has(m.stream_id!) && !isTopicMuted(s, m.stream_id!, m.subject);
}

function isNote(m: Matched, s: State): boolean {
  return recipientIDs(m).every((id) => id === s.me.user_id);
}
