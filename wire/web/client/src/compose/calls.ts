// The button for a video call puts a link to a new room into the text, as other clients of the protocol do. The server
// creates no calls at Jitsi itself: whoever opens the link starts or joins the call. If the server has a LiveKit server, the
// button starts a call there instead.
import { t } from "../i18n/text.ts";
import { allowed } from "../store/permissions.ts";
import { afterEvent, read } from "../store/store.ts";
import { openPart } from "../ui/parts.ts";
import { insert } from "../editor/text_field.ts";
import { textTools } from "../editor/tools.tsx";
import type { RealmValues } from "../store/state.ts";

const jitsi = 1; // video_chat_provider (protocol)

// callServer returns the address of the Jitsi server, or "" if the organization has no calls.
function callServer(realm: RealmValues): string {
  if (realm.realm_video_chat_provider !== jitsi) return "";
  return String(realm.realm_jitsi_server_url || realm.server_jitsi_server_url || "").replace(/\/+$/, "");
}

// callAddress returns the address of a new room. Everyone who knows the address can join, so its 15 digits are drawn
// from the browser's secure source. The fragment tells Jitsi to begin with the camera on.
function callAddress(server: string): string {
  const [high, low] = crypto.getRandomValues(new Uint32Array(2));
  const digits = 10n ** 14n + (((BigInt(high!) << 32n) | BigInt(low!)) % (9n * 10n ** 14n));
  return `${server}/${digits}#config.startWithVideoMuted=false`;
}

// canStart reports whether the user can start calls at the server's LiveKit.
function canStart(): boolean {
  const realm = read("realm");
  return realm.server_calls === true && allowed(realm.realm_can_start_calls_group);
}

export function installCalls(): void {
  const load = () => import("./call_start.tsx");
  textTools.push({
    name: "room",
    label: () => t("Start a video call"),
    icon: "video",
    shown: (area) => canStart() && (area?.classList.contains("compose-text") ?? true),
    run: () => openPart(load(), (m) => m.start()),
  });
  afterEvent((e) => {
    if (e.type === "call") openPart(load(), (m) => m.ring(e));
  });
  textTools.push({
    name: "call",
    label: () => t("Add a video call"),
    icon: "video",
    shown: () => callServer(read("realm")) !== "" && !canStart(),
    run: (area) => insert(area, `[${t("Join video call.")}](${callAddress(callServer(read("realm")))})`),
  });
}
