// The compose box at the end of the view.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { effect } from "@preact/signals";
import { changeSetting, renderMarkdown, sendTyping, type Destination } from "../api/endpoints.ts";
import { errorText } from "../api/client.ts";
import { plural, t } from "../i18n/text.ts";
import { Content } from "../content/content.tsx";
import { goTo, routes } from "../store/router.ts";
import { conversationOf, narrowTo, operandOfFirst } from "../store/narrow.ts";
import { send } from "../store/outbox.ts";
import { mayPost, placeName } from "../store/queries.ts";
import { peek, read } from "../store/store.ts";
import { attempt } from "../store/actions.ts";
import { Menu, openPopover, type MenuItems } from "../ui/dialogs.tsx";
import { Icon } from "../ui/icons.tsx";
import { press } from "../ui/keys.ts";
import { notify } from "../store/notices.ts";
import { dataTakers } from "../editor/extras.ts";
import { composePanels, sendChecks, sendOptions, slashCommands } from "./extras.ts";
import { fitHeight } from "../editor/fit_height.ts";
import { ChannelPicker, PeoplePicker, TopicField } from "./target.tsx";
import { closeCompose, compose, composeRequest, isElsewhere, newDirect, openCompose, placeOfBox, placeOfView, retarget, text, writingTo } from "./state.ts";
import { runShortcut, TextTools } from "../editor/tools.tsx";
import { continueList, insert } from "../editor/text_field.ts";
import { useCompletion } from "../editor/completion.tsx";

// Compose is the box, or the bar that opens it. Views without messages have only the open box.
export function Compose() {
  const state = compose.value;
  const { terms } = routes.value.view;
  const channel = terms && operandOfFirst(terms, "channel");
  const hidden = typeof channel === "number" && !read("channels").has(channel);
  const nothing = !state.open && (!terms || hidden);
  const section = useRef<HTMLElement>(null);
  // The column of people is above the box in windows of medium width.
  useEffect(() => {
    const { style } = document.documentElement;
    const el = section.current;
    if (!el) return void style.removeProperty("--compose-height");
    const resized = new ResizeObserver(() => style.setProperty("--compose-height", `${el.offsetHeight}px`));
    resized.observe(el);
    return () => resized.disconnect();
  }, [nothing]);
  if (nothing) return null;
  return (
    <section ref={section} class={`compose ${state.open ? "open" : ""}`} aria-label={t("Write a message")}>
      {state.open ? <Box /> : <ClosedBar />}
    </section>
  );
}

// ClosedBar is the row of buttons that opens the box.
function ClosedBar() {
  const terms = routes.value.view.terms;
  const place = terms ? conversationOf(terms) : null;
  const channel = terms?.find((x) => x.operator === "channel")?.operand;
  const into = typeof channel === "number" ? read("channels").get(channel) : undefined;
  if (into && !mayPost(into)) {
    return <p class="compose-refused">{into.is_archived ? t("The channel is archived.") : t("You are not allowed to post in this channel.")}</p>;
  }
  const open = (): void => {
    if (place) openCompose(place);
    else if (typeof channel === "number") openCompose({ channel });
    else openCompose({ channel: firstChannel() });
  };
  return (
    <div class="compose-closed">
      <button type="button" class="compose-open" onClick={open} aria-keyshortcuts="c">
        {place ? t("Message {place}", { place: placeName(place) }) : t("Write a message")}
      </button>
      <button type="button" class="icon-button" title={t("New direct message")} aria-label={t("New direct message")} onClick={newDirect}>
        <Icon name="person" />
      </button>
    </div>
  );
}

function firstChannel(): number {
  const pinned = [...peek().subscriptions.values()].sort((a, b) => Number(b.pin_to_top) - Number(a.pin_to_top));
  return pinned.find((s) => mayPost(peek().channels.get(s.stream_id)))?.stream_id ?? pinned[0]?.stream_id ?? 0;
}

