// The page of visitors without an account: the messages of web-public channels, to read only. It has no event queue, as
// visitors get none; new messages come when the window is shown again.
import { useSignal } from "@preact/signals";
import { render } from "preact";
import { useEffect } from "preact/hooks";
import { getMessages, registerAsVisitor } from "../api/endpoints.ts";
import { errorText } from "../api/client.ts";
import { withoutNames } from "../api/address.ts";
import type { Message, Term } from "../api/types.ts";
import { Content } from "../content/content.tsx";
import { startTexts } from "../i18n/languages.ts";
import { t } from "../i18n/text.ts";
import { contentClicks } from "../message/clicks.ts";
import { storeMessages } from "../store/lists.ts";
import { hashOf, hashOfChannel, narrowTo, operandOfFirst, resolvedMark } from "../store/narrow.ts";
import { topicName } from "../store/queries.ts";
import { hash, routes } from "../store/router.ts";
import { fromRegister } from "../store/state.ts";
import { change, peek, read, replace } from "../store/store.ts";
import { loadTopics } from "../store/topics.ts";
import { Avatar } from "../ui/avatar.tsx";
import { DialogHost } from "../ui/dialogs.tsx";
import { Icon } from "../ui/icons.tsx";
import { startTheme } from "../ui/theme.ts";
import { dayOf, formatDay, formatTime } from "../ui/time.ts";

const batch = 60; // messages of one request

// startVisitor shows the page.
export async function startVisitor(root: HTMLElement): Promise<void> {
  const language = document.documentElement.lang; // the server has chosen it for the browser
  const state = fromRegister(await registerAsVisitor());
  replace({ ...state, settings: { ...state.settings, default_language: language } });
  await startTexts(() => language);
  startTheme();
  root.replaceChildren();
  render(<Page />, root);
  document.title = peek().realm.realm_name ?? "";
}

// channelsInOrder returns the channels that visitors can read.
function channelsInOrder() {
  return [...read("channels").values()].filter((c) => c.is_web_public && !c.is_archived).sort((a, b) => a.name.localeCompare(b.name));
}

function Page() {
  const realm = read("realm");
  const terms = routes.value.view.terms ?? [];
  const channels = channelsInOrder();
  const named = operandOfFirst(terms, "channel");
  const channel = channels.find((c) => c.stream_id === named) ?? (named === undefined ? channels[0] : undefined);
  const topic = operandOfFirst(terms, "topic");
  return (
    <>
      <div class="app">
        <nav class="left" aria-label={t("Channels and views")}>
          <header class="left-head">
            <img class="realm-icon" src={realm.realm_icon_url} alt="" width={28} height={28} />
            <strong class="grow">{realm.realm_name}</strong>
          </header>
          <div class="left-scroll">
            <ul>
              {channels.map((c) => (
                <li key={c.stream_id}>
                  <ChannelLink id={c.stream_id} name={c.name} current={c === channel && topic === undefined} />
                  {c === channel && <Topics channel={c.stream_id} current={typeof topic === "string" ? topic : null} />}
                </li>
              ))}
            </ul>
          </div>
        </nav>
        <main class="middle" id="main" tabIndex={-1}>
          <header class="view-header">
            <h1 class="view-title grow">
              {channel ? `#${channel.name}` : t("Unknown channel")}
              {typeof topic === "string" && ` › ${topicName(topic)}`}
            </h1>
            <a class="button" href={`/login/${withoutNames(hash.value)}`}>
              {t("Log in")}
            </a>
          </header>
          {channel ? (
            <Messages key={`${channel.stream_id} ${String(topic)}`} channel={channel.stream_id} topic={typeof topic === "string" ? topic : null} />
          ) : (
            <p class="empty">{t("There is no such channel, or you cannot see it.")}</p>
          )}
        </main>
      </div>
      <DialogHost />
    </>
  );
}

function ChannelLink({ id, name, current }: { id: number; name: string; current: boolean }) {
  return (
    <a href={hashOfChannel(id, peek())} class={`side-link ${current ? "current" : ""}`} aria-current={current ? "page" : undefined}>
      <Icon name="globe" size={15} />
      <span class="grow">{name}</span>
    </a>
  );
}

