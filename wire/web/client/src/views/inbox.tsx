// The inbox: all conversations with unread messages, by channel.
import { plural, t } from "../i18n/text.ts";
import { markRead } from "../store/actions.ts";
import { hashOf, hashOfChannel, isTopicMuted, narrowTo, resolvedMark } from "../store/narrow.ts";
import { topicName, userNames } from "../store/queries.ts";
import { peopleOf } from "../store/state.ts";
import { peek, read } from "../store/store.ts";
import { Confirm, openDialog } from "../ui/dialogs.tsx";
import { channelIcon, Icon, type IconName } from "../ui/icons.tsx";
import { Header } from "./header.tsx";

interface Entry {
  key: string;
  label: string;
  href: string;
  ids: ReadonlySet<number>;
  mention: boolean;
  newest: number;
  resolved: boolean;
}

interface Section {
  key: string;
  title: string;
  href: string;
  color: string | undefined;
  icon: IconName;
  entries: Entry[];
  rank: number;
}

function sections(): Section[] {
  const s = peek();
  const u = read("unread");
  void read("topicPolicies");
  const subscriptions = read("subscriptions");
  const channels = read("channels");
  const out: Section[] = [];
  const entry = (key: string, label: string, href: string, ids: ReadonlySet<number>): Entry => {
    const list = [...ids];
    const mention = list.some((id) => u.mentions.has(id));
    return { key, label, href, ids, mention, newest: Math.max(...list), resolved: label.startsWith(resolvedMark) };
  };
  const direct = [...u.direct].map(([people, ids]) => {
    const users = peopleOf(people);
    return entry(people, userNames(users), hashOf(narrowTo({ people: users }), s), ids);
  });
  if (direct.length) {
    const href = hashOf([{ operator: "is", operand: "dm" }], s);
    out.push({ key: "direct", title: t("Direct messages"), href, color: undefined, icon: "message", entries: direct, rank: 0 });
  }
  for (const [id, topics] of u.topics) {
    const channel = channels.get(id);
    if (!channel) continue;
    const entries: Entry[] = [];
    for (const [lower, ids] of topics) {
      const any = u.places.get(ids.values().next().value!)!;
      const topic = "topic" in any ? any.topic : lower;
      const mentioned = [...ids].some((x) => u.mentions.has(x));
      if (isTopicMuted(s, id, topic) && !mentioned) continue;
      entries.push(entry(lower, topic, hashOf(narrowTo({ channel: id, topic }), s), ids));
    }
    if (entries.length === 0) continue;
    const sub = subscriptions.get(id);
    out.push({
      key: String(id),
      title: channel.name,
      href: hashOfChannel(id, s),
      color: sub?.color,
      icon: channelIcon(channel),
      entries,
      rank: sub?.pin_to_top ? 1 : 2,
    });
  }
  for (const x of out) x.entries.sort((a, b) => Number(b.mention) - Number(a.mention) || b.newest - a.newest);
  return out.sort((a, b) => a.rank - b.rank || a.title.localeCompare(b.title));
}

function askReadAll(all: Section[]): void {
  const ids = all.flatMap((x) => x.entries.flatMap((e) => [...e.ids]));
  const text = plural(ids.length, "{count} message is marked as read.", "{count} messages are marked as read.");
  openDialog(<Confirm title={t("Mark all as read?")} text={text} button={t("Mark as read")} run={() => markRead(ids)} />);
}

export function Inbox() {
  const all = sections();
  return (
    <>
      <Header>
        <span class="view-icon">
          <Icon name="inbox" />
        </span>
        <h1 class="view-title">{t("Inbox")}</h1>
        {all.length > 0 && (
          <button type="button" class="icon-button" aria-label={t("Mark all as read")} title={t("Mark all as read")} onClick={() => askReadAll(all)}>
            <Icon name="checkCircle" />
          </button>
        )}
      </Header>
      <div class="page" tabIndex={-1}>
        {all.length === 0 && (
          <div class="empty-view">
            <p class="empty-title">{t("All read.")}</p>
            <p class="quiet">{t("New messages for you will appear here.")}</p>
            <a class="button quiet" href="#feed">
              {t("Open the combined feed")}
            </a>
          </div>
        )}
        {all.map((x) => (
          <section key={x.key} class="inbox-section" aria-label={x.title}>
            <h2>
              <span class="channel-mark" style={x.color ? { color: x.color } : undefined}>
                <Icon name={x.icon} size={16} />
              </span>
              <a href={x.href}>{x.title}</a>
            </h2>
            <ul>
              {x.entries.map((e) => (
                <li key={e.key}>
                  <a class="inbox-entry" href={e.href} data-list-item>
                    {e.resolved && <Icon name="check" size={14} />}
                    <span class="grow">{x.key === "direct" ? e.label : topicName(e.label.replace(resolvedMark, ""))}</span>
                    {e.mention && (
                      <span class="mention-mark" title={t("You are mentioned")}>
                        @
                      </span>
                    )}
                    <span class="count" aria-label={t("{count} unread", { count: e.ids.size })}>
                      {e.ids.size}
                    </span>
                  </a>
                  <button type="button" class="icon-button" aria-label={t("Mark as read")} title={t("Mark as read")} onClick={() => markRead(e.ids)}>
                    <Icon name="check" size={15} />
                  </button>
                </li>
              ))}
            </ul>
          </section>
        ))}
      </div>
    </>
  );
}
