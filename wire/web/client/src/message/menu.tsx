// The menu of a message.
import { t } from "../i18n/text.ts";
import { getSource } from "../api/endpoints.ts";
import { startEdit } from "./edit.ts";
import { remove, toggleCollapsed, toggleReaction, toggleStar } from "../store/actions.ts";
import { canDelete, canEdit, canMove, canTranslate } from "../store/permissions.ts";
import { peek } from "../store/store.ts";
import { forward, quote } from "../compose/quote.ts";
import { closePopover, Confirm, Menu, openDialog, type MenuItem, type MenuItems } from "../ui/dialogs.tsx";
import { copyText } from "../ui/clipboard.ts";
import { openEmojiPicker } from "../emoji/open_picker.ts";
import type { Message } from "../api/types.ts";
import { openPart } from "../ui/parts.ts";
import { markUnreadFrom } from "./selection.ts";
import { linkOf } from "../store/router.ts";

// moreItems are menu items of other modules, such as reminders and reports.
export const moreItems: ((m: Message) => MenuItem | false)[] = []; // registry

export function MessageMenu({ id }: { id: number }) {
  const m = peek().messages.get(id);
  if (!m) {
    closePopover();
    return null;
  }
  const at = document.querySelector(`[data-message="${id}"]`)?.getBoundingClientRect() ?? new DOMRect(100, 100);
  const starred = m.flags.includes("starred");
  const items: MenuItems = [
    { label: t("Quote and reply"), icon: "quote", key: ">", run: () => quote(m) },
    { label: t("Forward"), icon: "move", key: "<", run: () => forward(m) },
    { label: t("Add a reaction"), icon: "smile", key: ":", run: () => openEmojiPicker(at, (e) => toggleReaction(m, e)) },
    m.reactions.length > 0 && { label: t("See who reacted"), icon: "people", run: () => openPart(import("./reactions.tsx"), (x) => x.openReactions(m)) },
    canEdit(m)
      ? { label: t("Edit"), icon: "edit", key: "e", run: () => startEdit(m) }
      : { label: t("View source"), icon: "code", key: "e", run: () => startEdit(m) },
    canMove(m) && { label: t("Move"), icon: "move", key: "m", run: () => openPart(import("./move.tsx"), (x) => x.openMove(m)) },
    null,
    { label: starred ? t("Remove star") : t("Star"), icon: "star", key: "Ctrl S", run: () => toggleStar(m) },
    { label: t("Mark as unread from here"), icon: "unread", key: "Shift U", run: () => markUnreadFrom(m) },
    { label: m.flags.includes("collapsed") ? t("Show") : t("Collapse"), icon: "up", key: "-", run: () => toggleCollapsed(m) },
    canTranslate() && { label: t("Translate message"), icon: "globe", run: () => openPart(import("./assist.tsx"), (x) => x.openTranslation(m)) },
    ...moreItems.map((make) => make(m)),
    null,
    { label: t("Copy link"), icon: "link", run: () => void copyText(linkOf(m), t("Link copied.")) },
    { label: t("Copy text"), icon: "copy", run: () => void getSource(m.id).then((text) => copyText(text, t("Copied."))) },
    peek().realm.realm_enable_read_receipts && {
      label: t("Read by"),
      icon: "eye",
      key: "Shift V",
      run: () => openPart(import("./receipts.tsx"), (x) => x.openReceipts(m)),
    },
    canDelete(m) && null,
    canDelete(m) && { label: t("Delete"), icon: "trash", danger: true, run: () => askDelete(m) },
  ];
  return <Menu label={t("Message actions")} items={items} />;
}

function askDelete(m: Message): void {
  openDialog(
    <Confirm
      title={t("Delete this message?")}
      text={t("The message disappears for everyone. This cannot be undone.")}
      button={t("Delete")}
      danger
      run={() => remove(m.id)}
    />,
  );
}

