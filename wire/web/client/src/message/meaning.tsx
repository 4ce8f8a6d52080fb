// The window of the messages that are nearest in meaning to the words of a search.
import { useEffect, useState } from "preact/hooks";
import { errorText } from "../api/client.ts";
import { searchByMeaning } from "../api/meaning.ts";
import type * as answers from "../api/schema.ts";
import type { Message, Term } from "../api/types.ts";
import { Content } from "../content/content.tsx";
import { t } from "../i18n/text.ts";
import { conversationOfMessage, narrowTo } from "../store/narrow.ts";
import { placeName } from "../store/queries.ts";
import { goTo } from "../store/router.ts";
import { peek } from "../store/store.ts";
import { closeDialog, Dialog, openDialog } from "../ui/dialogs.tsx";
import { formatTime } from "../ui/time.ts";

export function openMeaning(words: string, narrow: Term[]): void {
  openDialog(<Nearest words={words} narrow={narrow} />);
}

function Nearest({ words, narrow }: { words: string; narrow: Term[] }) {
  const [found, setFound] = useState<answers.GetMessagesMeaningAnswer | null>(null);
  const [error, setError] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    searchByMeaning(words, narrow, stop.signal).then(setFound, (err: unknown) => !stop.signal.aborted && setError(errorText(err)));
    return () => stop.abort();
  }, []);
  return (
    <Dialog title={t("Search by meaning")} class="channels">
      <p class="dialog-text quiet" role="status" aria-busy={!found && !error}>
        {error || (!found ? t("Loading…") : found.messages.length === 0 ? t("No messages found") : t("Nearest to “{words}”", { words }))}
        {found && !found.complete && ` ${t("Some messages cannot be found yet.")}`}
      </p>
      {found && found.messages.length > 0 && (
        <ul class="channel-list saved-list" aria-label={t("Messages")}>
          {found.messages.map((m) => (
            <Found key={m.id} message={m} />
          ))}
        </ul>
      )}
    </Dialog>
  );
}

function Found({ message: m }: { message: Message }) {
  const place = conversationOfMessage(m, peek().me.user_id);
  const show = (): void => {
    closeDialog();
    goTo([...narrowTo(place), { operator: "near", operand: m.id }]);
  };
  return (
    <li>
      <div class="grow">
        <strong>{placeName(place)}</strong>
        <small>
          {m.sender_full_name} · {formatTime(m.timestamp, "full")}
        </small>
        <Content html={m.content} />
      </div>
      <button type="button" class="button small quiet" onClick={show}>
        {t("Show the message")}
      </button>
    </li>
  );
}
