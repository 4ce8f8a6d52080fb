// The window with the users that reacted to a message. Touch screens do not show the tooltips of reactions.
import type { Message } from "../api/types.ts";
import { t } from "../i18n/text.ts";
import { PersonName } from "../people/card.tsx";
import { read } from "../store/store.ts";
import { Avatar } from "../ui/avatar.tsx";
import { Dialog, openDialog } from "../ui/dialogs.tsx";
import { byEmoji } from "./row.tsx";
import { EmojiGlyph } from "../emoji/glyph.tsx";

export function openReactions(m: Message): void {
  openDialog(<Reactions id={m.id} />);
}

function Reactions({ id }: { id: number }) {
  const lists = byEmoji(read("messages").get(id)?.reactions ?? []);
  return (
    <Dialog title={t("Reactions")}>
      <div class="dialog-text">
        {lists.map((list) => (
          <section key={list[0]!.emoji_name} aria-label={list[0]!.emoji_name}>
            <h3 class="reaction-title">
              <EmojiGlyph emoji={list[0]!} /> {list.length}
            </h3>
            <ul class="people-list">
              {list.map((r) => (
                <li key={r.user_id}>
                  <Avatar id={r.user_id} size={26} />
                  <PersonName id={r.user_id} />
                </li>
              ))}
            </ul>
          </section>
        ))}
        {lists.length === 0 && <p class="quiet">{t("Nobody has reacted to this message.")}</p>}
      </div>
    </Dialog>
  );
}
