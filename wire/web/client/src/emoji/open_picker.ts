// The emoji picker is loaded when it is first opened. Until then an empty menu has the focus: letters that the user types
// already must not be shortcuts.
import { h } from "preact";
import type { EmojiChoice } from "../api/types.ts";
import { closePopover, openPopover, popover } from "../ui/dialogs.tsx";
import { notifyNotLoaded } from "../ui/parts.ts";

export function openEmojiPicker(at: Element | DOMRect, choose: (emoji: EmojiChoice) => void): void {
  const wait = h("p", { class: "empty", "aria-busy": true });
  openPopover(at, wait);
  const now = popover.value;
  if (now?.content !== wait) return; // the button of an open picker closes it
  const waits = (): boolean => popover.value === now;
  import("./picker.tsx").then(({ EmojiPicker }) => {
    if (!waits()) return; // the user has closed it
    const chosen = (e: EmojiChoice): void => {
      closePopover();
      choose(e);
    };
    popover.value = { ...now, content: h(EmojiPicker, { choose: chosen }) };
  }, () => {
    if (!waits()) return;
    closePopover();
    notifyNotLoaded();
  });
}
