import type { Message } from "../api/types.ts";
import { avatarOf } from "../store/queries.ts";
import { read } from "../store/store.ts";
import { Editor } from "./editor.tsx";

export function EditorRow({ message: m }: { message: Message }) {
  const sender = read("users").get(m.sender_id);
  return (
    <article class="message head editing" data-message={m.id}>
      <div class="message-side">
        <img class="avatar" src={avatarOf(sender)} alt="" width={36} height={36} />
      </div>
      <div class="message-main">
        <header class="message-head">
          <span class="sender">{sender?.full_name ?? m.sender_full_name}</span>
        </header>
        <Editor message={m} />
      </div>
    </article>
  );
}
