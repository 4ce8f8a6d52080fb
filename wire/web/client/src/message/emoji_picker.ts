// The emoji picker is loaded when it is first opened.
import { h } from "preact";
import type { EmojiChoice } from "../api/endpoints.ts";
import { closePopover, openPopover } from "../ui/dialogs.tsx";

export function openEmojiPicker(at: Element | DOMRect, choose: (emoji: EmojiChoice) => void): void {
  const place = at instanceof Element ? at.getBoundingClientRect() : at;
  void import("../emoji/picker.tsx").then(({ EmojiPicker }) => {
    const chosen = (e: EmojiChoice): void => {
      closePopover();
      choose(e);
    };
    openPopover(place, h(EmojiPicker, { choose: chosen }));
  });
}
