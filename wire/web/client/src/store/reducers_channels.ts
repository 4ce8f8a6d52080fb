// Reducers of channels, subscriptions, folders and topics.
import type { Channel, ServerEvent, UserTopic } from "../api/types.ts";
import { changeList, dropChannelMessages, refetchChannelMessages, refilter } from "./lists.ts";
import { expectOp, unknownOp } from "./ops.ts";
import { addChannel, personal, setTopicPolicy, subscriptionOf, type Change, type Values } from "./state.ts";

export function channel(c: Change, e: ServerEvent): void {
  expectOp(e, "create", "delete", "update");
  c.touch("channels");
  if (e.op === "create") {
    for (const ch of e.streams) addChannel(c.state, ch);
    c.touch("members");
  } else if (e.op === "delete") {
    for (const { stream_id } of e.streams) removeChannel(c, stream_id);
  } else if (e.op === "update") {
    updateChannel(c, e);
  }
}

function removeChannel(c: Change, id: number): void {
  const s = c.state;
  s.channels.delete(id);
  s.subscriptions.delete(id);
  s.members.delete(id);
  s.topics.delete(id);
  c.touch("subscriptions");
  c.touch("members");
  c.touch("topics");
  dropUnread(c, id);
  dropChannelMessages(c, id);
}

function updateChannel(c: Change, e: ServerEvent): void {
  const id: number = e.stream_id;
  const old = c.state.channels.get(id);
  if (!old) throw new Error(`channel ${id} does not exist`);
  const subscribed = c.state.subscriptions.has(id);
  const hidden = e.property === "is_archived" || (!subscribed && e.property === "invite_only");
  if (e.value === true && hidden) {
    dropUnread(c, id);
    if (!subscribed) dropChannelMessages(c, id);
  }
  const now: Values = { ...old, [e.property]: e.value };
  for (const k of ["rendered_description", "history_public_to_subscribers", "is_web_public"]) {
    if (k in e) now[k] = e[k];
  }
  c.state.channels.set(id, now as Channel);
}

export function subscription(c: Change, e: ServerEvent): void {
  c.touch("subscriptions");
  switch (e.op) {
    case "add":
      for (const x of e.subscriptions) {
        // Only subscribers get the reactions and votes of private channels, and guests those of any channel: messages
        // that were read before are fetched again.
        if (x.invite_only || c.state.me.is_guest) refetchChannelMessages(c, x.stream_id);
        addChannel(c.state, x);
        c.state.subscriptions.set(x.stream_id, subscriptionOf(x));
      }
      c.touch("channels");
      c.touch("members");
      refilterHome(c);
      break;
    case "remove":
      for (const x of e.subscriptions) unsubscribed(c, x.stream_id);
      break;
    case "update":
      updateSubscription(c, e);
      break;
    case "peer_add":
    case "peer_remove":
      for (const id of e.stream_ids) changeMembers(c, id, e.user_ids, e.op === "peer_add");
      break;
    default:
      unknownOp(e);
  }
}

// unsubscribed: no event names the other users that leave at the same time, so the members are no longer known.
function unsubscribed(c: Change, id: number): void {
  c.state.subscriptions.delete(id);
  c.state.members.delete(id);
  const ch = c.state.channels.get(id);
  if (ch) {
    const { subscriber_count: _, ...rest } = ch;
    c.state.channels.set(id, rest);
  }
  c.touch("channels");
  c.touch("members");
  dropUnread(c, id);
  if (ch?.invite_only || c.state.me.is_guest) dropChannelMessages(c, id);
  refilterHome(c);
}

function updateSubscription(c: Change, e: ServerEvent): void {
  const old = c.state.subscriptions.get(e.stream_id);
  if (!old) throw new Error(`no subscription to channel ${e.stream_id}`);
  if (!(personal as readonly string[]).includes(e.property)) return; // in_home_view is the older form of is_muted
  c.state.subscriptions.set(e.stream_id, { ...old, [e.property]: e.value });
  if (e.property === "is_muted") refilterHome(c);
}

function changeMembers(c: Change, id: number, users: number[], join: boolean): void {
  const ch = c.state.channels.get(id);
  if (!ch) throw new Error(`channel ${id} does not exist`);
  const members = c.state.members.get(id);
  if (members) {
    const ids = new Set(members.ids);
    for (const u of users) {
      if (join) ids.add(u);
      else ids.delete(u);
    }
    c.state.members.set(id, { ids, complete: members.complete });
  }
  if (ch.subscriber_count !== undefined) {
    const count = members?.complete
      ? c.state.members.get(id)!.ids.size
      : ch.subscriber_count + (join ? users.length : -users.length);
    c.state.channels.set(id, { ...ch, subscriber_count: count });
  }
  c.touch("channels");
  c.touch("members");
}

// dropUnread removes the unread messages of a channel that was left or archived: the server marks them as read a
// little later.
function dropUnread(c: Change, id: number): void {
  c.state.unread.dropChannel(id);
  c.touch("unread");
}

export function folder(c: Change, e: ServerEvent): void {
  expectOp(e, "add", "update", "reorder");
  const folders = c.state.folders;
  if (e.op === "add") folders.set(e.channel_folder.id, e.channel_folder);
  if (e.op === "update") folders.set(e.channel_folder_id, { ...folders.get(e.channel_folder_id)!, ...e.data });
  if (e.op === "reorder") {
    for (const [order, id] of (e.order as number[]).entries()) folders.set(id, { ...folders.get(id)!, order });
  }
  c.touch("folders");
}

export function topicPolicy(c: Change, e: ServerEvent): void {
  const { stream_id, topic_name, last_updated, visibility_policy } = e as unknown as UserTopic;
  setTopicPolicy(c.state, { stream_id, topic_name, last_updated, visibility_policy });
  c.touch("topicPolicies");
  refilterHome(c);
}

// refilterHome marks the lists without muted messages as stale: they may now contain messages that are not known here.
export function refilterHome(c: Change): void {
  for (const list of c.state.lists.values()) {
    const home = list.terms.some((t) => t.operator === "in" || (t.operator === "is" && ["muted", "followed"].includes(String(t.operand))));
    if (home) changeList(c, list.key, { stale: true });
  }
  refilter(c, []);
}
