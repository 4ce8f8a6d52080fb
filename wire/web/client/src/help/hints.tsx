// Whether the page shows what a user needs in the first minute: first_minute.tsx, which is loaded only then. The server
// stores which hints a user has dismissed, so another device does not show them again.
import { useEffect, useState } from "preact/hooks";
import type { ComponentType } from "preact";
import { read } from "../store/store.ts";

// keysHint and startHint are the hints of the protocol whose dismissal means these: an introduction to the first view,
// and a tour for new users.
export const keysHint = "intro_inbox_view_modal";
export const startHint = "navigation_tour_video";

// needsStart reports whether an owner has not yet invited people or not yet created a channel.
function needsStart(): boolean {
  const me = read("me");
  return me.is_owner && read("hints").includes(startHint) && (!othersExist() || !ownChannelExists());
}

// othersExist reports whether the organization has more than one person.
export function othersExist(): boolean {
  return [...read("users").values()].filter((u) => !u.is_bot && u.is_active).length > 1;
}

// ownChannelExists reports whether the user has created a channel.
export function ownChannelExists(): boolean {
  const me = read("me").user_id;
  return [...read("channels").values()].some((c) => c.creator_id === me);
}

export function FirstMinute() {
  const [part, setPart] = useState<{ Draw: ComponentType<{ start: boolean }> } | null>(null);
  const start = needsStart();
  const wanted = start || read("hints").includes(keysHint);
  useEffect(() => {
    if (wanted && !part) void import("./first_minute.tsx").then((m) => setPart({ Draw: m.Hints })).catch(() => {});
  }, [wanted]);
  return wanted && part ? <part.Draw start={start} /> : null;
}
