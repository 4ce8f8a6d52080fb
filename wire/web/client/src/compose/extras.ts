// Extension points of the compose box. Modules add items to the menu beside the send button, panels above the text, checks
// and commands. Those of its text field are in the folder editor.
import type { ComponentType } from "preact";
import type { Destination } from "../api/endpoints.ts";
import type { IconName } from "../ui/icons.tsx";

interface SendOption {
  id: string;
  label: () => string;
  icon: IconName;
  run(to: Destination, content: string, sent: () => void): void; // sent empties the box
}

export const sendOptions: SendOption[] = []; // registry

// ComposePanel is drawn above the text field, for example a list of uploads.
export const composePanels: ComponentType[] = []; // registry

// SendCheck runs before a message is sent. If it returns false, the message is not sent; it may call goOn later.
type SendCheck = (to: Destination, content: string, goOn: () => void) => boolean;

export const sendChecks: SendCheck[] = []; // registry

// slashCommands are the commands at the beginning of a message that the client carries out itself, such as /dark.
export const slashCommands = new Map<string, (rest: string) => void>(); // registry
