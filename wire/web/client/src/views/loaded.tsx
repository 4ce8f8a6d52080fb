// Loaded draws a view of the registry, which may still have to be fetched.
import { useEffect, useMemo, useState } from "preact/hooks";
import { t } from "../i18n/text.ts";
import { closeOverlay, type Route } from "../store/router.ts";
import { notifyNotLoaded } from "../ui/parts.ts";
import type { View, ViewEntry } from "../ui/registry.ts";

interface LoadedProps {
  entry: ViewEntry | undefined;
  route: Route;
  overlay?: boolean; // a window above the view: while it is fetched, the page stays in its place
}

const loaded = new Map<ViewEntry, View>(); // cache: drawn at once when they are opened again

export function Loaded({ entry, route, overlay }: LoadedProps) {
  const [, drawAgain] = useState(0);
  const [failed, setFailed] = useState(false);
  const got = useMemo(() => entry && (loaded.get(entry) ?? entry.load()), [entry]);
  const Draw = got instanceof Promise ? loaded.get(entry!) : got;
  useEffect(() => {
    setFailed(false);
    if (!(got instanceof Promise)) return;
    let current = true;
    got.then(
      (draw) => {
        loaded.set(entry!, draw);
        if (current) drawAgain((n) => n + 1);
      },
      () => current && setFailed(true),
    );
    return () => void (current = false);
  }, [got]);
  useEffect(() => {
    if (!overlay || !failed) return;
    notifyNotLoaded();
    closeOverlay();
  }, [overlay, failed]);
  if (!entry) return <p class="empty">{t("There is nothing at this address.")}</p>;
  if (Draw) return <Draw route={route} />;
  if (overlay) return <div class="overlay-wait" aria-busy="true" />;
  if (failed) return <p class="empty">{t("This part could not be loaded. Check the network and try again.")}</p>;
  return <p class="empty" aria-busy="true" />;
}
