// The windows of summaries and translations. They show a text while it is written.
import { useEffect, useState } from "preact/hooks";
import { summarize, type Text, translate } from "../api/assist.ts";
import { errorText } from "../api/client.ts";
import type { Message, Term } from "../api/types.ts";
import { Content } from "../content/content.tsx";
import { t } from "../i18n/text.ts";
import { Dialog, openDialog } from "../ui/dialogs.tsx";

type Load = (signal: AbortSignal, show: (text: Text) => void) => Promise<void>;

export function openSummary(terms: Term[]): void {
  openDialog(<Made title={t("Summary")} load={(signal, show) => summarize(terms, signal, show)} />);
}

export function openTranslation(m: Message): void {
  const language = document.documentElement.lang.toLowerCase();
  openDialog(<Made title={t("Translation")} load={(signal, show) => translate(m.id, language, signal, show)} />);
}

// Made shows a text that a service makes. Closing the window stops it.
function Made({ title, load }: { title: string; load: Load }) {
  const [text, setText] = useState<Text>({ html: "", complete: false });
  const [failure, setFailure] = useState("");
  const error = failure || text.error;
  useEffect(() => {
    const stop = new AbortController();
    load(stop.signal, setText).catch((err: unknown) => !stop.signal.aborted && setFailure(errorText(err)));
    return () => stop.abort();
  }, []);
  return (
    <Dialog title={title}>
      <div class="dialog-text">
        {text.html && <Content html={text.html} />}
        {error && (
          <p role="alert">
            {error} {text.html && t("The text is incomplete.")}
          </p>
        )}
        {!text.complete && !error && (
          <p class="quiet" aria-busy="true" role="status">
            {t("The text is being written…")}
          </p>
        )}
        {text.html && <p class="quiet">{t("Made by a machine from what you can read. It may be wrong.")}</p>}
      </div>
    </Dialog>
  );
}
