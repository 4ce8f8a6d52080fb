// Messages that are polls and todo lists.
import { useRef, useState } from "preact/hooks";
import { sendSubmessage } from "../api/widgets.ts";
import type { Message } from "../api/types.ts";
import { t } from "../i18n/text.ts";
import { PersonName } from "../people/card.tsx";
import { messageExtras } from "../message/extras.ts";
import { attempt } from "../store/actions.ts";
import { userName } from "../store/queries.ts";
import { read } from "../store/store.ts";
import { nextIndex, pollOf, todoOf, widgetKind } from "./data.ts";

function send(m: Message, data: Record<string, unknown>): Promise<unknown> {
  return attempt(sendSubmessage(m.id, data));
}

// AddField adds a line to a widget. A text that the server refuses, or that did not arrive, stays in the field.
function AddField({ label, add }: { label: string; add: (text: string) => Promise<unknown> }) {
  const [text, setText] = useState("");
  const sending = useRef(false);
  const submit = (e: Event): void => {
    e.preventDefault();
    if (!text.trim() || sending.current) return;
    sending.current = true;
    void add(text.trim()).then((done) => {
      sending.current = false;
      if (done) setText((now) => (now === text ? "" : now));
    });
  };
  return (
    <form class="widget-add" data-form="add-to-widget" onSubmit={submit}>
      <input class="input" aria-label={label} placeholder={label} maxLength={500} value={text} onInput={(e) => setText(e.currentTarget.value)} />
      <button type="submit" class="button small quiet" disabled={!text.trim()}>
        {t("Add")}
      </button>
    </form>
  );
}

function Poll({ message: m }: { message: Message }) {
  const me = read("me").user_id;
  const poll = pollOf(m.submessages, m.sender_id);
  return (
    <section class="widget" aria-label={t("Poll")}>
      <strong>{poll.question || t("Poll")}</strong>
      <ul>
        {poll.options.map((o) => (
          <li key={o.key}>
            <button
              type="button"
              class={`reaction ${o.votes.has(me) ? "mine" : ""}`}
              aria-pressed={o.votes.has(me)}
              aria-label={t("Vote for {option}: {count}", { option: o.text, count: o.votes.size })}
              onClick={() => void send(m, { type: "vote", key: o.key, vote: o.votes.has(me) ? -1 : 1 })}
            >
              {o.votes.size}
            </button>
            <span dir="auto">{o.text}</span>
            {o.votes.size > 0 && <Voters ids={[...o.votes]} />}
          </li>
        ))}
      </ul>
      <AddField label={t("New option")} add={(option) => send(m, { type: "new_option", idx: nextIndex(m.submessages, me), option })} />
    </section>
  );
}

function Voters({ ids }: { ids: number[] }) {
  const sorted = ids.toSorted((a, b) => userName(a).localeCompare(userName(b)));
  return (
    <small>
      {sorted.map((id, i) => (
        <span key={id}>
          {i > 0 && ", "}
          <PersonName id={id} />
        </span>
      ))}
    </small>
  );
}

function Todo({ message: m }: { message: Message }) {
  const me = read("me").user_id;
  const todo = todoOf(m.submessages, m.sender_id);
  return (
    <section class="widget" aria-label={t("Todo list")}>
      <strong>{todo.title || t("Todo list")}</strong>
      <ul>
        {todo.tasks.map((x) => (
          <li key={x.key}>
            <label>
              <input type="checkbox" checked={x.done} onChange={() => void send(m, { type: "strike", key: x.key })} />{" "}
              {x.done ? <s>{x.text}</s> : x.text}
            </label>
            {x.note && <small>{x.note}</small>}
          </li>
        ))}
      </ul>
      <AddField label={t("New task")} add={(task) => send(m, { type: "new_task", key: nextIndex(m.submessages, me), task, desc: "", completed: false })} />
    </section>
  );
}

export function installWidgets(): void {
  messageExtras.push({ fits: (m) => widgetKind(m.submessages) === "poll", Draw: Poll }, { fits: (m) => widgetKind(m.submessages) === "todo", Draw: Todo });
}
