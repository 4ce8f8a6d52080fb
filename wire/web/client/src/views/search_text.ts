// A narrow as the text of a search, such as: channel:general has:image words
import type { Term } from "../api/types.ts";
import { canonical } from "../store/narrow.ts";
import type { State } from "../store/state.ts";
import { peek } from "../store/store.ts";

export function searchText(terms: Term[]): string {
  return terms.map((t) => termText(t, peek())).join(" ");
}

function termText(t: Term, s: State): string {
  if (t.operator === "search") return (t.negated ? "-" : "") + String(t.operand);
  return (t.negated ? "-" : "") + t.operator + ":" + encodeOperand(operandText(t, s));
}

// encodeOperand writes an operand as one word.
export function encodeOperand(text: string): string {
  return text.replace(/[%+"]/g, encodeURIComponent).replace(/ /g, "+");
}

function decodeOperand(text: string): string {
  return text.replace(/\+/g, " ").replace(/%(25|2B|22)/gi, decodeURIComponent);
}

function operandText(t: Term, s: State): string {
  if (t.operator === "channel") return s.channels.get(Number(t.operand))?.name ?? String(t.operand);
  if (Array.isArray(t.operand)) return t.operand.map((id) => s.users.get(id)?.full_name ?? String(id)).join(",");
  if (t.operator === "sender") return s.users.get(Number(t.operand))?.full_name ?? String(t.operand);
  return String(t.operand);
}

// searchOperators are the operators that a search can have.
const searchOperators = ["channel", "topic", "sender", "dm", "dm-including", "is", "has", "in", "near", "id", "channels"];

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
