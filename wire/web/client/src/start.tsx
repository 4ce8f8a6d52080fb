// The first screen: the client registers, then shows the page. The main views are added here, other parts in modules.ts.
import { MessageView } from "./views/message_view.tsx";
import { render } from "preact";
import { App, startTitle } from "./app.tsx";
import { startTexts } from "./i18n/languages.ts";
import { t } from "./i18n/text.ts";
import { start } from "./store/connection.ts";
import { startOutbox } from "./store/outbox.ts";
import { startPeople } from "./store/people.ts";
import { startPresence } from "./store/presence.ts";
import { startKeys } from "./ui/keys.ts";
import { installShortcuts } from "./shortcuts.ts";
import { startTheme } from "./ui/theme.ts";
import { addView } from "./ui/registry.ts";
import { Inbox } from "./views/inbox.tsx";
import { startEdits } from "./message/edit.ts";
import { startFollowing } from "./views/follow.ts";
import { startVisits } from "./views/visited.ts";
import { modules } from "./modules.ts";
import { read } from "./store/store.ts";

addView("inbox", () => Inbox);
addView("narrow", () => MessageView);
addView("topics", () => import("./views/topics.tsx").then((m) => m.ChannelTopics));
addView("recent", () => import("./views/recent.tsx").then((m) => m.Recent));

async function main(): Promise<void> {
  const root = document.getElementById("app")!;
  startPeople();
  if (document.querySelector('meta[name="visitor"]')) return (await import("./visitor/app.tsx")).startVisitor(root);
  startOutbox();
  await start();
  await startTexts(() => String(read("settings").default_language ?? "en"));
  startTheme();
  for (const install of modules) install();
  startEdits();
  startFollowing();
  startVisits();
  root.replaceChildren();
  render(<App />, root);
  startTitle();
  installShortcuts();
  startKeys();
  startPresence();
}

// run starts the client. If that fails, the page shows the error.
export function run(): void {
  main().catch((err: unknown) => {
    console.error(err);
    const root = document.getElementById("app")!;
    const reason = err instanceof Error ? err.message : String(err);
    root.textContent = t("The page could not be started: {reason}", { reason });
  });
}
