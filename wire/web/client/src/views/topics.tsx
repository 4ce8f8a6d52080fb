// The view #topics/channel/ID-NAME: all topics of a channel, the newest first. It has the same address as in Zulip.
import { useEffect, useState } from "preact/hooks";
import { openCompose } from "../compose/state.ts";
import { t } from "../i18n/text.ts";
import type { Route } from "../store/router.ts";
import { TopicPolicy } from "../api/types.ts";
import { hashOf, hashOfChannel, isTopicMuted, narrowTo, resolvedMark, topicPolicy } from "../store/narrow.ts";
import { mayPost, topicName } from "../store/queries.ts";
import { peek, read } from "../store/store.ts";
import { loadTopics } from "../store/topics.ts";
import { channelIcon, Icon } from "../ui/icons.tsx";
import { Header } from "./header.tsx";

const firstShown = 60; // lines; more are drawn when the list is scrolled

export function ChannelTopics({ route }: { route: Route }) {
  const id = parseInt(route.rest[1] ?? "", 10);
  const channel = read("channels").get(id);
  const loaded = read("topics").get(id);
  const [filter, setFilter] = useState("");
  const [shown, setShown] = useState(firstShown);
  useEffect(() => {
    if (channel) void loadTopics(id);
  }, [id, !channel, !loaded]);
  useEffect(() => {
    setFilter("");
    setShown(firstShown);
  }, [id]);
  if (!channel) return <p class="empty">{t("There is no such channel, or you cannot see it.")}</p>;
  const wanted = filter.trim().toLowerCase();
  const topics = [...(loaded?.values() ?? [])]
    .filter((x) => topicName(x.name).toLowerCase().includes(wanted))
    .sort((a, b) => b.max_id - a.max_id);
  return (
    <>
      <Header>
        <span class="view-icon" style={{ color: read("subscriptions").get(id)?.color }}>
          <Icon name={channelIcon(channel)} />
        </span>
        <h1 class="view-title">
          <a href={hashOfChannel(id, peek())}>{channel.name}</a>
          <span class="crumb" aria-hidden="true">
            ›
          </span>
          <span>{t("Topics")}</span>
        </h1>
        {mayPost(channel) && (
          <button type="button" class="icon-button" aria-label={t("New topic")} title={t("New topic")} onClick={() => openCompose({ channel: id })}>
            <Icon name="plus" />
          </button>
        )}
      </Header>
      <div
        class="page"
        onScroll={(e) => {
          const el = e.currentTarget;
          if (el.scrollTop + el.clientHeight > el.scrollHeight - 400) setShown((n) => n + firstShown);
        }}
      >
        <input class="input page-filter" type="search" data-topic-filter placeholder={t("Filter")} aria-label={t("Filter topics")} value={filter} onInput={(e) => setFilter(e.currentTarget.value)} />
        <ul>
          {topics.slice(0, shown).map((x) => (
            <Topic key={x.name.toLowerCase()} channel={id} name={x.name} />
          ))}
        </ul>
        {loaded && topics.length === 0 && <p class="empty">{wanted ? t("Nothing found") : t("There are no topics here yet.")}</p>}
      </div>
    </>
  );
}

function Topic({ channel, name }: { channel: number; name: string }) {
  const s = peek();
  void read("topicPolicies");
  const unread = read("unread");
  const ids = unread.inTopic(channel, name);
  const policy = topicPolicy(s, channel, name);
  return (
    <li>
      <a class="recent-line" href={hashOf(narrowTo({ channel, topic: name }), s)} data-list-item>
        <span class="recent-place">
          {name.startsWith(resolvedMark) && <Icon name="check" size={14} />}
          <span class={`recent-topic ${name === "" ? "empty-topic" : ""}`}>{topicName(name.replace(resolvedMark, ""))}</span>
        </span>
        {policy === TopicPolicy.followed && <Mark icon="follow" label={t("Followed")} />}
        {isTopicMuted(s, channel, name) && <Mark icon="mute" label={t("Muted")} />}
        {[...ids].some((id) => unread.mentions.has(id)) && (
          <span class="mention-mark" title={t("You are mentioned")}>
            @
          </span>
        )}
        {ids.size > 0 && (
          <span class="count" aria-label={t("{count} unread", { count: ids.size })}>
            {ids.size}
          </span>
        )}
      </a>
    </li>
  );
}

function Mark({ icon, label }: { icon: "follow" | "mute"; label: string }) {
  return (
    <span class="view-icon" role="img" aria-label={label} title={label}>
      <Icon name={icon} size={14} />
    </span>
  );
}
