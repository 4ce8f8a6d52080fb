// Loaded draws a view of the registry, which may still have to be fetched.
import { useEffect, useState } from "preact/hooks";
import { t } from "../i18n/text.ts";
import type { Route } from "../router.ts";
import type { View, ViewEntry } from "./registry.ts";

export function Loaded({ entry, route }: { entry: ViewEntry | undefined; route: Route }) {
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
  if (!entry) return <p class="empty">{t("There is nothing at this address.")}</p>;
  if (failed) return <p class="empty">{t("This part could not be loaded. Check the network and try again.")}</p>;
  if (view?.entry !== entry) return <p class="empty" aria-busy="true" />;
  return <view.draw route={route} />;
}
