import { addOverlay } from "../ui/registry.ts";

export function installChannels(): void {
  const load = () => import("./browse.tsx").then((m) => m.Channels);
  addOverlay("channels", load);
  addOverlay("streams", load);
}
