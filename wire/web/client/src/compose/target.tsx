// The fields for the destination of a message: channel and topic, or people.
import { useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { t } from "../i18n/text.ts";
import { mayPost, topicName, userName } from "../store/queries.ts";
import { resolvedMark } from "../store/narrow.ts";
import { loadTopics } from "../store/topics.ts";
import { findWhileTyping } from "../store/people.ts";
import { read } from "../store/store.ts";
import { Avatar } from "../ui/avatar.tsx";
import { channelIcon, Icon } from "../ui/icons.tsx";
import { Picker } from "../ui/picker.tsx";
import { compose } from "./state.ts";
import { matches } from "../ui/matches.ts";

export function ChannelPicker() {
  const channels = read("channels");
  const subscriptions = read("subscriptions");
  const now = compose.value.channel;
  const list = [...subscriptions.keys()].map((id) => channels.get(id)!).filter((c) => c && !c.is_archived && (c.stream_id === now || mayPost(c)));
  const current = now === null ? undefined : channels.get(now);
  if (current && !list.includes(current)) list.push(current);
  list.sort((a, b) => a.name.localeCompare(b.name));
  const options = list.map((c) => ({ value: c.stream_id, label: c.name, icon: channelIcon(c), color: subscriptions.get(c.stream_id)?.color }));
  return <Picker class="compose-channel" label={t("Channel")} value={now ?? undefined} options={options} choose={(channel) => (compose.value = { ...compose.value, channel, topic: "" })} />;
}

const maxTopics = 8;

export function TopicField() {
  const [at, setAt] = useState(-1); // -1: the typed topic
  const [open, setOpen] = useState(false);
  const { channel, topic } = compose.value;
  const known = channel === null ? undefined : read("topics").get(channel);
  const max = Number(read("realm").max_topic_length ?? 60);
  const q = topic.trim().toLowerCase();
  const offers = open
    ? [...(known?.values() ?? [])]
        .filter((x) => x.name && x.name.toLowerCase() !== q && x.name.toLowerCase().includes(q))
        .sort((a, b) => Number(a.name.startsWith(resolvedMark)) - Number(b.name.startsWith(resolvedMark)) || b.max_id - a.max_id)
        .slice(0, maxTopics)
    : [];
  const set = (value: string): void => void (compose.value = { ...compose.value, topic: value });
  const close = (): void => {
    setOpen(false);
    setAt(-1);
  };
  const choose = (name: string): void => {
    set(name);
    close();
    toText();
  };
  const keys = (e: KeyboardEvent): void => {
    if (e.isComposing) return;
    const step = e.key === "ArrowDown" ? 1 : e.key === "ArrowUp" ? -1 : 0;
    if (step && !open) setOpen(true);
    else if (step) setAt(Math.max(-1, Math.min(offers.length - 1, at + step)));
    else if (e.key === "Enter" && offers[at]) choose(offers[at].name);
    else if (e.key === "Enter") {
      close();
      toText();
    } else if (e.key === "Escape" && offers.length) {
      close();
      e.stopPropagation();
    } else return;
    e.preventDefault();
  };
  return (
    <div class="topic-field">
      <input
        class="compose-topic"
        data-compose="topic"
        aria-label={t("Topic")}
        placeholder={topicName("")}
        maxLength={max}
        value={topic}
        {...comboAria("topic-offers", offers.length, at)}
        onFocus={() => channel !== null && void loadTopics(channel)}
        onInput={(e) => {
          set(e.currentTarget.value);
          setOpen(true);
          setAt(-1);
        }}
        onMouseDown={() => setOpen(true)}
        onBlur={close}
        onKeyDown={keys}
      />
      <Offers id="topic-offers" label={t("Topics")} at={at} count={offers.length} choose={(i) => choose(offers[i]!.name)} draw={(i) => <Topic name={offers[i]!.name} />} />
    </div>
  );
}

function Topic({ name }: { name: string }) {
  return (
    <>
      <Icon name={name.startsWith(resolvedMark) ? "check" : "topic"} size={14} />
      <span>{name.replace(resolvedMark, "")}</span>
    </>
  );
}

function toText(): void {
  document.querySelector<HTMLElement>(".compose-text")?.focus();
}

// comboAria are the attributes of a field with a list of offers.
function comboAria(list: string, count: number, at: number) {
  return {
    role: "combobox" as const,
    autocomplete: "off",
    "aria-autocomplete": "list" as const,
    "aria-expanded": count > 0,
    "aria-controls": count > 0 ? list : undefined,
    "aria-activedescendant": count > 0 && at >= 0 ? `${list}-${at}` : undefined,
  };
}

interface OffersProps {
  id: string;
  label: string;
  at: number;
  count: number;
  choose: (i: number) => void;
  draw: (i: number) => ComponentChildren;
}

function Offers({ id, label, at, count, choose, draw }: OffersProps) {
  if (count === 0) return null;
  return (
    <div class="completions" role="listbox" id={id} aria-label={label}>
      {Array.from({ length: count }, (_, i) => (
        <div
          key={i}
          id={`${id}-${i}`}
          role="option"
          aria-selected={i === at}
          class={i === at ? "current" : ""}
          onMouseDown={(e) => {
            e.preventDefault();
            choose(i);
          }}
        >
          {draw(i)}
        </div>
      ))}
    </div>
  );
}

const maxOffers = 8;

export function PeoplePicker() {
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const people = compose.value.people;
  const set = (ids: number[]): void => void (compose.value = { ...compose.value, people: ids });
  const q = query.trim().toLowerCase();
  const offers = q
    ? [...read("users").values()]
        .filter((u) => u.is_active && !u.is_system_bot && !people.includes(u.user_id) && matches(u.full_name, q))
        .sort((a, b) => Number(!a.full_name.toLowerCase().startsWith(q)) - Number(!b.full_name.toLowerCase().startsWith(q)))
        .slice(0, maxOffers)
    : [];
  const add = (id: number): void => {
    set([...people, id]);
    setQuery("");
    setAt(0);
  };
  const keys = (e: KeyboardEvent): void => {
    if (e.key === "Backspace" && query === "" && people.length) set(people.slice(0, -1));
    if (e.key === "ArrowDown") setAt(Math.min(at + 1, offers.length - 1));
    if (e.key === "ArrowUp") setAt(Math.max(at - 1, 0));
    if ((e.key === "Enter" || e.key === "Tab") && offers[at]) {
      e.preventDefault();
      add(offers[at].user_id);
    } else if (e.key === "Enter" && people.length) {
      e.preventDefault();
      toText();
    }
  };
  return (
    <div class="people-picker">
      {people.map((id) => (
        <span class="pill" key={id}>
          <Avatar id={id} size={20} />
          {userName(id)}
          <button type="button" aria-label={t("Remove {name}", { name: userName(id) })} onClick={() => set(people.filter((x) => x !== id))}>
            <Icon name="close" size={12} />
          </button>
        </span>
      ))}
      <input
        data-compose="people"
        aria-label={t("People")}
        placeholder={people.length ? "" : t("Add people")}
        value={query}
        {...comboAria("people-offers", offers.length, at)}
        onInput={(e) => {
          setQuery(e.currentTarget.value);
          findWhileTyping(e.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={keys}
      />
      <Offers
        id="people-offers"
        label={t("People")}
        at={at}
        count={offers.length}
        choose={(i) => add(offers[i]!.user_id)}
        draw={(i) => (
          <>
            <Avatar id={offers[i]!.user_id} size={20} />
            <span>{offers[i]!.full_name}</span>
            <small>{offers[i]!.email}</small>
          </>
        )}
      />
    </div>
  );
}
