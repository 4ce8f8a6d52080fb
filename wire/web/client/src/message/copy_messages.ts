// A selection of text that covers several messages is copied as these messages with the names of their senders, as in
// Zulip.
import { userName } from "../store/queries.ts";
import { peek } from "../store/store.ts";

export function copyMessages(e: ClipboardEvent): void {
  const selection = getSelection();
  if (!selection || selection.isCollapsed || !e.clipboardData) return;
  if ((e.target as Element).closest?.("input, textarea")) return;
  const rows = [...(e.currentTarget as Element).querySelectorAll<HTMLElement>("[data-message]")];
  const chosen = rows.filter((row) => {
    const content = row.querySelector(".content");
    return content !== null && selection.containsNode(content, true);
  });
  if (chosen.length < 2) return;
  const text: string[] = [];
  const html: string[] = [];
  for (const row of chosen) {
    const m = peek().messages.get(Number(row.dataset.message));
    const content = row.querySelector<HTMLElement>(".content")!;
    if (!m) continue;
    const name = userName(m.sender_id);
    const bold = document.createElement("b");
    bold.textContent = name;
    text.push(`${name}: ${content.innerText.trim()}`);
    html.push(`<p>${bold.outerHTML}:</p>${content.innerHTML}`);
  }
  e.clipboardData.setData("text/plain", text.join("\n"));
  e.clipboardData.setData("text/html", html.join("\n"));
  e.preventDefault();
}
