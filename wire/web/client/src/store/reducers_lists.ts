// Reducers of parts that are small tables of the user's own things.
import { replace, unknownOp, type Reducer } from "./reducer.ts";

export const draft: Reducer<"drafts"> = (c, e) => {
  const { drafts } = c.state;
  if (e.op === "add") for (const d of e.drafts) drafts.set(d.id, d);
  else if (e.op === "update") drafts.set(e.draft.id, e.draft);
  else if (e.op === "remove") drafts.delete(e.draft_id);
  else unknownOp(e);
  c.touch("drafts");
};

export const scheduled: Reducer<"scheduled_messages"> = (c, e) => {
  const waiting = c.state.scheduled;
  if (e.op === "add") for (const m of e.scheduled_messages) waiting.set(m.scheduled_message_id, m);
  else if (e.op === "update") waiting.set(e.scheduled_message.scheduled_message_id, e.scheduled_message);
  else if (e.op === "remove") waiting.delete(e.scheduled_message_id);
  else unknownOp(e);
  c.touch("scheduled");
};

export const reminder: Reducer<"reminders"> = (c, e) => {
  const { reminders } = c.state;
  if (e.op === "add") for (const r of e.reminders) reminders.set(r.reminder_id, r);
  else if (e.op === "remove") reminders.delete(e.reminder_id);
  else unknownOp(e);
  c.touch("reminders");
};

export const snippet: Reducer<"saved_snippets"> = (c, e) => {
  const { snippets } = c.state;
  if (e.op === "add" || e.op === "update") snippets.set(e.saved_snippet.id, e.saved_snippet);
  else if (e.op === "remove") snippets.delete(e.saved_snippet_id);
  else unknownOp(e);
  c.touch("snippets");
};

export const attachment: Reducer<"attachment"> = (c, e) => {
  if (e.op !== "add" && e.op !== "update" && e.op !== "remove") unknownOp(e);
  replace(c, "uploadSpaceUsed", e.upload_space_used);
};
