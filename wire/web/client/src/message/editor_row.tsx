import type { Message } from "../api/types.ts";
import { read } from "../store/store.ts";
import { Avatar } from "../ui/avatar.tsx";
import { Editor } from "./editor.tsx";

export function EditorRow({ message: m }: { message: Message }) {
  const sender = read("users").get(m.sender_id);
  return (
    <article class="message head editing" data-message={m.id}>
      <div class="message-side">
        <Avatar id={m.sender_id} size={36} />
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
