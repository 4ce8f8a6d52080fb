// One row of a list of messages.
import type { Message, Reaction } from "../api/types.ts";
import { t } from "../i18n/text.ts";
import { toggleCollapsed, toggleReaction, toggleStar } from "../store/actions.ts";
import { openCompose, text as composeText, writingTo } from "../compose/state.ts";
import { GuestMark } from "../people/card.tsx";
import { conversationOfMessage, hashOf, hashOfChannel, narrowTo, placeKey, resolvedMark, type Conversation } from "../store/narrow.ts";
import { discard, resend } from "../store/outbox.ts";
import type { Outgoing } from "../store/outgoing.ts";
import { topicName, userName, userNames } from "../store/queries.ts";
import { peek, read } from "../store/store.ts";
import { getOrInsert } from "../store/unread.ts";
import { openPopover } from "../ui/dialogs.tsx";
import { Avatar } from "../ui/avatar.tsx";
import { channelIcon, Icon } from "../ui/icons.tsx";
import { memo } from "../ui/memo.ts";
import { formatDay, formatTime } from "../ui/time.ts";
import { openUserCard } from "../people/card.tsx";
import { EmojiGlyph, StatusEmoji } from "../emoji/glyph.tsx";
import { messageExtras } from "./extras.ts";
import { openEmojiPicker } from "../emoji/open_picker.ts";
import { MessageContent, OutgoingContent } from "./shortened.tsx";
import { MessageMenu } from "./menu.tsx";
import { openPart } from "../ui/parts.ts";
import { selected } from "./selection.ts";

export const DayRow = memo(function DayRow({ at }: { at: number }) {
  return (
    <div class="day-row" role="separator">
      <span>{formatDay(at)}</span>
    </div>
  );
});

export function UnreadRow() {
  return (
    <div class="unread-row" role="separator">
      <span>{t("New messages")}</span>
    </div>
  );
}

// ConversationRow is the heading of messages of one conversation in a view of several.
export const ConversationRow = memo(function ConversationRow({ place, first }: { place: Conversation; first: Message | null }) {
  const s = peek();
  void read("channels");
  const href = hashOf(narrowTo(place), s);
  if ("people" in place) {
    return (
      <h2 class="conversation-row direct">
        <Icon name="message" size={15} />
        <a href={href}>{userNames(place.people)}</a>
      </h2>
    );
  }
  const channel = read("channels").get(place.channel);
  const color = read("subscriptions").get(place.channel)?.color ?? "#888888";
  return (
    <h2 class="conversation-row">
      <span class="channel-mark" style={{ color }}>
        <Icon name={channelIcon(channel)} size={15} />
      </span>
      <a href={hashOfChannel(place.channel, s)}>
        {channel?.name ?? (typeof first?.display_recipient === "string" ? first.display_recipient : t("Unknown channel"))}
      </a>
      <span class="crumb" aria-hidden="true">
        ›
      </span>
      <a href={href} class={`topic ${place.topic === "" ? "empty-topic" : ""}`}>
        {place.topic.startsWith(resolvedMark) && <Icon name="check" size={14} />}
        {topicName(place.topic.replace(resolvedMark, ""))}
      </a>
    </h2>
  );
});

interface MessageProps {
  message: Message;
  head: boolean;
  unread: boolean;
}

export const MessageRow = memo(function MessageRow({ message: m, head: isHead, unread }: MessageProps) {
  const head = isHead || m.is_me_message; // such a text goes on from the name
  const sender = read("users").get(m.sender_id);
  const name = sender?.full_name ?? m.sender_full_name;
  const isSelected = selected.value === m.id;
  const elsewhere = writingTo.value !== null && placeKey(conversationOfMessage(m, read("me").user_id), read("me").user_id) !== writingTo.value;
  const mentioned = m.flags.some((f) => f === "mentioned" || f.endsWith("wildcard_mentioned"));
  const Extra = messageExtras.find((x) => x.fits(m));
  return (
    <article
      class={`message ${head ? "head" : ""} ${unread ? "unread" : ""} ${isSelected ? "selected" : ""} ${m.is_me_message ? "me" : ""} ${elsewhere ? "elsewhere" : ""} ${mentioned ? "mentioned" : ""}`}
      data-message={m.id}
      aria-label={t("Message from {name}, {time}", { name, time: formatTime(m.timestamp) })}
    >
      <div class="message-side">
        {head ? (
          <button type="button" class="avatar-button" aria-label={t("About {name}", { name })} onClick={(e) => openUserCard(m.sender_id, e.currentTarget)}>
            <Avatar id={m.sender_id} size={36} />
          </button>
        ) : (
          <time class="quiet-time">{formatTime(m.timestamp)}</time>
        )}
      </div>
      <div class="message-main">
        {head && (
          <header class="message-head">
            <button type="button" class="sender" onClick={(e) => openUserCard(m.sender_id, e.currentTarget)}>
              {name}
            </button>
            {sender?.is_bot && (
              <span class="badge" title={t("This is a bot")}>
                {t("bot")}
              </span>
            )}
            <GuestMark id={m.sender_id} />
            <UserStatusEmoji id={m.sender_id} />
            <time title={formatTime(m.timestamp, "full")}>{formatTime(m.timestamp)}</time>
          </header>
        )}
        {m.flags.includes("collapsed") ? (
          <button type="button" class="link collapsed" onClick={() => toggleCollapsed(m)}>
            {t("Show the message")}
          </button>
        ) : Extra ? (
          <Extra.Draw message={m} />
        ) : (
          <MessageContent message={m} />
        )}
        <MessageFoot message={m} />
      </div>
      <MessageTools message={m} />
    </article>
  );
});

