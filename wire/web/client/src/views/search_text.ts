// A narrow as the text of a search, such as: channel:general has:image words
import type { Term } from "../api/types.ts";
import { canonical } from "../store/narrow.ts";
import type { State } from "../store/state.ts";
import { peek } from "../store/store.ts";

export function searchText(terms: Term[]): string {
  return terms.map((t) => termText(t, peek())).join(" ");
}

function termText(t: Term, s: State): string {
  const minus = t.negated ? "-" : "";
  if (t.operator === "search") return minus + String(t.operand);
  return `${minus}${t.operator}:${encodeOperand(operandText(t, s))}`;
}

// encodeOperand writes an operand so that it is read as one: with spaces in quotes.
export function encodeOperand(text: string): string {
  const plain = text.replace(/[%+"]/g, encodeURIComponent);
  return plain.includes(" ") ? `"${plain}"` : plain;
}

function decodeOperand(text: string): string {
  return text.replace(/\+/g, " ").replace(/%(25|2B|22)/gi, decodeURIComponent);
}

// operandText returns an operand as users see it, with names of channels and people.
export function operandText(t: Term, s: State): string {
  if (t.operator === "channel") return s.channels.get(Number(t.operand))?.name ?? String(t.operand);
  if (Array.isArray(t.operand)) return t.operand.map((id) => s.users.get(id)?.full_name ?? String(id)).join(", ");
  if (t.operator === "sender") return s.users.get(Number(t.operand))?.full_name ?? String(t.operand);
  return String(t.operand);
}

// searchOperators are the operators that a search can have.
const searchOperators = ["channel", "topic", "sender", "dm", "dm-including", "is", "has", "in", "near", "id", "channels"];

// LastFilter is the filter at the end of a text, which the user is typing. Its value may contain spaces.
interface LastFilter {
  head: string; // the text before it
  negated: boolean;
  operator: string;
  value: string;
}

// lastFilter returns the filter at the end of a text, or null if the text ends with words.
export function lastFilter(text: string): LastFilter | null {
  const m = /^(.*?)(?:^|(?<=\s))(-?)([a-z-]+):("[^"]*"?|[^":]*)$/i.exec(text);
  const operator = m ? canonical(m[3]!.toLowerCase()) : "";
  if (!m || !searchOperators.includes(operator)) return null;
  return { head: m[1]!, negated: m[2] === "-", operator, value: decodeOperand(m[4]!.replace(/^"|"$/g, "")) };
}

// takeTerms returns the filters at the beginning of a text that are complete and followed by a space, and the rest. The
// operand of a topic is complete if it is in quotes.
export function takeTerms(text: string, s: State): { terms: Term[]; rest: string } {
  const terms: Term[] = [];
  for (;;) {
    const m = /^\s*(-?[a-z-]+:(?:"[^"]*"|[^\s"]+))\s/i.exec(text);
    const term = m && parseSearch(m[1]!, s)[0];
    if (!term || term.operator === "search" || !isComplete(term, m[1]!.endsWith('"'), s)) return { terms, rest: text };
    terms.push(term);
    text = text.slice(m[0].length);
  }
}

function isComplete(t: Term, quoted: boolean, s: State): boolean {
  switch (t.operator) {
    case "channel": {
      // "channel:big " can go on to the name "big news".
      const begin = operandText(t, s).toLowerCase() + " ";
      return typeof t.operand === "number" && (quoted || ![...s.channels.values()].some((c) => c.name.toLowerCase().startsWith(begin)));
    }
    case "sender":
      return typeof t.operand === "number";
    case "dm":
    case "dm-including":
      return Array.isArray(t.operand) && t.operand.length > 0;
    case "topic":
      return quoted;
  }
  return true;
}

// parseSearch reads the text of a search. The words without an operator are one term.
export function parseSearch(text: string, s: State): Term[] {
  const out: Term[] = [];
  const words: string[] = [];
  for (const [token] of text.matchAll(/-?[\w-]+:"[^"]*"|-?"[^"]*"|\S+/g)) {
    const m = /^(-?)([a-z-]+):([^]+)$/i.exec(token);
    const operator = m ? canonical(m[2]!.toLowerCase()) : "";
    if (!m || !searchOperators.includes(operator)) {
      words.push(token);
      continue;
    }
    const operand = readOperand(operator, decodeOperand(m[3]!.replace(/^"|"$/g, "")), s);
    out.push(m[1] ? { operator, operand, negated: true } : { operator, operand });
  }
  if (words.length) out.push({ operator: "search", operand: words.join(" ") });
  return out;
}

function readOperand(operator: string, text: string, s: State): Term["operand"] {
  const low = text.toLowerCase();
  switch (operator) {
    case "channel":
      return [...s.channels.values()].find((c) => c.name.toLowerCase() === low)?.stream_id ?? text;
    case "sender":
      return userID(low, s) ?? text;
    case "dm":
    case "dm-including":
      return low.split(",").map((n) => userID(n.trim(), s)).filter((id) => id !== undefined);
    case "near":
    case "id":
      return Number(text);
  }
  return text;
}

function userID(name: string, s: State): number | undefined {
  if (name === "me") return s.me.user_id;
  for (const u of s.users.values()) if (u.full_name.toLowerCase() === name || u.email.toLowerCase() === name) return u.user_id;
  return /^\d+$/.test(name) ? Number(name) : undefined;
}
