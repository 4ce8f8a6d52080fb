// Reducers of channels, subscriptions, folders and topics.
import type { EventOf } from "../api/types.ts";
import { changeList, dropChannelMessages, refetchChannelMessages, refilter } from "./lists.ts";
import { unknownOp, type Reducer } from "./reducer.ts";
import { addChannel, setTopicPolicy, subscriptionOf, type Change } from "./state.ts";

export const channel: Reducer<"stream"> = (c, e) => {
  if (e.op === "create") {
    for (const ch of e.streams) addChannel(c.state, ch);
    c.touch("members");
  } else if (e.op === "delete") {
    for (const { stream_id } of e.streams) removeChannel(c, stream_id);
  } else if (e.op === "update") updateChannel(c, e);
  else unknownOp(e);
  c.touch("channels");
};

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

function updateChannel(c: Change, e: Extract<EventOf<"stream">, { op: "update" }>): void {
  const id = e.stream_id;
  const old = c.state.channels.get(id);
  if (!old) throw new Error(`channel ${id} does not exist`);
  const subscribed = c.state.subscriptions.has(id);
  const hidden = e.property === "is_archived" || (!subscribed && e.property === "invite_only");
  if (e.value === true && hidden) {
    dropUnread(c, id);
    if (!subscribed) dropChannelMessages(c, id);
  }
  const now = { ...old, [e.property]: e.value };
  if (e.property === "description") now.rendered_description = e.rendered_description;
  if (e.property === "invite_only") {
    now.history_public_to_subscribers = e.history_public_to_subscribers;
    now.is_web_public = e.is_web_public;
  }
  c.state.channels.set(id, now);
}

export const subscription: Reducer<"subscription"> = (c, e) => {
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
};

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

function updateSubscription(c: Change, e: Extract<EventOf<"subscription">, { op: "update" }>): void {
  const old = c.state.subscriptions.get(e.stream_id);
  if (!old) throw new Error(`no subscription to channel ${e.stream_id}`);
  if (e.property === "in_home_view") return; // the older form of is_muted
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

export const folder: Reducer<"channel_folder"> = (c, e) => {
  const folders = c.state.folders;
  if (e.op === "add") folders.set(e.channel_folder.id, e.channel_folder);
  else if (e.op === "update") folders.set(e.channel_folder_id, { ...folders.get(e.channel_folder_id)!, ...e.data });
  else if (e.op === "reorder") for (const [order, id] of e.order.entries()) folders.set(id, { ...folders.get(id)!, order });
  else unknownOp(e);
  c.touch("folders");
};

export const topicPolicy: Reducer<"user_topic"> = (c, e) => {
  const { stream_id, topic_name, last_updated, visibility_policy } = e;
  setTopicPolicy(c.state, { stream_id, topic_name, last_updated, visibility_policy });
  c.touch("topicPolicies");
  refilterHome(c);
};

// refilterHome marks the lists without muted messages as stale: they may now contain messages that are not known here.
export function refilterHome(c: Change): void {
  for (const list of c.state.lists.values()) {
    const home = list.terms.some((t) => t.operator === "in" || (t.operator === "is" && ["muted", "followed"].includes(String(t.operand))));
    if (home) changeList(c, list.key, { stale: true });
  }
  refilter(c, []);
}
