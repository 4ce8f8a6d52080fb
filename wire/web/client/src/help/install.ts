import { ShortcutsWindow } from "../ui/keys.tsx";
import { addOverlay } from "../views/registry.ts";

export function installHelp(): void {
  addOverlay("about-zulip", () => import("./pages.tsx").then((m) => m.About));
  addOverlay("keyboard-shortcuts", () => ShortcutsWindow);
  addOverlay("message-formatting", () => import("./pages.tsx").then((m) => m.Formatting));
  addOverlay("search-operators", () => import("./pages.tsx").then((m) => m.SearchOperators));
}
