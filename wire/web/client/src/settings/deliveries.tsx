// The last calls of the service of an outgoing-webhook bot, with the reasons of failures, and a button that tests it.
import { useEffect, useRef, useState } from "preact/hooks";
import * as api from "../api/administration.ts";
import { plural, t } from "../i18n/text.ts";
import { attempt } from "../store/actions.ts";
import { formatTime } from "../ui/time.ts";
import { CopyBox, RowTable } from "../forms/forms.tsx";

const pollPause = 1000; // milliseconds between two looks for the result of a test
const polls = 45; // a service may take three times ten seconds, and the pauses between the attempts

type Answer = Awaited<ReturnType<typeof api.getDeliveries>>;

// statusOf says how a call ended.
function statusOf(d: Answer["deliveries"][number]): string {
  if (d.failure !== null) return d.failure;
  if (d.message_id === null && d.answer !== null) return t("Answered: {text}", { text: d.answer });
  return t("Delivered");
}

export function Deliveries({ bot }: { bot: number }) {
  const [list, setList] = useState<Answer>();
  const [testing, setTesting] = useState(false);
  const open = useRef(true);
  const load = async (): Promise<Answer | undefined> => {
    const a = await attempt(api.getDeliveries(bot));
    if (a && open.current) setList(a);
    return a || undefined;
  };
  useEffect(() => {
    open.current = true;
    void load();
    return () => {
      open.current = false;
    };
  }, [bot]);
  const test = async (): Promise<void> => {
    setTesting(true);
    const made = await attempt(api.testBot(bot));
    for (let i = 0; made && open.current && i < polls; i++) {
      const now = await load();
      if (!now || now.deliveries.some((d) => d.id === made.delivery_id)) break;
      await new Promise((done) => setTimeout(done, pollPause));
    }
    if (open.current) setTesting(false);
  };
  if (!list) return null;
  return (
    <>
      <CopyBox label={t("Secret of the signatures")} text={list.signing_secret} />
      <h3>{t("Last calls")}</h3>
      {list.waiting > 0 && <p class="quiet">{plural(list.waiting, "{count} call is waiting", "{count} calls are waiting")}</p>}
      <RowTable
        label={t("Last calls")}
        rows={list.deliveries}
        name={(d) => formatTime(d.timestamp, "full")}
        empty={t("The service has not been called yet.")}
        columns={[
          { title: t("Time"), cell: (d) => formatTime(d.timestamp, "full") },
          { title: t("Message"), cell: (d) => (d.message_id === null ? t("Test") : <a href={`#narrow/near/${d.message_id}`}>{d.message_id}</a>) },
          { title: t("Attempts"), cell: (d) => d.attempts },
          { title: t("Status"), cell: (d) => d.status_code ?? "–" },
          { title: t("Result"), cell: (d) => statusOf(d) },
        ]}
      />
      <button type="button" class="button quiet" aria-busy={testing} disabled={testing} onClick={() => void test()}>
        {t("Test the service")}
      </button>
    </>
  );
}
