// The windows of summaries and translations. They wait for the whole text, because the server checks and keeps it whole.
import { useEffect, useState } from "preact/hooks";
import { summarize, translate } from "../api/assist.ts";
import { errorText } from "../api/client.ts";
import type { Message, Term } from "../api/types.ts";
import { Content } from "../content/content.tsx";
import { t } from "../i18n/text.ts";
import { Dialog, openDialog } from "../ui/dialogs.tsx";

export function openSummary(terms: Term[]): void {
  openDialog(<Made title={t("Summary")} load={(signal) => summarize(terms, signal).then((a) => a.summary)} />);
}

export function openTranslation(m: Message): void {
  const load = (signal: AbortSignal): Promise<string> => translate(m.id, document.documentElement.lang.toLowerCase(), signal).then((a) => a.translation);
  openDialog(<Made title={t("Translation")} load={load} />);
}

// Made shows a text that a service makes. Closing the window ends the request.
function Made({ title, load }: { title: string; load: (signal: AbortSignal) => Promise<string> }) {
  const [html, setHTML] = useState<string | null>(null);
  const [error, setError] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    load(stop.signal).then(setHTML, (err: unknown) => !stop.signal.aborted && setError(errorText(err)));
    return () => stop.abort();
  }, []);
  return (
    <Dialog title={title}>
      <div class="dialog-text">
        {error && <p role="alert">{error}</p>}
        {html === null && !error && (
          <p aria-busy="true" role="status">
            {t("The text is being written…")}
          </p>
        )}
        {html !== null && <Content html={html} />}
        {html !== null && <p class="quiet">{t("Made by a machine from what you can read. It may be wrong.")}</p>}
      </div>
    </Dialog>
  );
}
