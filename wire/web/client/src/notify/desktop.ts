// Notifications on the desktop and sounds for new messages, as the user's settings ask for them.
import { effect, signal } from "@preact/signals";
import type { Message } from "../api/types.ts";
import { t } from "../i18n/text.ts";
import { goTo, routes } from "../store/router.ts";
import { conversationOf, conversationOfMessage, narrowTo, placeKey } from "../store/narrow.ts";
import { topicName } from "../store/queries.ts";
import { afterEvent, peek, read } from "../store/store.ts";
import { closeRead } from "./push.ts";
import { playSound } from "./sounds.ts";
import { notificationKinds } from "./reasons.ts";

const maxText = 200; // characters of a message in a notification
const maxOpen = 20; // notifications that are open at once; the oldest is closed

// permission is view state, the answer of the browser: "unsupported" where it has no notifications.
export const permission = signal<NotificationPermission | "unsupported">(
  typeof Notification === "undefined" ? "unsupported" : Notification.permission,
);

// askPermission lets the browser ask the user. It must be called when the user presses a button.
export async function askPermission(): Promise<void> {
  permission.value = await Notification.requestPermission();
}

const open = new Map<string, { id: number; notification: Notification }>(); // view state: the newest one of each conversation

// startDesktop shows and closes notifications until the page ends.
export function startDesktop(): void {
  afterEvent((e) => {
    if (e.type === "message") arrived({ ...e.message, flags: e.flags });
  });
  effect(() => {
    const { places } = read("unread");
    for (const { id, notification } of [...open.values()]) if (!places.has(id)) notification.close();
    // A notification can come before the event of its message: the message must be known, and be read when it is asked.
    void closeRead((id) => peek().messages.has(id) && !peek().unread.places.has(id));
  });
}

function arrived(m: Message): void {
  const s = peek();
  if (!s.messages.has(m.id)) return;
  const kinds = notificationKinds(s, m);
  const key = placeKey(conversationOfMessage(m, s.me.user_id), s.me.user_id);
  if (document.hasFocus() && key === shownPlace()) return;
  if (kinds.sound) playSound(String(s.settings.notification_sound ?? "zulip"));
  if (kinds.desktop && permission.value === "granted") show(m, key);
}

// shownPlace returns the key of the conversation on the screen, or "".
function shownPlace(): string {
  const { view, overlay } = routes.peek();
  const place = !overlay && view.terms ? conversationOf(view.terms) : null;
  return place ? placeKey(place, peek().me.user_id) : "";
}

function titleOfMessage(m: Message): string {
  if (m.type === "private") return m.sender_full_name;
  const channel = peek().channels.get(m.stream_id!)?.name ?? "";
  return t("{name} (#{channel} > {topic})", { name: m.sender_full_name, channel, topic: topicName(m.subject) });
}

// textOfMessage returns the text of a message without markup. Spoilers stay closed.
function textOfMessage(m: Message): string {
  if (m.type === "private" && peek().settings.pm_content_in_desktop_notifications === false) return t("New direct message");
  const doc = new DOMParser().parseFromString(m.content, "text/html");
  for (const el of doc.querySelectorAll(".spoiler-content")) el.textContent = "(…)";
  for (const el of doc.querySelectorAll(".katex-mathml")) el.remove();
  const text = (doc.body.textContent ?? "").trim().replace(/\s+/g, " ");
  if (text === "" && doc.querySelector("img")) return t("(image)");
  return text.length > maxText ? `${text.slice(0, maxText)}…` : text;
}

function show(m: Message, key: string): void {
  open.get(key)?.notification.close();
  const options: NotificationOptions = { body: textOfMessage(m), tag: key, silent: true, icon: m.avatar_url ?? undefined };
  let notification: Notification;
  try {
    notification = new Notification(titleOfMessage(m), options);
  } catch {
    // Browsers of phones show notifications only through the service worker.
    const data = { hash: `#narrow/id/${m.id}` };
    void navigator.serviceWorker?.ready.then((r) => r.showNotification(titleOfMessage(m), { ...options, data }));
    return;
  }
  notification.onclick = () => {
    focus();
    goTo([...narrowTo(conversationOfMessage(m, peek().me.user_id)), { operator: "near", operand: m.id }]);
    notification.close();
  };
  notification.onclose = () => {
    if (open.get(key)?.notification === notification) open.delete(key);
  };
  open.set(key, { id: m.id, notification });
  if (open.size > maxOpen) open.values().next().value?.notification.close();
}
