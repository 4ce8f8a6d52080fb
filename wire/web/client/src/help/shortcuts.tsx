// The list of shortcuts: a window, and the same list at the address #keyboard-shortcuts.
import { textTools } from "../editor/tools.tsx";
import { t } from "../i18n/text.ts";
import { closeOverlay } from "../store/router.ts";
import { read } from "../store/store.ts";
import { closeOn, Dialog, openDialog } from "../ui/dialogs.tsx";
import { shortcuts, type Shortcut } from "../ui/keys.ts";

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
    ...textTools.flatMap((x) => (x.key ? [{ keys: [x.key], label: x.label() }] : [])),
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
