// The number of unread messages on the icon of the page, and on that of the installed app.
import { effect } from "@preact/signals";
import { peek, read } from "../store/store.ts";
import { badgeCount } from "./reasons.ts";

const size = 64; // pixels of the drawn icon

// badgeText is the text on the icon: it has room for two digits.
function badgeText(n: number): string {
  return n > 99 ? "99+" : String(n);
}

// countOnIcon returns the number of messages on the icon and in the title, and follows it.
export function countOnIcon(): number {
  for (const part of ["unread", "settings", "subscriptions", "topicPolicies"] as const) void read(part);
  return badgeCount(peek());
}

// startBadge draws the icon again when the number changes.
export function startBadge(): void {
  const link = document.querySelector<HTMLLinkElement>("link[rel=icon]");
  if (!link) return;
  const plain = link.href;
  const picture = new Image();
  let shown = 0;
  let wanted = 0;
  const draw = (): void => {
    if (wanted === shown || (wanted > 0 && !picture.complete)) return;
    shown = wanted;
    link.dataset.count = String(wanted);
    link.href = wanted > 0 ? withBadge(picture, badgeText(wanted)) || plain : plain;
  };
  picture.onload = draw;
  picture.src = plain;
  effect(() => {
    wanted = countOnIcon();
    draw();
    const app = navigator as Navigator & { setAppBadge?: (n: number) => Promise<void> };
    void app.setAppBadge?.(wanted).catch(() => {});
  });
}

// withBadge returns the icon with a text in its corner as a data: address, or "" where the browser cannot draw.
function withBadge(picture: HTMLImageElement, text: string): string {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = size;
  const c = canvas.getContext("2d");
  if (!c) return "";
  c.drawImage(picture, 0, 0, size, size);
  const height = 38;
  const width = Math.max(height, 16 + 18 * text.length);
  c.fillStyle = "#c01c28";
  c.beginPath();
  c.roundRect(size - width, size - height, width, height, height / 2);
  c.fill();
  c.fillStyle = "#ffffff";
  c.font = "bold 30px sans-serif";
  c.textAlign = "center";
  c.textBaseline = "middle";
  c.fillText(text, size - width / 2, size - height / 2 + 2);
  return canvas.toDataURL("image/png");
}
