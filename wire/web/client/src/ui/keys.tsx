// Keyboard shortcuts: one table, which is also drawn as the help sheet. A shortcut works unless the cursor is in a
// field, a dialog is open, or a modifier is held that it does not name.
import { t } from "../i18n/text.ts";
import { read } from "../store/store.ts";
import { nameOf } from "./key_names.ts";
import { closeOverlay, routes } from "../router.ts";
import { closeOn, Dialog, dialogs, openDialog, popover } from "./dialogs.tsx";
import { isFetching } from "./parts.ts";

export interface Shortcut {
  keys: string[]; // such as "j", "Shift+U", "Ctrl+s", "ArrowDown"
  group: "navigate" | "view" | "message" | "compose" | "lists" | "channels";
  label: () => string;
  run: () => boolean | void; // false: not used, the browser may have the key
  inOverlays?: boolean; // also while a window such as the settings is open
}

const table = new Map<string, Shortcut>();
const shortcuts: Shortcut[] = [];

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
    if (inField(e.target) || dialogs.value.length || popover.value || isFetching()) return;
    const onButton = (e.target as HTMLElement).closest?.("a, button, [role=button]");
    if (onButton && (e.key === "Enter" || e.key === " ")) return;
    if (e.target instanceof HTMLMediaElement && playerKeys.has(e.key)) return;
    const found = table.get(nameOf(e));
    if (!found || (routes.peek().overlay && !found.inOverlays) || found.run() === false) return;
    e.preventDefault();
  });
}

// inLists are the keys of the windows of drafts, scheduled messages and reminders.
const inLists = () => [
  { keys: ["ArrowDown", "ArrowUp"], label: t("Next or previous entry") },
  { keys: ["Enter"], label: t("Edit the entry") },
  { keys: ["Backspace", "Delete"], label: t("Delete the entry") },
];

// inChannels are the keys of the window of channels.
const inChannels = () => [
  { keys: ["ArrowDown", "ArrowUp"], label: t("Next or previous channel") },
  { keys: ["ArrowLeft", "ArrowRight"], label: t("Subscribed or all channels") },
  { keys: ["Shift+V"], label: t("Go to the channel") },
  { keys: ["Shift+S"], label: t("Subscribe or unsubscribe") },
  { keys: ["n"], label: t("New channel") },
];

const groups: [Shortcut["group"], () => string][] = [
  ["navigate", () => t("Moving")],
  ["view", () => t("Views")],
  ["message", () => t("The selected message")],
  ["compose", () => t("Writing")],
  ["lists", () => t("Drafts, scheduled messages and reminders")],
  ["channels", () => t("Channels")],
];

export function openShortcuts(): void {
  openDialog(<Shortcuts />);
}

// ShortcutsWindow is the same list at the address #keyboard-shortcuts.
export function ShortcutsWindow() {
  return <Shortcuts onClose={closeOverlay} />;
}

function Shortcuts({ onClose }: { onClose?: () => void }) {
  const enterSends = Boolean(read("settings").enter_sends);
  const writing = [
    { keys: [enterSends ? "Enter" : "Ctrl+Enter"], label: t("Send") },
    { keys: enterSends ? ["Ctrl+Enter", "Shift+Enter"] : ["Enter", "Shift+Enter"], label: t("New line") },
    { keys: ["Tab"], label: t("To the button that sends") },
    { keys: ["Ctrl+b"], label: t("Bold") },
    { keys: ["Ctrl+i"], label: t("Italic") },
    { keys: ["Ctrl+Shift+l"], label: t("Link") },
    { keys: ["Ctrl+Shift+c"], label: t("Code") },
    { keys: ["Ctrl+'"], label: t("Snippets") },
    { keys: ["Ctrl+Shift+v"], label: t("Paste without formatting") },
    { keys: ["Alt+p"], label: t("Preview") },
    { keys: ["Ctrl+."], label: t("Go to the conversation of the box") },
    { keys: ["Escape"], label: t("Close the box; the text stays") },
  ];
  return (
    <Dialog title={t("Keyboard shortcuts")} wide onClose={onClose} keys={closeOn("?", onClose)}>
      <div class="shortcut-sheet" tabIndex={0} role="region" aria-label={t("Keyboard shortcuts")}>
        {groups.map(([id, title]) => (
          <section key={id}>
            <h3>{title()}</h3>
            <table>
              <tbody>
                {shortcuts
                  .filter((s) => s.group === id)
                  .map((s) => ({ keys: s.keys, label: s.label() }))
                  .concat(id === "compose" ? writing : id === "lists" ? inLists() : id === "channels" ? inChannels() : [])
                  .map((s) => (
                    <tr key={s.keys[0]}>
                      <td>{s.label}</td>
                      <td>
                        {s.keys.map((k) => (
                          <kbd key={k}>{shown(k)}</kbd>
                        ))}
                      </td>
                    </tr>
                  ))}
              </tbody>
            </table>
          </section>
        ))}
      </div>
    </Dialog>
  );
}

function shown(key: string): string {
  return key
    .replace("ArrowDown", "↓")
    .replace("ArrowUp", "↑")
    .replace("ArrowLeft", "←")
    .replace("ArrowRight", "→")
    .replace("Escape", "Esc")
    .replace(/ $/, t("Space"))
    .replace(/\+(\w)$/, (_, c: string) => "+" + c.toUpperCase());
}
