import { getSource } from "../api/endpoints.ts";
import type { Message } from "../api/types.ts";
import { t } from "../i18n/text.ts";
import { attempt } from "../store/actions.ts";
import { conversationOfMessage } from "../store/narrow.ts";
import { isShort } from "../store/people.ts";
import { userName } from "../store/queries.ts";
import { peek } from "../store/store.ts";
import { linkOf } from "../store/router.ts";
import { composeRequest, insertText, newDirect, openCompose } from "./state.ts";

// fence returns a fence that is longer than every one in the text.
function fence(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/^`{3,}/gm)].map((m) => m[0].length));
  return "`".repeat(longest + 1);
}

// mentionText is how a user is mentioned; the id tells users of one name apart.
export function mentionText(id: number, silent = false): string {
  const name = userName(id);
  const same = [...peek().users.values()].filter((u) => u.is_active && u.full_name === name).length > 1;
  return `@${silent ? "_" : ""}**${name}${same || isShort() ? "|" + id : ""}**`; // others can have the name, too
}

// quote opens the compose box with the text of a message as a quotation.
export async function quote(m: Message): Promise<void> {
  openCompose(conversationOfMessage(m, peek().me.user_id));
  await insertQuotation(m);
}

// forward opens the compose box with a quotation for another conversation, which the user chooses.
export async function forward(m: Message): Promise<void> {
  if (m.stream_id) openCompose({ channel: m.stream_id });
  else newDirect();
  await insertQuotation(m);
  composeRequest.value = { focus: m.stream_id ? "topic" : "people" };
}

async function insertQuotation(m: Message): Promise<void> {
  const raw = await attempt(getSource(m.id));
  if (raw === undefined) return;
  const marks = fence(raw);
  const said = t("{name} said", { name: mentionText(m.sender_id, true) });
  insertText(`${said} ([…](${linkOf(m)})):\n${marks}quote\n${raw}\n${marks}\n`);
}
