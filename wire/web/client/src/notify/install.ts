// Notifications and the number on the icon.
import { startBadge } from "./badge.ts";
import { startDesktop } from "./desktop.ts";

export function installNotifications(): void {
  startBadge();
  startDesktop();
}
