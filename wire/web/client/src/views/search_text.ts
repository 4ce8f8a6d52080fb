// A narrow as the text of a search, such as: channel:general has:image words
import type { Term } from "../api/types.ts";
import { peek } from "../store/store.ts";

export function searchText(terms: Term[]): string {
  return terms.map(termText).join(" ");
}

function termText(t: Term): string {
  if (t.operator === "search") return (t.negated ? "-" : "") + String(t.operand);
  return (t.negated ? "-" : "") + t.operator + ":" + operandText(t).replace(/ /g, "+");
}

function operandText(t: Term): string {
  const s = peek();
  if (t.operator === "channel") return s.channels.get(Number(t.operand))?.name ?? String(t.operand);
  if (Array.isArray(t.operand)) return t.operand.map((id) => s.users.get(id)?.full_name ?? String(id)).join(",");
  if (t.operator === "sender") return s.users.get(Number(t.operand))?.full_name ?? String(t.operand);
  return String(t.operand);
}
