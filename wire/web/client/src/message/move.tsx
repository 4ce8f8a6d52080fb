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
import { notify } from "../store/notices.ts";

export function openMove(m: Message): void {
  openDialog(<Move message={m} />);
}

type Mode = NonNullable<MessageEdit["propagate_mode"]>;

function Move({ message: m }: { message: Message }) {
  const channel = peek().channels.get(m.stream_id!)!;
  const [to, setTo] = useState(m.stream_id!);
  const [topic, setTopic] = useState(m.subject);
  const [mode, setMode] = useState<Mode>("change_later");
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
        <label class="field">
          <span class="field-label">{t("Channel")}</span>
          <select class="input" value={to} disabled={!canMoveChannel(channel)} onChange={(e) => setTo(Number(e.currentTarget.value))}>
            {channels.map((c) => (
              <option key={c.stream_id} value={c.stream_id}>
                {c.name}
              </option>
            ))}
          </select>
        </label>
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
        <label class="field">
          <span class="field-label">{t("Messages")}</span>
          <select class="input" value={mode} onChange={(e) => setMode(e.currentTarget.value as Mode)}>
            <option value="change_one">{t("Only this message")}</option>
            <option value="change_later">{t("This and all later messages of the topic")}</option>
            <option value="change_all">{t("All messages of the topic")}</option>
          </select>
        </label>
        <label class="field switch">
          <input type="checkbox" checked={tellOld} onChange={(e) => setTellOld(e.currentTarget.checked)} />
          <span>{t("Leave a notice in the old topic")}</span>
        </label>
        <label class="field switch">
          <input type="checkbox" checked={tellNew} onChange={(e) => setTellNew(e.currentTarget.checked)} />
          <span>{t("Leave a notice in the new topic")}</span>
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
