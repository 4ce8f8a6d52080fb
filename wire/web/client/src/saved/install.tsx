import { textTools } from "../editor/tools.tsx";
import { sendOptions } from "../compose/extras.ts";
import { t } from "../i18n/text.ts";
import { moreItems } from "../message/menu.tsx";
import { go } from "../store/router.ts";
import { menuItems } from "../sidebar/main_menu.tsx";
import { openDialog } from "../ui/dialogs.tsx";
import { addOverlay } from "../ui/registry.ts";
import { startDrafts } from "./drafts.ts";
import { openPart } from "../ui/parts.ts";

export function installSaved(): void {
  startDrafts();
  addOverlay("drafts", () => import("./lists.tsx").then((m) => m.Drafts));
  addOverlay("scheduled", () => import("./lists.tsx").then((m) => m.Scheduled));
  addOverlay("reminders", () => import("./lists.tsx").then((m) => m.Reminders));
  menuItems.push(
    () => ({ label: t("Drafts"), icon: "edit", key: "d", run: () => go("#drafts") }),
    () => ({ label: t("Scheduled messages"), icon: "clock", run: () => go("#scheduled") }),
    () => ({ label: t("Reminders"), icon: "bell", run: () => go("#reminders") }),
  );
  textTools.push({
    name: "snippets",
    label: () => t("Snippets"),
    icon: "file",
    key: "Ctrl+'",
    run: (area) => openPart(import("./snippets.tsx"), (m) => openDialog(<m.Snippets area={area} />)),
  });
  sendOptions.push({
    id: "later",
    label: () => t("Send later"),
    icon: "clock",
    run: (to, content, sent) => {
      if (content.trim()) openPart(import("./lists.tsx"), (m) => openDialog(<m.ScheduleDialog to={to} content={content} sent={sent} />));
    },
  });
  moreItems.push((message) => ({
    label: t("Remind me"),
    icon: "bell",
    run: () => openPart(import("./lists.tsx"), (m) => openDialog(<m.RemindDialog message={message} />)),
  }));
}
