// Loaded draws a view of the registry, which may still have to be fetched.
import { useEffect, useState } from "preact/hooks";
import { t } from "../i18n/text.ts";
import { closeOverlay, type Route } from "../router.ts";
import { notify } from "../ui/notices.ts";
import type { View, ViewEntry } from "./registry.ts";

interface LoadedProps {
  entry: ViewEntry | undefined;
  route: Route;
  overlay?: boolean; // a window above the view: while it is fetched, the page stays in its place
}

export function Loaded({ entry, route, overlay }: LoadedProps) {
  const [view, setView] = useState<{ entry: ViewEntry; draw: View } | null>(null);
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    if (!entry) return;
    setFailed(false);
    const got = entry.load();
    if (got instanceof Promise) {
      got.then(
        (draw) => setView({ entry, draw }),
        () => setFailed(true),
      );
    } else {
      setView({ entry, draw: got });
    }
  }, [entry]);
  useEffect(() => {
    if (!overlay || !failed) return;
    notify(t("This part could not be loaded. Check the network and try again."), "error");
    closeOverlay();
  }, [overlay, failed]);
  const here = view?.entry === entry ? view : null;
  if (!entry) return <p class="empty">{t("There is nothing at this address.")}</p>;
  if (!here && overlay) return <div class="overlay-wait" aria-busy="true" />;
  if (failed) return <p class="empty">{t("This part could not be loaded. Check the network and try again.")}</p>;
  if (!here) return <p class="empty" aria-busy="true" />;
  return <here.draw route={route} />;
}
