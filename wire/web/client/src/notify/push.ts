// Notifications that arrive while no page is open. The push service of the browser's maker delivers them; only the browser
// can read them.
import { signal } from "@preact/signals";
import { request } from "../api/client.ts";
import type { GetUsersMeWebPushAnswer } from "../api/schema.ts";

// pushState says whether this browser is subscribed: "unsupported" where there are no such notifications.
export const pushState = signal<"unsupported" | "off" | "on">("unsupported"); // view state

const ready = () => ("serviceWorker" in navigator && "PushManager" in globalThis ? navigator.serviceWorker.ready : null);

// findPush finds out whether the browser is subscribed. A subscription of another session is made known to the server.
export async function findPush(): Promise<void> {
  const worker = await ready();
  if (!worker) return;
  const subscription = await worker.pushManager.getSubscription();
  pushState.value = subscription ? "on" : "off";
  if (subscription) await register(subscription);
}

// startPush subscribes the browser. It throws if the browser refuses, or the server.
export async function startPush(): Promise<void> {
  const worker = await ready();
  if (!worker) return;
  const { application_server_key: key } = await request<GetUsersMeWebPushAnswer>("/users/me/web_push");
  const subscription = await worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
  await register(subscription);
  pushState.value = "on";
}

// stopPush ends the subscription, first at the server.
export async function stopPush(): Promise<void> {
  const subscription = await (await ready())?.pushManager.getSubscription();
  if (subscription) {
    await request("/users/me/web_push", { method: "DELETE", params: { endpoint: subscription.endpoint } });
    await subscription.unsubscribe();
  }
  pushState.value = "off";
}

// register sends a subscription to the server, which stores it as a device of the user.
function register(subscription: PushSubscription): Promise<unknown> {
  const { keys } = subscription.toJSON();
  return request("/users/me/web_push", {
    method: "POST",
    params: { endpoint: subscription.endpoint, p256dh: keys?.p256dh, auth: keys?.auth },
    repeatable: true,
  });
}

// closeRead closes notifications of messages that the user has read on this or another device.
export async function closeRead(isRead: (id: number) => boolean): Promise<void> {
  if (pushState.peek() !== "on") return;
  const worker = await ready();
  for (const n of (await worker?.getNotifications()) ?? []) {
    const [, id] = /^message (\d+)$/.exec(n.tag) ?? [];
    if (id && isRead(Number(id))) n.close();
  }
}
