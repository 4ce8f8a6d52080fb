// Moving messages to another topic or channel.
import { useState } from "preact/hooks";
import { errorText } from "../api/client.ts";
import { editMessage, type MessageEdit } from "../api/endpoints.ts";
import type { Message } from "../api/types.ts";
import { t } from "../i18n/text.ts";
import { canMoveChannel, canMoveTopic } from "../store/permissions.ts";
import { topicName } from "../store/queries.ts";
import { peek, read } from "../store/store.ts";
import { closeDialog, Dialog, openDialog, useSubmit } from "../ui/dialogs.tsx";
import { channelIcon } from "../ui/icons.tsx";
import { PlainChoice } from "../forms/fields.tsx";
import { notify } from "../store/notices.ts";

// openMove asks where a message goes, and which others of its topic.
export function openMove(m: Message, mode: Mode = "change_later"): void {
  openDialog(<Move message={m} first={mode} />);
}

type Mode = NonNullable<MessageEdit["propagate_mode"]>;

function Move({ message: m, first }: { message: Message; first: Mode }) {
  const channel = peek().channels.get(m.stream_id!)!;
  const [to, setTo] = useState(m.stream_id!);
  const [topic, setTopic] = useState(m.subject);
  const [mode, setMode] = useState<Mode>(first);
  const [tellOld, setTellOld] = useState(false);
  const [tellNew, setTellNew] = useState(true);
  const [error, setError] = useState("");
  const channels = [...read("subscriptions").keys()].map((id) => read("channels").get(id)!).filter((c) => !c.is_archived);
  const same = to === m.stream_id && topic.trim() === m.subject;
  const [busy, send] = useSubmit();
  const save = async (): Promise<boolean> => {
    const edit: MessageEdit = { propagate_mode: mode, send_notification_to_old_thread: tellOld, send_notification_to_new_thread: tellNew };
    if (to !== m.stream_id) edit.stream_id = to;
    if (topic.trim() !== m.subject) edit.topic = topic.trim();
    try {
      await editMessage(m.id, edit);
      notify(t("Moved."));
      return true;
    } catch (err) {
      setError(errorText(err));
      return false;
    }
  };
  return (
    <Dialog title={t("Move messages")}>
      <form
        class="dialog-text form"
        data-form="move-messages"
        onSubmit={(e) => {
          e.preventDefault();
          send(save);
        }}
      >
        <PlainChoice label={t("Channel")} value={to} disabled={!canMoveChannel(channel)} options={channels.map((c) => ({ value: c.stream_id, label: c.name, icon: channelIcon(c) }))} choose={setTo} />
        <label class="field">
          <span class="field-label">{t("Topic")}</span>
          <input
            class="input"
            value={topic}
            placeholder={topicName("")}
            maxLength={read("realm").max_topic_length}
            disabled={!canMoveTopic(channel) && to === m.stream_id}
            autofocus
            onInput={(e) => setTopic(e.currentTarget.value)}
          />
        </label>
        <PlainChoice<Mode>
          label={t("Messages")}
          value={mode}
          options={[
            { value: "change_one", label: t("Only this message") },
            { value: "change_later", label: t("This and all later messages of the topic") },
            { value: "change_all", label: t("All messages of the topic") },
          ]}
          choose={setMode}
        />
        <label class="field switch">
          <input type="checkbox" checked={tellOld} onChange={(e) => setTellOld(e.currentTarget.checked)} />
          <span>{t("Send automated notice to old topic")}</span>
        </label>
        <label class="field switch">
          <input type="checkbox" checked={tellNew} onChange={(e) => setTellNew(e.currentTarget.checked)} />
          <span>{t("Send automated notice to new topic")}</span>
        </label>
        {error && (
          <p class="send-error" role="alert">
            {error}
          </p>
        )}
        <footer class="dialog-foot">
          <button type="button" class="button quiet" onClick={closeDialog}>
            {t("Cancel")}
          </button>
          <button type="submit" class="button" disabled={same} aria-busy={busy}>
            {t("Move")}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
