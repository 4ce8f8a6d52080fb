// The earlier versions of a message.
import { useEffect, useState } from "preact/hooks";
import { errorText } from "../api/client.ts";
import { getHistory } from "../api/endpoints.ts";
import type { Message, Version } from "../api/types.ts";
import { t } from "../i18n/text.ts";
import { topicName } from "../store/queries.ts";
import { PersonName } from "../people/card.tsx";
import { Dialog, openDialog } from "../ui/dialogs.tsx";
import { formatTime } from "../ui/time.ts";
import { Content } from "../content/content.tsx";

export function openHistory(m: Message): void {
  openDialog(<History message={m} />);
}

function History({ message: m }: { message: Message }) {
  const [list, setList] = useState<Version[] | null>(null);
  const [error, setError] = useState("");
  useEffect(() => {
    getHistory(m.id).then(
      (a) => setList(a.message_history),
      (err: unknown) => setError(errorText(err)),
    );
  }, [m.id]);
  return (
    <Dialog title={t("Edit history")} wide>
      <div class="dialog-text history">
        {error && <p role="alert">{error}</p>}
        {!list && !error && <p aria-busy="true" />}
        {list?.toReversed().map((v, i) => (
          <section key={i}>
            <h3>
              {v.user_id !== null && <PersonName id={v.user_id} />} <time class="quiet">{formatTime(v.timestamp, "full")}</time>
            </h3>
            {v.prev_topic !== undefined && (
              <p class="quiet">{t("Topic changed from {from} to {to}", { from: topicName(v.prev_topic), to: topicName(v.topic) })}</p>
            )}
            {v.prev_stream !== undefined && <p class="quiet">{t("Moved to another channel")}</p>}
            <Content html={v.content_html_diff ?? v.rendered_content} />
          </section>
        ))}
      </div>
    </Dialog>
  );
}
