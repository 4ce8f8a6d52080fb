// The tools that open a window for a poll, a list of tasks or a time. Messages that are edited can get a time only.
import { textTools } from "../editor/tools.tsx";
import { t } from "../i18n/text.ts";
import { openPart } from "../ui/parts.ts";

export function installInsert(): void {
  const load = () => import("./insert.tsx");
  textTools.push(
    { name: "time", label: () => t("Time"), icon: "clock", run: (area) => openPart(load(), (m) => m.openTime(area)) },
    { name: "poll", label: () => t("Poll"), icon: "poll", shown: isCompose, run: (area) => openPart(load(), (m) => m.openPoll(area)) },
    { name: "todo", label: () => t("Todo list"), icon: "todo", shown: isCompose, run: (area) => openPart(load(), (m) => m.openTodo(area)) },
  );
}

function isCompose(area: HTMLTextAreaElement | null): boolean {
  return area?.classList.contains("compose-text") ?? true;
}
