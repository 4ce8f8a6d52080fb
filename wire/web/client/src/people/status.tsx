// The dialog in which users set their own status: an emoji and a short text, which the others see beside the name.
import { useState } from "preact/hooks";
import { setStatus } from "../api/administration.ts";
import { errorText } from "../api/client.ts";
import type { EmojiChoice, UserStatus } from "../api/types.ts";
import { t } from "../i18n/text.ts";
import { openEmojiPicker } from "../emoji/open_picker.ts";
import { EmojiGlyph, emojiOf } from "../emoji/glyph.tsx";
import { peek } from "../store/store.ts";
import { Dialog, openDialog, useSubmit } from "../ui/dialogs.tsx";
import { Icon } from "../ui/icons.tsx";

const maxText = 60; // characters, of the protocol

// usual are texts that are offered, with the emoji of each.
function usual(): { text: string; emoji: EmojiChoice }[] {
  const emoji = (emoji_name: string, emoji_code: string): EmojiChoice => ({ emoji_name, emoji_code, reaction_type: "unicode_emoji" });
  return [
    { text: t("Busy"), emoji: emoji("working_on_it", "1f6e0") },
    { text: t("In a meeting"), emoji: emoji("calendar", "1f4c5") },
    { text: t("Commuting"), emoji: emoji("bus", "1f68c") },
    { text: t("Out sick"), emoji: emoji("hurt", "1f915") },
    { text: t("On vacation"), emoji: emoji("palm_tree", "1f334") },
    { text: t("Working remotely"), emoji: emoji("house", "1f3e0") },
    { text: t("At the office"), emoji: emoji("office", "1f3e2") },
  ];
}

export function openStatus(): void {
  const now = peek().statuses.get(peek().me.user_id);
  openDialog(<StatusDialog now={now ?? {}} />);
}

function StatusDialog({ now }: { now: UserStatus }) {
  const [text, setText] = useState(now.status_text ?? "");
  const [emoji, setEmoji] = useState<EmojiChoice | null>(emojiOf(now));
  const [error, setError] = useState("");
  const [busy, send] = useSubmit();
  const save = (newText: string, newEmoji: EmojiChoice | null): void => {
    send(() =>
      setStatus(newText.trim(), newEmoji).then(
        () => true,
        (err: unknown) => {
          setError(errorText(err));
          return false;
        },
      ),
    );
  };
  return (
    <Dialog title={t("Your status")}>
      <form
        class="dialog-text form"
        data-form="status"
        onSubmit={(e) => {
          e.preventDefault();
          save(text, emoji);
        }}
      >
        <div class="status-field">
          <button type="button" class="icon-button" aria-label={t("Emoji of the status")} title={t("Emoji of the status")} onClick={(e) => openEmojiPicker(e.currentTarget, setEmoji)}>
            {emoji ? <EmojiGlyph emoji={emoji} /> : <Icon name="smile" />}
          </button>
          <input class="input" aria-label={t("Status")} placeholder={t("What are you doing?")} maxLength={maxText} autofocus value={text} onInput={(e) => setText(e.currentTarget.value)} />
          <button
            type="button"
            class="icon-button"
            aria-label={t("Empty the fields")}
            title={t("Empty the fields")}
            onClick={() => {
              setText("");
              setEmoji(null);
            }}
          >
            <Icon name="close" size={16} />
          </button>
        </div>
        <div class="menu status-offers">
          {usual().map((x) => (
            <button
              key={x.text}
              type="button"
              onClick={() => {
                setText(x.text);
                setEmoji(x.emoji);
              }}
            >
              <EmojiGlyph emoji={x.emoji} />
              <span class="grow">{x.text}</span>
            </button>
          ))}
        </div>
        {error && (
          <p class="send-error" role="alert">
            {error}
          </p>
        )}
        <footer class="dialog-foot">
          <button type="button" class="button quiet" disabled={!now.status_text && !now.emoji_name} onClick={() => save("", null)}>
            {t("Clear status")}
          </button>
          <button type="submit" class="button" disabled={!text.trim() && !emoji} aria-busy={busy}>
            {t("Save")}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