// destination returns the destination of the message, or the reason why it cannot be sent.
function destination(): Destination | string {
  const c = compose.value;
  if (c.direct) return c.people.length ? { people: c.people } : t("Choose at least one person.");
  const channel = c.channel === null ? undefined : peek().channels.get(c.channel);
  if (!channel) return t("Choose a channel.");
  if (!mayPost(channel)) return t("You are not allowed to post in this channel.");
  const policy = channel.topics_policy === "inherit" ? peek().realm.realm_topics_policy : channel.topics_policy;
  if (policy === "disable_empty_topic" && !c.topic.trim()) return t("A topic is required here.");
  return { channel: channel.stream_id, topic: policy === "empty_topic_only" ? "" : c.topic.trim() };
}

function Box() {
  const state = compose.value;
  const area = useRef<HTMLTextAreaElement>(null);
  const [preview, setPreview] = useState<string | null>(null);
  const [large, setLarge] = useState(false);
  const completion = useCompletion(area);
  const content = text.value;
  const limit = Number(read("realm").max_message_length ?? 10_000);
  const previewArea = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => previewArea.current?.focus(), [preview !== null]);
  useRequests(area);
  useTyping();
  useEffect(() => {
    if (area.current) fitHeight(area.current);
  }, [content, preview]);
  const sent = (to: Destination): void => {
    text.value = "";
    setPreview(null);
    showSent(to);
    area.current?.focus();
  };
  const submit = (): void => {
    const to = destination();
    if (typeof to === "string") return notify(to, "error");
    if (!content.trim()) return;
    const slash = /^\/(\S+)(?:\s+([^]*))?$/.exec(content.trim());
    const command = slash && slashCommands.get(slash[1]!);
    if (command) {
      command(slash[2] ?? "");
      text.value = "";
      return;
    }
    const goOn = (): void => {
      send(to, content);
      sent(to);
    };
    if (sendChecks.every((check) => check(to, content, goOn))) goOn();
  };
  const togglePreview = (): void => {
    if (preview !== null) return setPreview(null);
    renderMarkdown(content).then(
      (a) => setPreview(a.rendered),
      (err: unknown) => notify(errorText(err), "error"),
    );
  };
  const previewKeys = (e: KeyboardEvent): void => {
    if (!(e.altKey && e.code === "KeyP") && e.key !== "Escape") return;
    e.preventDefault();
    e.stopPropagation();
    togglePreview();
    composeRequest.value = { focus: "text" };
  };
  const keys = (e: KeyboardEvent): void => {
    if (completion.keys(e)) return;
    const enterSends = Boolean(peek().settings.enter_sends);
    const modified = e.ctrlKey || e.metaKey;
    if (content === "" && !modified && !e.altKey && !e.shiftKey && leaving.includes(e.key)) {
      e.preventDefault();
      if (e.key !== "ArrowLeft") closeCompose();
      press(e.key);
    } else if (e.key === "Enter" && !e.shiftKey && !isComposing(e) && (enterSends ? !modified : modified)) {
      e.preventDefault();
      submit();
    } else if (e.key === "Escape" || (modified && e.key === "[")) {
      e.preventDefault();
      e.stopPropagation();
      closeCompose();
    } else if (e.altKey && e.code === "KeyP") {
      e.preventDefault();
      togglePreview();
    } else if (runShortcut(e, area.current!)) {
      e.preventDefault();
    } else if (modified && e.key === ".") {
      e.preventDefault();
      const to = destination();
      if (typeof to !== "string") goTo(narrowTo(to));
    } else if (modified && e.key === "Enter" && !isComposing(e)) {
      e.preventDefault();
      insert(area.current!, "\n");
    } else if (e.key === "Enter" && !isComposing(e) && continueList(area.current!)) {
      e.preventDefault();
    } else if (e.key === "Tab" && !e.shiftKey && content.trim()) {
      e.preventDefault();
      area.current!.closest(".compose-box")!.querySelector<HTMLElement>(".send")!.focus();
    }
  };
  const take = (e: Event, data: DataTransfer | null): void => {
    if (data && area.current && dataTakers.some((taker) => taker(data, area.current!))) e.preventDefault();
  };
  const tooLong = [...content].length > limit;
  return (
    <div class={`compose-box ${large ? "large" : ""}`} onDragOver={(e) => e.preventDefault()} onDrop={(e) => take(e, e.dataTransfer)}>
      <Elsewhere />
      <div class="compose-target" onKeyDown={closeKey}>
        {state.direct ? (
          <PeoplePicker />
        ) : (
          <>
            <ChannelPicker />
            <span class="crumb" aria-hidden="true">
              ›
            </span>
            <TopicField />
          </>
        )}
        <button type="button" class="icon-button" title={t("Close")} aria-label={t("Close")} onClick={closeCompose}>
          <Icon name="close" size={16} />
        </button>
      </div>
      {composePanels.map((Panel, i) => (
        <Panel key={i} />
      ))}
      {preview === null ? (
        <div class="compose-area">
          <textarea
            ref={area}
            class="compose-text"
            aria-label={t("Message")}
            placeholder={placeholder()}
            {...completion.aria}
            value={content}
            onInput={(e) => {
              text.value = e.currentTarget.value;
              completion.update();
            }}
            onKeyDown={keys}
            onBlur={() => completion.close()}
            onPaste={(e) => take(e, e.clipboardData)}
          />
          {completion.list}
        </div>
      ) : (
        <div class="compose-preview" tabIndex={0} role="region" aria-label={t("Preview")} ref={previewArea} onKeyDown={previewKeys}>
          <Content html={preview} />
        </div>
      )}
      <div class="compose-tools" role="toolbar" aria-label={t("Formatting")}>
        <TextTools area={area} disabled={preview !== null} />
        {tooLong && (
          <span class="too-long" role="alert">
            {plural([...content].length - limit, "{count} character too long", "{count} characters too long")}
          </span>
        )}
        <button type="button" class={`icon-button ${large ? "pressed" : ""}`} aria-pressed={large} aria-label={t("Expand compose box")} title={t("Expand compose box")} onClick={() => setLarge(!large)}>
          <Icon name="expand" size={17} />
        </button>
        <button type="button" class={`icon-button ${preview !== null ? "pressed" : ""}`} aria-pressed={preview !== null} aria-label={t("Preview")} title={t("Preview")} onClick={togglePreview}>
          <Icon name="eye" size={17} />
        </button>
        <button type="button" class="icon-button" aria-haspopup="menu" aria-label={t("More ways to send")} onClick={(e) => openSendMenu(e.currentTarget, sent)}>
          <Icon name="dots" size={17} />
        </button>
        <button type="button" class="button send" disabled={!content.trim() || tooLong} onClick={submit} title={t("Send")}>
          <Icon name="send" size={16} />
          <span>{t("Send")}</span>
        </button>
      </div>
    </div>
  );
}