function Topics({ channel, current }: { channel: number; current: string | null }) {
  useEffect(() => void loadTopics(channel), [channel]);
  const list = [...(read("topics").get(channel)?.values() ?? [])].sort((a, b) => b.max_id - a.max_id);
  return (
    <ul class="topics">
      {list.map((x) => {
        const now = x.name.toLowerCase() === current?.toLowerCase();
        return (
          <li key={x.name} class="side-row">
            <a class={`side-link topic ${now ? "current" : ""}`} aria-current={now ? "page" : undefined} href={hashOf(narrowTo({ channel, topic: x.name }), peek())}>
              <span class="grow">{topicName(x.name.replace(resolvedMark, "✔ "))}</span>
            </a>
          </li>
        );
      })}
    </ul>
  );
}

// narrowOf returns the terms of a request. The server gives visitors only messages of web-public channels, and demands
// that they say so.
function narrowOf(channel: number, topic: string | null): Term[] {
  const out: Term[] = [
    { operator: "channels", operand: "web-public" },
    { operator: "channel", operand: channel },
  ];
  return topic === null ? out : [...out, { operator: "topic", operand: topic }];
}

function Messages({ channel, topic }: { channel: number; topic: string | null }) {
  const list = useSignal<Message[]>([]);
  const state = useSignal({ busy: true, oldest: true, error: "" });
  const load = async (older: boolean): Promise<void> => {
    state.value = { ...state.value, busy: true, error: "" };
    try {
      const first = older ? list.value[0] : undefined;
      const a = await getMessages({ anchor: first ? first.id : "newest", before: batch, after: 0, narrow: narrowOf(channel, topic) });
      change((c) => storeMessages(c, a.messages));
      const known = new Set(a.messages.map((m) => m.id));
      // The newest ones may have changed; those that are gone from the stretch were deleted or moved.
      const kept = list.value.filter((m) => !known.has(m.id) && (older ? first && m.id > first.id : m.id < (a.messages[0]?.id ?? 0)));
      list.value = [...a.messages, ...kept].sort((x, y) => x.id - y.id);
      state.value = { busy: false, oldest: older || kept.length === 0 ? a.found_oldest : state.value.oldest, error: "" };
    } catch (err) {
      state.value = { ...state.value, busy: false, error: errorText(err) };
    }
  };
  useEffect(() => {
    void load(false);
    const shown = (): void => void (document.visibilityState === "visible" && load(false));
    document.addEventListener("visibilitychange", shown);
    return () => document.removeEventListener("visibilitychange", shown);
  }, []);
  return (
    <div class="page visitor-messages" tabIndex={0} role="group" aria-label={t("Messages")} aria-busy={state.value.busy} onClick={clicked} onKeyDown={clicked}>
      {state.value.error && <p role="alert">{state.value.error}</p>}
      {!state.value.oldest && (
        <button type="button" class="button quiet" disabled={state.value.busy} onClick={() => void load(true)}>
          {t("Show more")}
        </button>
      )}
      {!state.value.busy && list.value.length === 0 && <p class="empty">{t("There are no messages here yet.")}</p>}
      {list.value.map((m, i) => (
        <Row key={m.id} message={m} before={list.value[i - 1]} withTopic={topic === null} />
      ))}
    </div>
  );
}

// clicked makes spoilers, copy buttons and pictures work. Visitors get no cards of users.
function clicked(e: MouseEvent | KeyboardEvent): void {
  if (!(e.target as HTMLElement).closest(".user-mention, .user-group-mention")) contentClicks(e);
}

function Row({ message: m, before, withTopic }: { message: Message; before: Message | undefined; withTopic: boolean }) {
  const newDay = !before || dayOf(before.timestamp) !== dayOf(m.timestamp);
  const newTopic = withTopic && (newDay || before.subject !== m.subject);
  const name = m.sender_full_name;
  return (
    <>
      {newDay && (
        <div class="day-row" role="separator">
          <span>{formatDay(m.timestamp)}</span>
        </div>
      )}
      {newTopic && (
        <h2 class="conversation-row">
          <a class="topic" href={hashOf(narrowTo({ channel: m.stream_id!, topic: m.subject }), peek())}>
            {topicName(m.subject)}
          </a>
        </h2>
      )}
      <article class="message head" data-message={m.id} aria-label={t("Message from {name}, {time}", { name, time: formatTime(m.timestamp) })}>
        <div class="message-side">
          <Avatar id={m.sender_id} size={36} />
        </div>
        <div class="message-main">
          <header class="message-head">
            <strong>{name}</strong> <time title={formatTime(m.timestamp, "full")}>{formatTime(m.timestamp)}</time>
          </header>
          <Content html={m.content} />
        </div>
      </article>
    </>
  );
}
