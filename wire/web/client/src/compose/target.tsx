// The fields for the destination of a message: channel and topic, or people.
import { useState } from "preact/hooks";
import { t } from "../i18n/text.ts";
import { avatarOf, mayPost, topicName, userName } from "../store/queries.ts";
import { loadTopics } from "../store/topics.ts";
import { read } from "../store/store.ts";
import { Icon } from "../ui/icons.tsx";
import { compose } from "./state.ts";
import { matches } from "../ui/matches.ts";

export function ChannelPicker() {
  const channels = read("channels");
  const subscriptions = [...read("subscriptions").values()]
    .map((s) => channels.get(s.stream_id)!)
    .filter((c) => c && !c.is_archived)
    .sort((a, b) => a.name.localeCompare(b.name));
  const now = compose.value.channel;
  const known = subscriptions.some((c) => c.stream_id === now);
  return (
    <select
      class="compose-channel"
      aria-label={t("Channel")}
      value={now ?? ""}
      onChange={(e) => (compose.value = { ...compose.value, channel: Number(e.currentTarget.value), topic: "" })}
    >
      {!known && now !== null && <option value={now}>{channels.get(now)?.name ?? t("Channel")}</option>}
      {subscriptions.map((c) => (
        <option key={c.stream_id} value={c.stream_id} disabled={!mayPost(c)}>
          {c.name}
        </option>
      ))}
    </select>
  );
}

export function TopicField() {
  const { channel, topic } = compose.value;
  const known = channel === null ? undefined : read("topics").get(channel);
  const max = Number(read("realm").max_topic_length ?? 60);
  return (
    <>
      <input
        class="compose-topic"
        data-compose="topic"
        aria-label={t("Topic")}
        placeholder={topicName("")}
        maxLength={max}
        list="compose-topics"
        value={topic}
        onFocus={() => channel !== null && void loadTopics(channel)}
        onInput={(e) => (compose.value = { ...compose.value, topic: e.currentTarget.value })}
        onKeyDown={(e) => {
          if (e.key !== "Enter") return;
          e.preventDefault();
          document.querySelector<HTMLElement>(".compose-text")?.focus();
        }}
      />
      <datalist id="compose-topics">
        {[...(known?.values() ?? [])]
          .sort((a, b) => b.max_id - a.max_id)
          .slice(0, 50)
          .map((x) => x.name && <option key={x.name} value={x.name} />)}
      </datalist>
    </>
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
        .filter((u) => u.is_active && !people.includes(u.user_id) && matches(u.full_name, q))
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
      document.querySelector<HTMLElement>(".compose-text")?.focus();
    }
  };
  return (
    <div class="people-picker">
      {people.map((id) => (
        <span class="pill" key={id}>
          <img class="avatar tiny" src={avatarOf(read("users").get(id))} alt="" />
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
        onInput={(e) => {
          setQuery(e.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={keys}
      />
      {offers.length > 0 && (
        <div class="completions below" role="listbox" aria-label={t("People")}>
          {offers.map((u, i) => (
            <div key={u.user_id} role="option" aria-selected={i === at} class={i === at ? "current" : ""} onMouseDown={() => add(u.user_id)}>
              <img class="avatar tiny" src={avatarOf(u)} alt="" />
              <span>{u.full_name}</span>
              <small>{u.email}</small>
            </div>
          ))}
        </div>
      )}
    </div>
  );
}
