// The menus of channels and topics, in the left column, the inbox and the line above a view.
import { changeSubscription, deleteTopic, getMessage, setTopicPolicy } from "../api/endpoints.ts";
import { changeChannel, subscribe, unsubscribe } from "../api/channels.ts";
import { openColours } from "../channels/open_colours.ts";
import { policyNames } from "../channels/topic_policy.tsx";
import { openCompose } from "../compose/state.ts";
import { t } from "../i18n/text.ts";
import { attempt, markNarrow } from "../store/actions.ts";
import { hashOfChannel, hashOfTopics, hashOf, narrowTo, resolvedMark, topicPolicy } from "../store/narrow.ts";
import { canMoveTopic, canResolve, canMoveChannel, canSummarize } from "../store/permissions.ts";
import { mayPost, topicName } from "../store/queries.ts";
import { newestIn, toggleResolved } from "../store/resolve.ts";
import { go, routes } from "../store/router.ts";
import { peek, read } from "../store/store.ts";
import { copyText } from "../ui/clipboard.ts";
import { Confirm, Menu, openDialog, openPopover, type MenuItem, type MenuItems } from "../ui/dialogs.tsx";
import { openPart } from "../ui/parts.ts";

export function openChannelMenu(at: Element, id: number): void {
  openPopover(at, <ChannelMenu id={id} at={at} />);
}

function copyLink(hash: string): void {
  void copyText(location.origin + "/" + hash, t("Link copied."));
}

function ChannelMenu({ id, at }: { id: number; at: Element }) {
  const sub = read("subscriptions").get(id);
  const c = read("channels").get(id);
  if (!c) return null;
  const set = (property: string, value: unknown) => () => attempt(changeSubscription({ stream_id: id, property, value }));
  const terms = [{ operator: "channel", operand: id }];
  const page = (tab: string) => () => go(`#channels/${id}/${encodeURIComponent(c.name)}/${tab}`);
  const rect = at.getBoundingClientRect();
  const items: MenuItems = [
    { label: t("Mark all as read"), icon: "check", run: () => markNarrow("add", terms) },
    { label: t("Mark all as unread"), icon: "unread", run: () => markNarrow("remove", terms) },
    null,
    mayPost(c) && { label: t("New topic"), icon: "plus", run: () => openCompose({ channel: id }) },
    { label: t("All topics"), icon: "topic", key: "y", run: () => go(hashOfTopics(id, peek())) },
    { label: t("Copy link"), icon: "link", run: () => copyLink(hashOfChannel(id, peek())) },
    null,
    sub && { label: sub.pin_to_top ? t("Unpin") : t("Pin to the top"), icon: "pin", run: set("pin_to_top", !sub.pin_to_top) },
    sub && { label: sub.is_muted ? t("Unmute channel") : t("Mute channel"), icon: "mute", run: set("is_muted", !sub.is_muted) },
    sub && { label: t("Notifications"), icon: "bell", run: page("personal") },
    sub && { label: t("Color"), icon: "palette", run: () => openColours(rect, id) },
    read("me").is_admin && read("folders").size > 0 && { label: t("Folder"), icon: "folder", run: () => openPopover(rect, <FolderMenu id={id} />) },
    { label: t("Channel settings"), icon: "gear", run: page("general") },
    sub
      ? { label: t("Unsubscribe"), icon: "logout", danger: true, run: () => leave(id) }
      : !c.is_archived && !c.invite_only && { label: t("Subscribe"), icon: "plus", run: () => attempt(subscribe(c.name)) },
  ];
  return <Menu label={t("Actions of the channel")} items={items} />;
}

function leave(id: number): void {
  const c = peek().channels.get(id)!;
  const run = (): unknown => attempt(unsubscribe(c.name));
  if (!c.invite_only) return void run();
  openDialog(<Confirm title={t("Unsubscribe from {name}?", { name: c.name })} text={t("The channel is private. Perhaps you cannot subscribe again.")} button={t("Unsubscribe")} danger run={run} />);
}

function FolderMenu({ id }: { id: number }) {
  const now = read("channels").get(id)?.folder_id ?? null;
  const folders = [...read("folders").values()].filter((f) => !f.is_archived).sort((a, b) => a.order - b.order);
  const item = (folder: number | null, label: string): MenuItem => ({
    label,
    icon: folder === now ? "check" : "folder",
    run: () => attempt(changeChannel(id, { folder_id: folder })),
  });
  return <Menu label={t("Folder")} items={[item(null, t("No folder")), ...folders.map((f) => item(f.id, f.name))]} />;
}

export function openTopicMenu(at: Element, channel: number, topic: string): void {
  openPopover(at, <TopicMenu channel={channel} topic={topic} />);
}

function TopicMenu({ channel, topic }: { channel: number; topic: string }) {
  const terms = narrowTo({ channel, topic });
  const c = read("channels").get(channel);
  void read("topicPolicies");
  const policy = topicPolicy(peek(), channel, topic);
  const resolved = topic.startsWith(resolvedMark);
  const mayMove = c && !c.is_archived && (canMoveTopic(c) || canMoveChannel(c));
  const items: MenuItems = [
    { label: t("Mark all as read"), icon: "check", run: () => markNarrow("add", terms) },
    { label: t("Mark all as unread"), icon: "unread", run: () => markNarrow("remove", terms) },
    { label: t("Copy link"), icon: "link", run: () => copyLink(hashOf(terms, peek())) },
    canSummarize() && { label: t("Summarize topic"), icon: "list", run: () => openPart(import("../message/assist.tsx"), (x) => x.openSummary(terms)) },
    null,
    ...policyNames().map((p) => ({ label: p.label, icon: p.policy === policy ? ("check" as const) : p.icon, run: () => attempt(setTopicPolicy(channel, topic, p.policy)) })),
    (mayMove || canResolve(c)) && null,
    canResolve(c) && topic !== "" && { label: resolved ? t("Mark as unresolved") : t("Mark as resolved"), icon: "checkCircle", run: () => resolve(channel, topic) },
    mayMove && { label: t("Rename or move"), icon: "move", run: () => move(channel, topic) },
    read("me").is_admin && { label: t("Delete topic"), icon: "trash", danger: true, run: () => askDelete(channel, topic) },
  ];
  return <Menu label={t("Actions of the topic")} items={items} />;
}

// resolve marks a topic as resolved or not, and follows it if it is on the screen.
async function resolve(channel: number, topic: string): Promise<void> {
  const here = JSON.stringify(routes.peek().view.terms) === JSON.stringify(narrowTo({ channel, topic }));
  const to = await toggleResolved(channel, topic);
  if (to !== undefined && here) go(hashOf(narrowTo({ channel, topic: to }), peek()));
}

async function move(channel: number, topic: string): Promise<void> {
  const id = await newestIn(channel, topic);
  const m = id ? (peek().messages.get(id) ?? (await attempt(getMessage(id)))) : undefined;
  if (m) openPart(import("../message/move.tsx"), (x) => x.openMove(m, "change_all"));
}

function askDelete(channel: number, topic: string): void {
  const run = async (): Promise<void> => {
    // One request deletes only some thousand messages.
    while ((await attempt(deleteTopic(channel, topic)))?.complete === false);
  };
  openDialog(<Confirm title={t("Delete the topic {name}?", { name: topicName(topic) })} text={t("All of its messages disappear for everyone. This cannot be undone.")} button={t("Delete")} danger run={run} />);
}
