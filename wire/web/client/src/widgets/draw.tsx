// Messages that are polls, todo lists, or have buttons of a bot.
import { useRef, useState } from "preact/hooks";
import { sendSubmessage } from "../api/widgets.ts";
import type { Message } from "../api/types.ts";
import { plural, t } from "../i18n/text.ts";
import { PersonName } from "../people/card.tsx";
import { messageExtras } from "../message/extras.ts";
import { attempt } from "../store/actions.ts";
import { userName } from "../store/queries.ts";
import { read } from "../store/store.ts";
import { conversationOfMessage } from "../store/narrow.ts";
import { send as sendMessage } from "../store/outbox.ts";
import { Icon } from "../ui/icons.tsx";
import { choicesOf, nextIndex, pollOf, todoOf, widgetKind } from "./data.ts";

function send(m: Message, data: Record<string, unknown>): Promise<unknown> {
  return attempt(sendSubmessage(m.id, data));
}

// AddField adds a line to a widget. A text that the server refuses, or that did not arrive, stays in the field.
function AddField({ label, add, first = "", button }: { label: string; add: (text: string) => Promise<unknown>; first?: string; button?: string }) {
  const [text, setText] = useState(first);
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
        {button ?? t("Add")}
      </button>
    </form>
  );
}

function Poll({ message: m }: { message: Message }) {
  const me = read("me").user_id;
  const poll = pollOf(m.submessages, m.sender_id);
  const voters = new Set(poll.options.flatMap((o) => [...o.votes]));
  const most = Math.max(1, ...poll.options.map((o) => o.votes.size));
  return (
    <section class="widget" aria-label={t("Poll")}>
      <Title text={poll.question} empty={t("Poll")} label={t("Question")} edit={m.sender_id === me ? (question) => send(m, { type: "question", question }) : undefined} />
      <ul>
        {poll.options.map((o) => (
          <li key={o.key} class={`poll-option ${o.votes.has(me) ? "mine" : ""}`}>
            <button
              type="button"
              class="poll-vote"
              aria-pressed={o.votes.has(me)}
              onClick={() => void send(m, { type: "vote", key: o.key, vote: o.votes.has(me) ? -1 : 1 })}
            >
              <span class="poll-bar" style={{ width: `${(o.votes.size / most) * 100}%` }} />
              <span class="poll-text" dir="auto">
                {o.votes.has(me) && <Icon name="check" size={14} />} {o.text}
              </span>{" "}
              <span class="poll-share">
                {plural(o.votes.size, "{count} vote", "{count} votes")} {voters.size > 0 && <small>{Math.round((o.votes.size / voters.size) * 100)} %</small>}
              </span>
            </button>
            {o.votes.size > 0 && <Voters ids={[...o.votes]} />}
          </li>
        ))}
      </ul>
      <AddField label={t("New option")} add={(option) => send(m, { type: "new_option", idx: nextIndex(m.submessages, me), option })} />
      <p class="quiet widget-foot">{plural(voters.size, "{count} person has voted.", "{count} people have voted.")}</p>
    </section>
  );
}

// Title is the heading of a widget. The author can change it.
function Title(p: { text: string; empty: string; label: string; edit?: (text: string) => Promise<unknown> }) {
  const [editing, setEditing] = useState(false);
  return (
    <div class="widget-head">
      {editing ? (
        <AddField label={p.label} first={p.text} button={t("Save")} add={(text) => p.edit!(text).then((done) => (setEditing(false), done))} />
      ) : (
        <>
          <strong dir="auto">{p.text || p.empty}</strong>
          {p.edit && (
            <button type="button" class="icon-button small" aria-label={t("Edit: {name}", { name: p.label })} title={t("Edit")} onClick={() => setEditing(true)}>
              <Icon name="edit" size={14} />
            </button>
          )}
        </>
      )}
    </div>
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
  const done = todo.tasks.filter((x) => x.done).length;
  return (
    <section class="widget" aria-label={t("Todo list")}>
      <Title text={todo.title} empty={t("Todo list")} label={t("Title")} edit={m.sender_id === me ? (title) => send(m, { type: "new_task_list_title", title }) : undefined} />
      {todo.tasks.length > 0 && (
        <div class="todo-progress">
          <span class="poll-bar" style={{ width: `${(done / todo.tasks.length) * 100}%` }} />
          <span>{t("{done} of {count} done", { done, count: todo.tasks.length })}</span>
        </div>
      )}
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

// Choices are the buttons that a bot offers below its message: each sends a reply to the same conversation.
function Choices({ message: m }: { message: Message }) {
  const form = choicesOf(m.submessages);
  const place = conversationOfMessage(m, read("me").user_id);
  return (
    <section class="widget" aria-label={form.heading || t("Choices")}>
      {form.heading && <strong dir="auto">{form.heading}</strong>}
      <ul>
        {form.choices.map((x) => (
          <li key={x.short + x.reply}>
            <button type="button" class="button small quiet" title={t("Send: {text}", { text: x.reply })} onClick={() => void sendMessage(place, x.reply)}>
              {x.short && <strong>{x.short}</strong>} {x.long}
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

export function installWidgets(): void {
  messageExtras.push(
    { fits: (m) => widgetKind(m.submessages) === "zform", Draw: Choices },
    { fits: (m) => widgetKind(m.submessages) === "poll", Draw: Poll },
    { fits: (m) => widgetKind(m.submessages) === "todo", Draw: Todo },
  );
}
