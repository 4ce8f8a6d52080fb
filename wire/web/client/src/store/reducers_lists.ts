// Reducers of parts that are small tables of the user's own things.
import type { ServerEvent } from "../api/types.ts";
import { expectOp, unknownOp } from "./ops.ts";
import type { Reducer } from "./reducers.ts";
import type { Change, Part } from "./state.ts";

// replacePart returns a reducer that replaces a part with a member of the event.
export function replacePart(part: Part, member: string): Reducer {
  return (c, e) => {
    (c.state as unknown as Record<string, unknown>)[part] = e[member];
    c.touch(part);
  };
}

// replaceValues returns a reducer for a value of the organization that the event carries as "value".
export function replaceValues(name: string): Reducer {
  return (c, e) => {
    c.state.realm[name] = e.value;
    c.touch("realm");
  };
}

// Table has the names of the members in the events of a table.
interface Table {
  part: Part;
  key: string; // member of an object with its id
  added: string; // member of an add event: an object or a list
  updated: string; // member of an update event
  removed: string; // member of a remove event: the id
}

function table(t: Table): Reducer {
  return (c, e) => {
    const map = c.state[t.part] as Map<unknown, Record<string, unknown>>;
    if (e.op === "add") {
      for (const o of [e[t.added]].flat()) map.set(o[t.key], o);
    } else if (e.op === "update" || e.op === "change") {
      const o = e[t.updated];
      map.set(o[t.key], { ...map.get(o[t.key]), ...o });
    } else if (e.op === "remove") {
      map.delete(e[t.removed]);
    } else {
      unknownOp(e);
    }
    c.touch(t.part);
  };
}

export const draft = table({ part: "drafts", key: "id", added: "drafts", updated: "draft", removed: "draft_id" });

export const scheduled = table({
  part: "scheduled",
  key: "scheduled_message_id",
  added: "scheduled_messages",
  updated: "scheduled_message",
  removed: "scheduled_message_id",
});

export const reminder = table({
  part: "reminders",
  key: "reminder_id",
  added: "reminders",
  updated: "reminder",
  removed: "reminder_id",
});

export const snippet = table({
  part: "snippets",
  key: "id",
  added: "saved_snippet",
  updated: "saved_snippet",
  removed: "saved_snippet_id",
});

export function navigation(c: Change, e: ServerEvent): void {
  expectOp(e, "add", "update", "remove");
  const views = c.state.navigation;
  if (e.op === "add") views.set(e.navigation_view.fragment, e.navigation_view);
  if (e.op === "update") views.set(e.fragment, { ...views.get(e.fragment), ...e.data });
  if (e.op === "remove") views.delete(e.fragment);
  c.touch("navigation");
}

export function device(c: Change, e: ServerEvent): void {
  expectOp(e, "add", "update", "remove");
  const id = String(e.device_id);
  const { id: _, type: __, op, device_id: ___, ...data } = e;
  if (op === "remove") {
    c.state.devices.delete(id);
  } else {
    const empty = {
      push_key_id: null,
      push_token_id: null,
      pending_push_token_id: null,
      push_token_last_updated_timestamp: null,
      push_registration_error_code: null,
    };
    c.state.devices.set(id, { ...(c.state.devices.get(id) ?? empty), ...data });
  }
  c.touch("devices");
}

export function attachment(c: Change, e: ServerEvent): void {
  expectOp(e, "add", "update", "remove");
  c.state.uploadSpaceUsed = e.upload_space_used;
  c.touch("uploadSpaceUsed");
  if (!c.state.attachments) return;
  if (e.op === "remove") c.state.attachments.delete(e.attachment.id);
  else c.state.attachments.set(e.attachment.id, e.attachment);
  c.touch("attachments");
}
