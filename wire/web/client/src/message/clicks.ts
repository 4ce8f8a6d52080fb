// Clicks, and Enter on focused elements, inside of the texts of messages: mentions, spoilers, copy buttons, images.
import { openUserCard } from "../people/card.tsx";
import { openGroupCard } from "../people/group_card.tsx";
import { selected } from "./selection.ts";
import { t } from "../i18n/text.ts";
import { openPart } from "../ui/parts.ts";

export function contentClicks(e: MouseEvent | KeyboardEvent): void {
  const target = e.target as HTMLElement;
  if (e instanceof KeyboardEvent && (e.key !== "Enter" || target.tagName === "A" || target.tagName === "BUTTON")) return;
  const message = target.closest<HTMLElement>("[data-message]");
  if (message && e instanceof MouseEvent) selected.value = Number(message.dataset.message);
  const mention = target.closest<HTMLElement>(".user-mention");
  if (mention && Number(mention.dataset.userId)) {
    e.preventDefault(); // else Enter presses the first button of the card, which gets the focus
    openUserCard(Number(mention.dataset.userId), mention);
    return;
  }
  const group = target.closest<HTMLElement>(".user-group-mention");
  if (group && Number(group.dataset.userGroupId)) {
    e.preventDefault();
    openGroupCard(Number(group.dataset.userGroupId), group);
    return;
  }
  const spoiler = target.closest<HTMLElement>('[data-action="spoiler"]');
  if (spoiler && !target.closest("a")) toggleSpoiler(spoiler);
  const copy = target.closest<HTMLElement>('[data-action="copy-code"]');
  if (copy) void copyCode(copy);
  const image = target.closest<HTMLAnchorElement>(".message_inline_image a");
  if (image && e instanceof MouseEvent && !e.ctrlKey && !e.metaKey && !e.shiftKey) {
    e.preventDefault();
    openPart(import("./lightbox.tsx"), (x) => x.openLightbox(image));
  }
}

function toggleSpoiler(head: HTMLElement): void {
  const body = head.parentElement?.querySelector<HTMLElement>(".spoiler-content");
  if (!body) return;
  body.hidden = !body.hidden;
  body.setAttribute("aria-hidden", String(body.hidden));
  head.setAttribute("aria-expanded", String(!body.hidden));
}

async function copyCode(button: HTMLElement): Promise<void> {
  const code = button.closest(".codehilite")?.querySelector("code")?.textContent ?? "";
  await navigator.clipboard.writeText(code);
  button.textContent = t("Copied");
  setTimeout(() => (button.textContent = t("Copy")), 1500);
}
