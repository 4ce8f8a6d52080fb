// Keyboard shortcuts: one table, from which the list of shortcuts in the help is drawn, too. A shortcut works unless the cursor is in a
// field, a dialog is open, or a modifier is held that it does not name.
import { nameOf } from "./key_names.ts";
import { routes } from "../store/router.ts";
import { dialogs, popover } from "./dialogs.tsx";
import { isFetching } from "./parts.ts";

export interface Shortcut {
  keys: string[]; // such as "j", "Shift+U", "Ctrl+s", "ArrowDown"
  group: "navigate" | "view" | "message" | "compose" | "lists" | "channels";
  label: () => string;
  run: () => boolean | void; // false: not used, the browser may have the key
  inOverlays?: boolean; // also while a window such as the settings is open
  inFields?: string[]; // the keys that work also while the cursor is in a field
}

const table = new Map<string, Shortcut>(); // registry
export const shortcuts: Shortcut[] = []; // registry

// addShortcuts adds lines to the table. A later line replaces an earlier one with the same key.
export function addShortcuts(...list: Shortcut[]): void {
  for (const s of list) {
    shortcuts.push(s);
    for (const k of s.keys) table.set(k, s);
  }
}

function inField(target: EventTarget | null): boolean {
  const el = target as HTMLElement | null;
  return !!el?.closest?.("input, textarea, select, [contenteditable]");
}

// leaveField takes the focus from a field. A filter is emptied: the browser would do that without telling its component.
function leaveField(el: HTMLElement): void {
  if (el instanceof HTMLInputElement && el.type === "search" && el.value) {
    el.value = "";
    el.dispatchEvent(new Event("input", { bubbles: true }));
  }
  el.blur();
}

// playerKeys are those that a sound or video with the focus uses.
const playerKeys = new Set([" ", "Enter", "ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"]);

// press runs a shortcut by its name, such as "ArrowUp".
export function press(name: string): void {
  table.get(name)?.run();
}

export function startKeys(): void {
  addEventListener("keydown", (e) => {
    if (e.defaultPrevented || e.isComposing) return;
    if ((e.key === "Escape" || nameOf(e) === "Ctrl+[") && inField(e.target) && !dialogs.value.length) {
      leaveField(e.target as HTMLElement);
      return;
    }
    if (dialogs.value.length || popover.value || isFetching()) return;
    const found = table.get(nameOf(e));
    if (inField(e.target) && !found?.inFields?.includes(nameOf(e))) return;
    const onButton = (e.target as HTMLElement).closest?.("a, button, [role=button]");
    if (onButton && (e.key === "Enter" || e.key === " ")) return;
    if (e.target instanceof HTMLMediaElement && playerKeys.has(e.key)) return;
    if (!found || (routes.peek().overlay && !found.inOverlays) || found.run() === false) return;
    e.preventDefault();
  });
}
