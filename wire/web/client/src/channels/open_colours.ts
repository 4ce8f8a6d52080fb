import { h } from "preact";
import { openPopover } from "../ui/dialogs.tsx";
import { openPart } from "../ui/parts.ts";

// openColours opens the colours for a channel.
export function openColours(at: DOMRect, channel: number): void {
  openPart(import("./colours.tsx"), (m) => openPopover(at, h(m.ColourCard, { channel })));
}
