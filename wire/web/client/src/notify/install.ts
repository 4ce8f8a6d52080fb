// Notifications, the number on the icon, and the service worker.
import { startBadge } from "./badge.ts";
import { startDesktop } from "./desktop.ts";
import { startWorker } from "./worker.ts";

export function installNotifications(): void {
  startBadge();
  startDesktop();
  startWorker();
}
