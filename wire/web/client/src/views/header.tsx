// The line above a view: its title and its actions.
import type { Term } from "../api/types.ts";
import { t } from "../i18n/text.ts";
import { go, goTo } from "../store/router.ts";
import { markNarrow } from "../store/actions.ts";
import { hashOfChannel, hashOfTopics, narrowTo, operandOfFirst, resolvedMark, withoutPosition } from "../store/narrow.ts";
import { canResolve } from "../store/permissions.ts";
import { toggleResolved } from "../store/resolve.ts";
import { topicName, userName, userNames } from "../store/queries.ts";
import { peek, read } from "../store/store.ts";
import { leftOpen, rightOpen } from "../ui/layout.ts";
import { Menu, openPopover, type MenuItems } from "../ui/dialogs.tsx";
import { channelIcon, Icon, type IconName } from "../ui/icons.tsx";
import { notify } from "../store/notices.ts";
import { jumpToUnread } from "./message_view.tsx";
import { SearchField } from "./search_field.tsx";
import { searchText } from "./search_text.ts";
import { TopicPolicyButton } from "../channels/topic_policy.tsx";

// titleOf returns the icon and the name of a narrow. The title of the window has the same name.
export function titleOf(terms: Term[]): { icon: IconName; text: string } {
  const channel = operandOfFirst(terms, "channel");
  const topic = operandOfFirst(terms, "topic");
  const dm = operandOfFirst(terms, "dm");
  const rest = withoutPosition(terms);
  if (rest.length === 0) return { icon: "feed", text: t("All messages") };
  if (channel !== undefined && rest.length === (topic === undefined ? 1 : 2)) {
    const c = typeof channel === "number" ? read("channels").get(channel) : undefined;
    const name = c?.name ?? (typeof channel === "number" ? t("Unknown channel") : String(channel));
    return { icon: channelIcon(c), text: typeof topic === "string" ? `${name} › ${topicName(topic)}` : name };
  }
  if (Array.isArray(dm) && rest.length === 1) return { icon: "message", text: userNames(dm) };
  if (rest.length === 1) {
    const { operator, operand } = rest[0]!;
    if (operator === "in" && operand === "home") return { icon: "feed", text: t("Combined feed") };
    if (operator === "is" && operand === "mentioned") return { icon: "at", text: t("Mentions") };
    if (operator === "is" && operand === "starred") return { icon: "star", text: t("Starred messages") };
    if (operator === "is" && operand === "dm") return { icon: "message", text: t("Direct messages") };
    if (operator === "is" && operand === "unread") return { icon: "unread", text: t("Unread messages") };
    if (operator === "is" && operand === "followed") return { icon: "follow", text: t("Followed topics") };
    if (operator === "sender") return { icon: "person", text: t("Messages from {name}", { name: userName(Number(operand)) }) };
    if (operator === "has" && operand === "reaction") return { icon: "smile", text: t("Messages with reactions") };
  }
  return { icon: "search", text: searchText(rest) };
}

export function ViewHeader({ terms }: { terms: Term[] }) {
  const { icon, text } = titleOf(terms);
  const channel = operandOfFirst(terms, "channel");
  const topic = operandOfFirst(terms, "topic");
  const c = typeof channel === "number" ? read("channels").get(channel) : undefined;
  const color = typeof channel === "number" ? read("subscriptions").get(channel)?.color : undefined;
  return (
    <Header>
      <span class="view-icon" style={color ? { color } : undefined}>
        <Icon name={icon} size={18} />
      </span>
      {c && icon !== "search" ? (
        <h1 class="view-title">
          <a href={hashOfChannel(c.stream_id, peek())}>{c.name}</a>
          {typeof topic === "string" && (
            <>
              <span class="crumb" aria-hidden="true">
                ›
              </span>
              <TopicTitle channel={c.stream_id} topic={topic} />
            </>
          )}
        </h1>
      ) : (
        <h1 class="view-title">{text}</h1>
      )}
      {c && icon !== "search" && typeof topic !== "string" && c.rendered_description && (
        <span class="view-note" title={c.description}>
          {c.description}
        </span>
      )}
      {c && !read("subscriptions").has(c.stream_id) && !c.is_archived && (
        <a class="button small" href={`#channels/${c.stream_id}`}>
          {t("Not subscribed")}
        </a>
      )}
      {typeof topic === "string" && c && <TopicTools channel={c.stream_id} topic={topic} />}
      {terms.length > 0 && (
        <button
          type="button"
          class="icon-button"
          aria-haspopup="menu"
          aria-label={t("Actions of this view")}
          onClick={(e) => openPopover(e.currentTarget, <ViewMenu terms={terms} />)}
        >
          <Icon name="dots" />
        </button>
      )}
    </Header>
  );
}

function TopicTitle({ channel, topic }: { channel: number; topic: string }) {
  const resolved = topic.startsWith(resolvedMark);
  return (
    <span class={`topic ${topic === "" ? "empty-topic" : ""}`} data-channel={channel}>
      {resolved && <Icon name="check" size={15} />}
      {topicName(topic.replace(resolvedMark, ""))}
    </span>
  );
}

function TopicTools({ channel, topic }: { channel: number; topic: string }) {
  const c = read("channels").get(channel);
  const resolved = topic.startsWith(resolvedMark);
  return (
    <>
      {canResolve(c) && topic !== "" && (
        <button
          type="button"
          class={`icon-button ${resolved ? "pressed" : ""}`}
          aria-pressed={resolved}
          aria-label={resolved ? t("Mark as unresolved") : t("Mark as resolved")}
          title={resolved ? t("Mark as unresolved") : t("Mark as resolved")}
          onClick={() => void resolve(channel, topic)}
        >
          <Icon name="checkCircle" />
        </button>
      )}
      <TopicPolicyButton channel={channel} topic={topic} />
    </>
  );
}

async function resolve(channel: number, topic: string): Promise<void> {
  const to = await toggleResolved(channel, topic);
  if (to !== undefined) goTo(narrowTo({ channel, topic: to }));
}

async function toUnread(terms: Term[]): Promise<void> {
  if (!(await jumpToUnread(terms))) notify(t("All messages are read."));
}

function ViewMenu({ terms }: { terms: Term[] }) {
  const channel = operandOfFirst(terms, "channel");
  const items: MenuItems = [
    { label: t("Mark all as read"), icon: "check", run: () => markNarrow("add", terms) },
    { label: t("First unread message"), icon: "unread", run: () => toUnread(terms) },
    typeof channel === "number" && null,
    typeof channel === "number" && { label: t("All topics"), icon: "topic", key: "y", run: () => go(hashOfTopics(channel, peek())) },
    typeof channel === "number" && { label: t("Channel settings"), icon: "gear", run: () => go(`#channels/${channel}`) },
  ];
  return <Menu label={t("Actions of this view")} items={items} />;
}

// Header is the frame of the line above every view.
export function Header({ children }: { children: preact.ComponentChildren }) {
  const people = rightOpen.value;
  return (
    <header class="view-header">
      <button type="button" class="icon-button only-narrow" aria-label={t("Channels")} aria-expanded={leftOpen.value} onClick={() => (leftOpen.value = !leftOpen.value)}>
        <Icon name="menu" />
      </button>
      <div class="view-head">{children}</div>
      <SearchField />
      <button type="button" class="icon-button" data-people aria-label={t("People")} title={t("People")} aria-expanded={people} aria-pressed={people} onClick={() => (rightOpen.value = !people)}>
        <Icon name="people" />
      </button>
    </header>
  );
}
