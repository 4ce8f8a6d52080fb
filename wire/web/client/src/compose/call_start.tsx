// Starting a call in a room of the server's LiveKit, and the window that rings.
import { useEffect } from "preact/hooks";
import { errorText, request } from "../api/client.ts";
import { serverNow } from "../api/clock.ts";
import type * as answers from "../api/schema.ts";
import type { EventOf } from "../api/types.ts";
import { compose, placeOfBox } from "./state.ts";
import { t } from "../i18n/text.ts";
import { notify } from "../store/notices.ts";
import { read } from "../store/store.ts";
import { Dialog, dialogs, openDialog } from "../ui/dialogs.tsx";

// start starts the call of the conversation in the compose box, or joins the one that it has.
export async function start(): Promise<void> {
  const place = placeOfBox(compose.peek());
  if (!place) {
    notify(t("Choose a conversation first."), "error");
    return;
  }
  const to = "people" in place ? { type: "direct", to: place.people } : { type: "channel", to: place.channel, topic: place.topic };
  try {
    const call: answers.PostCallsLivekitAnswer = await request("/calls/livekit", { method: "POST", params: { ...to, link_text: t("Join video call.") } });
    open(call.path, "_blank", "noopener");
  } catch (err) {
    notify(errorText(err), "error");
  }
}

type Ring = Extract<EventOf<"call">, { op: "ring" }>;

const windows = new Map<string, ReturnType<typeof ringWindow>>(); // view state: by the key of the call

function ringWindow(e: Ring) {
  return <Ringing ring={e} />;
}

// ring opens or ends the window of a call.
export function ring(e: EventOf<"call">): void {
  if (e.op === "ring_end") {
    end(e.call_key);
  } else if (!windows.has(e.call_key) && e.until * 1000 > serverNow()) {
    const shown = ringWindow(e);
    windows.set(e.call_key, shown);
    openDialog(shown);
  }
}

function end(key: string): void {
  const shown = windows.get(key);
  windows.delete(key);
  dialogs.value = dialogs.peek().filter((d) => d !== shown);
}

function Ringing({ ring: e }: { ring: Ring }) {
  const name = read("users").get(e.user_id)?.full_name ?? "";
  const close = () => end(e.call_key);
  useEffect(() => {
    const timer = setTimeout(close, Math.max(0, e.until * 1000 - serverNow()));
    return () => clearTimeout(timer);
  }, []);
  return (
    <Dialog title={t("Video call")} onClose={close}>
      <div class="dialog-text">
        <p role="status">{t("{name} is calling you.", { name })}</p>
      </div>
      <footer class="dialog-foot">
        <button class="button quiet" type="button" onClick={close}>
          {t("Decline")}
        </button>
        <a class="button" href={e.path} target="_blank" rel="noopener" onClick={close}>
          {t("Join")}
        </a>
      </footer>
    </Dialog>
  );
}
