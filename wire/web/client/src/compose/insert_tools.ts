// The tools that open a window for a poll, a list of tasks, a time or a GIF. Messages that are edited can get a time or a GIF only.
import { textTools } from "../editor/tools.tsx";
import { t } from "../i18n/text.ts";
import { read } from "../store/store.ts";
import { openPart } from "../ui/parts.ts";

export function installInsert(): void {
  const load = () => import("./insert.tsx");
  textTools.push(
    { name: "time", label: () => t("Time"), icon: "clock", run: (area) => openPart(load(), (m) => m.openTime(area)) },
    { name: "poll", label: () => t("Poll"), icon: "poll", shown: isCompose, run: (area) => openPart(load(), (m) => m.openPoll(area)) },
    { name: "gif", label: () => t("GIF"), icon: "gif", shown: hasGifs, run: (area) => openPart(import("./gif_picker.tsx"), (m) => m.openGifs(area)) },
    { name: "todo", label: () => t("Todo list"), icon: "todo", shown: isCompose, run: (area) => openPart(load(), (m) => m.openTodo(area)) },
  );
}

// hasGifs reports whether the operator has chosen a provider of GIFs, and the organization allows them.
function hasGifs(): boolean {
  const realm = read("realm");
  return Boolean(realm.giphy_api_key || realm.klipy_api_key || realm.tenor_api_key) && realm.realm_gif_rating_policy !== 0;
}

function isCompose(area: HTMLTextAreaElement | null): boolean {
  return area?.classList.contains("compose-text") ?? true;
}
