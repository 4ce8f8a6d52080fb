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

export const navigation: Reducer<"navigation_view"> = (c, e) => {
  const views = c.state.navigation;
  if (e.op === "add") views.set(e.navigation_view.fragment, e.navigation_view);
  else if (e.op === "update") views.set(e.fragment, { ...views.get(e.fragment)!, ...e.data });
  else if (e.op === "remove") views.delete(e.fragment);
  else unknownOp(e);
  c.touch("navigation");
};

const newDevice = {
  push_key_id: null,
  push_token_id: null,
  pending_push_token_id: null,
  push_token_last_updated_timestamp: null,
  push_registration_error_code: null,
};

export const device: Reducer<"device"> = (c, e) => {
  const id = String(e.device_id);
  if (e.op === "add" || e.op === "update") {
    const { id: _, type: __, op: ___, device_id: ____, ...data } = e;
    c.state.devices.set(id, { ...(c.state.devices.get(id) ?? newDevice), ...data });
  } else if (e.op === "remove") c.state.devices.delete(id);
  else unknownOp(e);
  c.touch("devices");
};

export const attachment: Reducer<"attachment"> = (c, e) => {
  if (e.op !== "add" && e.op !== "update" && e.op !== "remove") unknownOp(e);
  replace(c, "uploadSpaceUsed", e.upload_space_used);
};