// Elsewhere says that the text goes to another conversation than the one that the view shows.
function Elsewhere() {
  const me = read("me").user_id;
  const place = placeOfBox(compose.value);
  const view = placeOfView(routes.value.view.terms);
  if (!writingTo.value || !place || !view || !isElsewhere(place, view, me)) return null;
  const allowed = "people" in view || mayPost(read("channels").get(view.channel));
  const stay = (): void => {
    retarget(view);
    composeRequest.value = { focus: "people" in view || "topic" in view ? "text" : "topic" };
  };
  const leave = (): void => {
    goTo(narrowTo(place));
    composeRequest.value = { focus: "text" };
  };
  return (
    <div class="compose-elsewhere" role="status">
      <span>{t("You are writing to {place}.", { place: placeName(place) })}</span>
      <button type="button" class="button small quiet" onClick={leave}>
        {t("Go to conversation")}
      </button>
      {allowed && (
        <button type="button" class="button small quiet" onClick={stay}>
          {t("Send here instead")}
        </button>
      )}
    </div>
  );
}

function closeKey(e: KeyboardEvent): void {
  if (e.key !== "Escape" || e.defaultPrevented) return;
  e.preventDefault();
  closeCompose();
}

// leaving are the keys that go from the empty box to the messages, as in Zulip. The left one edits the last message.
const leaving = ["ArrowLeft", "ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End"];