function UserStatusEmoji({ id }: { id: number }) {
  const status = read("statuses").get(id);
  if (!status?.emoji_name) return null;
  return (
    <span class="status-emoji" title={status.status_text}>
      <StatusEmoji status={status} />
    </span>
  );
}

function MessageFoot({ message: m }: { message: Message }) {
  const edited = m.last_edit_timestamp !== undefined;
  const moved = m.last_moved_timestamp !== undefined;
  if (m.reactions.length === 0 && !edited && !moved) return null;
  return (
    <div class="message-foot">
      {(edited || moved) && (
        <button type="button" class="edited" onClick={() => openPart(import("./history.tsx"), (x) => x.openHistory(m))}>
          {edited ? t("edited") : t("moved")}
        </button>
      )}
      <Reactions message={m} />
    </div>
  );
}

// byEmoji returns the reactions with each emoji.
export function byEmoji(reactions: readonly Reaction[]): Reaction[][] {
  const lists = new Map<string, Reaction[]>();
  for (const r of reactions) getOrInsert(lists, `${r.reaction_type} ${r.emoji_code}`, () => []).push(r);
  return [...lists.values()];
}

const namesShown = 3; // reactions of so few users show their names

function Reactions({ message: m }: { message: Message }) {
  const me = read("me").user_id;
  if (m.reactions.length === 0) return null;
  const showNames = read("settings").display_emoji_reaction_users && m.reactions.length <= namesShown;
  return (
    <div class="reactions">
      {byEmoji(m.reactions).map((list) => {
        const mine = list.some((r) => r.user_id === me);
        const names = list.map((r) => (r.user_id === me ? t("You") : userName(r.user_id))).join(", ");
        return (
          <button
            key={`${list[0]!.reaction_type} ${list[0]!.emoji_code}`}
            type="button"
            class={`reaction ${mine ? "mine" : ""}`}
            aria-pressed={mine}
            title={t("{names} reacted with :{emoji}:", { names, emoji: list[0]!.emoji_name })}
            onClick={() => toggleReaction(m, list[0]!)}
          >
            <EmojiGlyph emoji={list[0]!} />
            <span class="reaction-count">{showNames ? names : list.length}</span>
          </button>
        );
      })}
      <button type="button" class="reaction add" aria-label={t("Add a reaction")} onClick={(e) => openEmojiPicker(e.currentTarget, (x) => toggleReaction(m, x))}>
        <Icon name="smile" size={15} />
      </button>
    </div>
  );
}

function MessageTools({ message: m }: { message: Message }) {
  const starred = m.flags.includes("starred");
  return (
    <div class={`message-tools ${starred ? "starred" : ""}`}>
      <button type="button" class="icon-button" aria-label={t("Add a reaction")} title={t("Add a reaction")} onClick={(e) => openEmojiPicker(e.currentTarget, (x) => toggleReaction(m, x))}>
        <Icon name="smile" size={16} />
      </button>
      <button type="button" class="icon-button star" aria-pressed={starred} aria-label={t("Star")} title={t("Star")} onClick={() => toggleStar(m)}>
        <Icon name="star" size={16} filled={starred} />
      </button>
      <button
        type="button"
        class="icon-button"
        aria-haspopup="menu"
        aria-label={t("Message actions")}
        title={t("Message actions")}
        onClick={(e) => openPopover(e.currentTarget, <MessageMenu id={m.id} />)}
      >
        <Icon name="dots" size={16} />
      </button>
    </div>
  );
}

// editRefused puts a message that the server has refused into the compose box, behind a text that is there.
function editRefused(o: Outgoing): void {
  const before = composeText.peek().trim();
  openCompose(o.to);
  composeText.value = before ? `${before}\n\n${o.content}` : o.content;
  discard(o.localID);
}

export const OutgoingRow = memo(function OutgoingRow({ outgoing: o, head }: { outgoing: Outgoing; head: boolean }) {
  const me = read("me");
  return (
    <article class={`message outgoing ${head ? "head" : ""} ${o.state}`} aria-busy={o.state !== "failed"}>
      <div class="message-side">{head && <Avatar id={me.user_id} size={36} />}</div>
      <div class="message-main">
        {head && (
          <header class="message-head">
            <span class="sender">{me.full_name}</span>
            <time>{formatTime(o.timestamp)}</time>
          </header>
        )}
        <OutgoingContent row={`out-${o.localID}`} text={o.content} />
        {o.state === "failed" && (
          <p class="send-error" role="alert">
            {t("Not sent: {reason}", { reason: o.error ?? "" })}{" "}
            <button type="button" class="link" onClick={() => resend(o.localID)}>
              {t("Try again")}
            </button>{" "}
            <button type="button" class="link" onClick={() => editRefused(o)}>
              {t("Edit")}
            </button>{" "}
            <button type="button" class="link" onClick={() => discard(o.localID)}>
              {t("Discard")}
            </button>
          </p>
        )}
      </div>
      {o.state !== "failed" && o.error && (
        <p class="send-error quiet" role="status">
          {t("Not sent yet: {reason}", { reason: o.error })}
        </p>
      )}
      {o.state !== "failed" && (
        <span class="sending" title={t("Sending")}>
          <Icon name="clock" size={14} />
        </span>
      )}
    </article>
  );
});
