import { addOverlay } from "../ui/registry.ts";
import { ShortcutsWindow } from "./shortcuts.tsx";

export function installHelp(): void {
  addOverlay("about-zulip", () => import("./pages.tsx").then((m) => m.About));
  addOverlay("keyboard-shortcuts", () => ShortcutsWindow);
  addOverlay("message-formatting", () => import("./pages.tsx").then((m) => m.Formatting));
  addOverlay("search-operators", () => import("./pages.tsx").then((m) => m.SearchOperators));
}
