// The page: three columns, overlays, dialogs, notices, and the banner of a lost connection.
import { effect } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";
import { Compose } from "./compose/compose.tsx";
import { t } from "./i18n/text.ts";
import { FirstMinute } from "./help/hints.tsx";
import { countOnIcon } from "./notify/badge.ts";
import { People } from "./sidebar/people.tsx";
import { Left } from "./sidebar/left.tsx";
import { routes } from "./store/router.ts";
import { pollNow } from "./store/connection.ts";
import { read } from "./store/store.ts";
import { DialogHost } from "./ui/dialogs.tsx";
import { Icon } from "./ui/icons.tsx";
import { closeColumns, covered, leftOpen, peopleFloat, rightOpen } from "./ui/layout.ts";
import { dismiss, notices } from "./store/notices.ts";
import { titleOf } from "./views/header.tsx";
import { Loaded } from "./views/loaded.tsx";
import { overlays, views } from "./ui/registry.ts";

export function App() {
  const { view, overlay } = routes.value;
  useLayoutEffect(() => {
    if (covered.value || peopleFloat.value) document.querySelector<HTMLElement>(leftOpen.value ? ".left" : ".right")?.focus();
  }, [covered.value, peopleFloat.value]);
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        {t("Go to the messages")}
      </a>
      <Banner />
      <div class={`app ${rightOpen.value ? "with-right" : ""}`}>
        <Left />
        {covered.value && <div class="shade" onClick={closeColumns} />}
        <main class="middle" id="main" tabIndex={-1} inert={covered.value}>
          {!view.terms && <FirstMinute />}
          <Loaded entry={views.get(view.name)} route={view} />
          <Compose />
        </main>
        {rightOpen.value && <People />}
      </div>
      {overlay && <Loaded entry={overlays.get(overlay.name)} route={overlay} overlay />}
      <DialogHost />
      <Notices />
    </>
  );
}

function skip(e: Event): void {
  e.preventDefault();
  document.getElementById("main")?.focus();
}

function Banner() {
  if (read("connection") !== "lost") return null;
  return (
    <div class="banner" role="alert">
      {t("No connection to the server. Your messages are kept and sent when it is back.")}
      <button type="button" class="link" onClick={pollNow}>
        {t("Try now")}
      </button>
    </div>
  );
}

function Notices() {
  return (
    <div class="notices" aria-live="polite">
      {notices.value.map((n) => (
        <div key={n.id} class={`notice ${n.kind}`} role={n.kind === "error" ? "alert" : "status"}>
          <span class="grow">{n.text}</span>
          <button type="button" class="icon-button small" aria-label={t("Close")} onClick={() => dismiss(n.id)}>
            <Icon name="close" size={14} />
          </button>
        </div>
      ))}
    </div>
  );
}

const pageNames: Record<string, () => string> = {
  inbox: () => t("Inbox"),
  recent: () => t("Recent conversations"),
  topics: () => t("Topics"),
};

// startTitle keeps the title of the window: the view, the organization, and how many messages are unread.
export function startTitle(): void {
  effect(() => {
    const { view } = routes.value;
    const name = view.terms ? titleOf(view.terms).text : (pageNames[view.name]?.() ?? "");
    const n = countOnIcon();
    const realm = String(read("realm").realm_name ?? "");
    document.title = `${n ? `(${n}) ` : ""}${name}${name && realm ? " – " : ""}${realm}`;
  });
}
