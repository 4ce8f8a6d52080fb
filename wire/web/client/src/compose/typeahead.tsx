// Completions of the compose box: people and groups after @, channels and topics after #, emoji after a colon, commands
// after a slash at the beginning, and languages after the fence of a block of code (languages.ts).
import { ColorScheme, type UserGroup } from "../api/types.ts";
import { loadEmoji, searchEmoji } from "../emoji/data.ts";
import { plural, t } from "../i18n/text.ts";
import { EmojiGlyph } from "../emoji/glyph.tsx";
import { topicName } from "../store/queries.ts";
import { loadPeople } from "../store/people.ts";
import { peek } from "../store/store.ts";
import { loadTopics } from "../store/topics.ts";
import { Avatar } from "../ui/avatar.tsx";
import { channelIcon, Icon, type IconName } from "../ui/icons.tsx";
import { completers, type Completer, type Completion } from "../editor/extras.ts";
import { sendChecks, slashCommands } from "./extras.ts";
import { botCommands, botCommandsAreOld, loadBotCommands } from "../store/bot_commands.ts";
import { languages } from "./languages.ts";
import { mentionText } from "./quote.ts";
import { compose } from "./state.ts";
import { matches } from "../ui/matches.ts";
import { changeSetting, type Destination } from "../api/endpoints.ts";
import { h } from "preact";
import { serverNow } from "../api/clock.ts";
import { formatTime } from "../ui/time.ts";
import { Confirm, openDialog } from "../ui/dialogs.tsx";
import { attempt } from "../store/actions.ts";

const maxOffers = 8; // of one list
const maxQuery = 60; // characters

// sorted returns the best offers: the lower the rank, the earlier.
function sorted<T>(list: T[], rank: (x: T) => number, name: (x: T) => string): T[] {
  return list
    .map((x) => ({ x, rank: rank(x) }))
    .sort((a, b) => a.rank - b.rank || name(a.x).localeCompare(name(b.x)))
    .slice(0, maxOffers)
    .map((r) => r.x);
}

function begins(name: string, q: string): number {
  return name.toLowerCase().startsWith(q) ? 0 : 2;
}

// after returns the text behind a mark that begins a word, and where the mark is.
function after(before: string, mark: RegExp): { start: number; query: string } | null {
  const m = mark.exec(before);
  if (!m || m[2]!.length > maxQuery) return null;
  return { start: m.index + m[1]!.length, query: m[2]!.toLowerCase() };
}

function wildcards(q: string, silent: boolean): Completion[] {
  if (silent || compose.value.direct) return [];
  const all = [
    { name: "all", detail: t("Notify everyone in the channel") },
    { name: "topic", detail: t("Notify everyone in the topic") },
  ];
  return all
    .filter((w) => q !== "" && w.name.startsWith(q))
    .map((w) => ({ label: w.name, detail: w.detail, insert: `@**${w.name}** `, Draw: () => <Named icon="people" name={w.name} /> }));
}

function Named({ icon, name, color }: { icon: IconName; name: string; color?: string }) {
  return (
    <>
      <span class="completion-icon" style={color ? { color } : undefined}>
        <Icon name={icon} size={16} />
      </span>
      <span>{name}</span>
    </>
  );
}

function mentionable(g: UserGroup): boolean {
  return !g.deactivated && (!g.is_system_group || g.name === "role:members" || g.name === "role:everyone");
}

