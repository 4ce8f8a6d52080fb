// Messages with something else than their text: polls and todo lists draw themselves. A module adds its kind:
//
//   messageExtras.push({ fits: (m) => m.submessages.length > 0, Draw: Poll })
import type { ComponentType } from "preact";
import type { Message } from "../api/types.ts";

interface MessageExtra {
  fits(m: Message): boolean;
  Draw: ComponentType<{ message: Message }>;
}

export const messageExtras: MessageExtra[] = []; // registry