function placeholder(): string {
  const to = destination();
  if (typeof to === "string") return t("Write a message");
  return t("Message {place}", { place: placeName(to) });
}

// showSent opens the conversation of a message that was sent from elsewhere, if the user wants that.
function showSent(to: Destination): void {
  if (!peek().settings.web_navigate_to_sent_message) return;
  const now = routes.value.view.terms;
  const here = now && conversationOf(now);
  if (here && !isElsewhere(to, here, peek().me.user_id)) return;
  goTo(narrowTo(to));
}

function openSendMenu(at: HTMLElement, sent: (to: Destination) => void): void {
  const items = sendOptions.map((o) => ({
    label: o.label(),
    icon: o.icon,
    run: () => {
      const to = destination();
      if (typeof to === "string") notify(to, "error");
      else o.run(to, text.value, () => sent(to));
    },
  }));
  const enterSends = Boolean(peek().settings.enter_sends);
  const keys: MenuItems = [
    null,
    { label: t("Enter sends messages"), icon: enterSends ? "check" : undefined, run: () => attempt(changeSetting({ enter_sends: true })) },
    { label: t("Ctrl+Enter sends messages"), icon: enterSends ? undefined : "check", run: () => attempt(changeSetting({ enter_sends: false })) },
  ];
  openPopover(at, <Menu label={t("More ways to send")} items={[...items, ...keys]} />);
}

// isComposing reports whether a key belongs to the input of a composed character. Safari ends the composition before the
// event of the key, whose code then is 229.
function isComposing(e: KeyboardEvent): boolean {
  return e.isComposing || e.keyCode === 229;
}

// useRequests carries out the requests of other parts: to focus a field, or to insert a text. It does that before the next
// key: letters that are pressed before the box has the focus would be shortcuts.
function useRequests(area: { current: HTMLTextAreaElement | null }): void {
  useLayoutEffect(
    () =>
      effect(() => {
        const r = composeRequest.value;
        if (!r) return;
        queueMicrotask(() => {
          composeRequest.value = null;
          const field = r.focus === "text" ? area.current : document.querySelector<HTMLElement>(`[data-compose="${r.focus}"]`);
          (field ?? area.current)?.focus();
          if (r.insert && area.current) insert(area.current, r.insert);
        });
      }),
    [],
  );
}

// useTyping tells others that the user is writing, as often as the server wants.
function useTyping(): void {
  useEffect(() => {
    let told: Destination | null = null;
    let last = -Infinity;
    let pause: ReturnType<typeof setTimeout> | undefined;
    const wanted = (to: Destination): boolean =>
      Boolean(peek().settings["channel" in to ? "send_stream_typing_notifications" : "send_private_typing_notifications"]);
    const stop = (): void => {
      clearTimeout(pause);
      if (told) void sendTyping({ op: "stop", to: told }).catch(() => {});
      told = null;
    };
    let before = text.peek();
    const dispose = effect(() => {
      const now = text.value;
      const grew = now !== before && now !== "";
      before = now;
      if (now === "") stop();
      if (!grew) return;
      const to = destination();
      if (typeof to === "string" || !wanted(to)) return;
      const { realm } = peek();
      if (JSON.stringify(to) !== JSON.stringify(told) || performance.now() - last > (realm.server_typing_started_wait_period_milliseconds ?? Infinity)) {
        if (told && JSON.stringify(to) !== JSON.stringify(told)) stop();
        told = to;
        last = performance.now();
        void sendTyping({ op: "start", to }).catch(() => {});
      }
      clearTimeout(pause);
      pause = setTimeout(stop, realm.server_typing_stopped_wait_period_milliseconds);
    });
    return () => {
      dispose();
      stop();
    };
  }, []);
}
