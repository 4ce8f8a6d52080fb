// Notifications, the number on the icon, and the service worker.
import { startBadge } from "./badge.ts";
import { startDesktop } from "./desktop.ts";
import { findPush } from "./push.ts";
import { startWorker } from "./worker.ts";

export function installNotifications(): void {
  startBadge();
  startDesktop();
  startWorker();
  void findPush().catch((err: unknown) => console.info("no notifications while the page is closed", err));
}
