import { addOverlay } from "../ui/registry.ts";

export function installPeople(): void {
  addOverlay("user", () => import("./profile.tsx").then((m) => m.UserProfile));
  addOverlay("groups", () => import("./groups.tsx").then((m) => m.Groups));
}