const mentions: Completer = {
  match(before) {
    const found = after(before, /(^|[\s(\[{"'/>-])@(_?\*{0,2}[^@\n*:]*)$/);
    if (!found) return null;
    const silent = found.query.startsWith("_");
    const q = found.query.replace(/^_?\*{0,2}/, "").trimStart();
    if (/\s\S+\s\S+\s/.test(q)) return null;
    const s = peek();
    const { channel, direct, people } = compose.value;
    const near = direct ? new Set(people) : s.members.get(channel ?? 0)?.ids;
    const users = sorted(
      [...s.users.values()].filter((u) => u.is_active && !u.is_system_bot && !s.mutedUsers.has(u.user_id) && matches(u.full_name, q)),
      (u) => begins(u.full_name, q) + (near?.has(u.user_id) ? 0 : 1) + (u.is_bot ? 1 : 0),
      (u) => u.full_name,
    ).map((u): Completion => ({
      label: u.full_name,
      detail: u.email,
      insert: mentionText(u.user_id, silent) + " ",
      Draw: () => (
        <>
          <Avatar id={u.user_id} size={20} />
          <span>{u.full_name}</span>
        </>
      ),
    }));
    const groups = sorted(
      [...s.groups.values()].filter((g) => q !== "" && mentionable(g) && matches(g.name, q)),
      (g) => begins(g.name, q),
      (g) => g.name,
    ).map((g): Completion => ({
      label: g.name,
      detail: g.description,
      insert: `@${silent ? "_" : ""}*${g.name}* `,
      Draw: () => <Named icon="people" name={g.name} />,
    }));
    return { start: found.start, offers: [...users, ...wildcards(q, silent), ...groups].slice(0, maxOffers), load: loadPeople(q) };
  },
};

const topics: Completer = {
  match(before) {
    const found = /#\*\*([^*>\n]+)>([^*\n]*)$/.exec(before);
    if (!found) return null;
    const s = peek();
    const channel = [...s.channels.values()].find((c) => c.name.toLowerCase() === found[1]!.toLowerCase());
    if (!channel) return null;
    const known = s.topics.get(channel.stream_id);
    const q = found[2]!.toLowerCase();
    const list = [...(known?.values() ?? [])].filter((x) => x.name.toLowerCase().includes(q));
    const rank = new Map([...list].sort((a, b) => b.max_id - a.max_id).map((x, i) => [x.name, i]));
    const offers = sorted(
      list,
      (x) => begins(x.name, q) * 1e6 + rank.get(x.name)!,
      (x) => x.name,
    ).map((x): Completion => ({
      label: topicName(x.name),
      insert: `#**${channel.name}>${x.name}** `,
      Draw: () => <Named icon="topic" name={topicName(x.name)} />,
    }));
    return { start: found.index, offers, load: known ? undefined : () => loadTopics(channel.stream_id) };
  },
};

const channels: Completer = {
  match(before) {
    const found = after(before, /(^|[\s(\[{"'/-])#(\*{0,2}[^#\n*>]*)$/);
    if (!found) return null;
    const q = found.query.replace(/^\*+/, "");
    if (q.startsWith(" ")) return null; // a heading
    const s = peek();
    const offers = sorted(
      [...s.channels.values()].filter((c) => !c.is_archived && matches(c.name, q)),
      (c) => begins(c.name, q) + (s.subscriptions.has(c.stream_id) ? 0 : 1),
      (c) => c.name,
    ).map((c): Completion => ({
      label: c.name,
      detail: c.description.slice(0, 80),
      insert: `#**${c.name}** `,
      keys: { ">": `#**${c.name}>` },
      Draw: () => (
        <Named icon={channelIcon(c)} name={c.name} color={s.subscriptions.get(c.stream_id)?.color} />
      ),
    }));
    return { start: found.start, offers };
  },
};

const emoji: Completer = {
  match(before) {
    const found = after(before, /(^|[\s(\[{"'/>-]):([a-z0-9_+-][a-z0-9_+-]+)$/i);
    if (!found) return null;
    const offers = searchEmoji(found.query, maxOffers).map((e): Completion => ({
      label: e.emoji_name,
      insert: `:${e.emoji_name}: `,
      Draw: () => (
        <>
          <EmojiGlyph emoji={e} />
          <span>:{e.emoji_name}:</span>
        </>
      ),
    }));
    return { start: found.start, offers, load: offers.length ? undefined : loadEmoji };
  },
};

// times completes <time with an hour that is likely, or with the date that was typed after <time:.
const times: Completer = {
  match(before) {
    const found = /<(?:t|ti|tim|time|time:([^>\n]{0,40}))$/.exec(before);
    if (!found) return null;
    const typed = Date.parse(found[1] ?? "");
    const tomorrow = new Date(serverNow() + 86_400_000).setHours(9, 0, 0, 0);
    const list = Number.isNaN(typed) ? [Math.ceil(serverNow() / 3_600_000) * 3_600_000, tomorrow] : [typed];
    const offers = list.map((ms): Completion => ({
      label: formatTime(ms / 1000, "full"),
      detail: t("A time that everyone sees in their time zone"),
      insert: `<time:${new Date(ms).toISOString().slice(0, 19)}Z> `,
      Draw: () => <Named icon="clock" name={formatTime(ms / 1000, "full")} />,
    }));
    return { start: found.index, offers };
  },
};

const commandTexts: [string, () => string, string][] = [
  ["me", () => t("Say what you are doing"), "/me "],
  ["poll", () => t("Ask a question"), "/poll "],
  ["todo", () => t("Make a list of tasks"), "/todo "],
  ["dark", () => t("Switch to the dark theme"), "/dark"],
  ["light", () => t("Switch to the light theme"), "/light"],
];

const commands: Completer = {
  match(before) {
    const found = /^\/([\w-]*)$/.exec(before);
    if (!found) return null;
    const own = commandTexts.map(([name, detail, insert]) => ({ name, detail: detail(), insert }));
    const { channel, direct } = compose.value;
    const place = direct ? null : channel; // commands trigger bots in channels only
    const bots = (place === null ? [] : botCommands(place)).map((c) => ({ name: c.name, detail: [c.usage, c.description].filter(Boolean).join(" · "), insert: `/${c.name} ` }));
    const offers = [...own, ...bots]
      .filter((x) => x.name.startsWith(found[1]!.toLowerCase()))
      .map((x): Completion => ({ label: "/" + x.name, detail: x.detail, insert: x.insert, Draw: () => <Named icon="code" name={"/" + x.name} /> }));
    const load = place !== null && botCommandsAreOld(place) ? () => loadBotCommands(place) : undefined;
    return { start: 0, offers: offers.slice(0, maxOffers), load };
  },
};

const many = 15; // subscribers: mentions that notify more ask first, as in Zulip

// askBeforeMany asks before a message that notifies everyone in a large channel.
function askBeforeMany(to: Destination, content: string, goOn: () => void): boolean {
  if (!("channel" in to) || !/@\*\*(all|everyone|channel|stream)\*\*/.test(content)) return true;
  const count = peek().channels.get(to.channel)?.subscriber_count ?? 0;
  if (count <= many) return true;
  const text = plural(count, "{count} person is notified.", "{count} people are notified.");
  openDialog(h(Confirm, { title: t("Notify everyone in the channel?"), text, button: t("Send"), run: goOn }));
  return false;
}

export function installTypeahead(): void {
  completers.push(languages, mentions, topics, channels, emoji, times, commands);
  slashCommands.set("dark", () => void attempt(changeSetting({ color_scheme: ColorScheme.dark })));
  sendChecks.push(askBeforeMany);
  slashCommands.set("light", () => void attempt(changeSetting({ color_scheme: ColorScheme.light })));
}
