// Windows whose code is fetched when they are first opened.
import { t } from "../i18n/text.ts";
import { notify } from "../store/notices.ts";

let fetching = 0; // in flight

// isFetching reports whether a window is on its way. Keys are for that window then, and no shortcuts of the page.
export function isFetching(): boolean {
  return fetching > 0;
}

// openPart opens a window as soon as its code is here. A notice says if it cannot be fetched.
export function openPart<T>(part: Promise<T>, open: (part: T) => unknown): void {
  fetching++;
  part
    .finally(() => fetching--)
    .then(open, notifyNotLoaded);
}

// notifyNotLoaded shows that a part of the client could not be fetched.
export function notifyNotLoaded(): void {
  notify(t("This part could not be loaded. Check the network and try again."), "error");
}
