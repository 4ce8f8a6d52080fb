// Every event of the queue: one table from the type of an event to the function that applies it to the state. The
// functions are pure but for the state that they are given: no clock, no network, no browser.
import type { EventOf, EventType, ServerEvent } from "../api/types.ts";
import { replace, type Reducer } from "./reducer.ts";
import * as channels from "./reducers_channels.ts";
import * as lists from "./reducers_lists.ts";
import * as messages from "./reducers_messages.ts";
import * as organization from "./reducers_organization.ts";
import * as people from "./reducers_people.ts";
import type { Change, Part, State } from "./state.ts";

// nothing is the reducer of events about things that the page does not show.
const nothing = (): void => {};

// The compiler demands a reducer for each type of event that the server can send.
const reducers: { [T in EventType]: Reducer<T> } = {
  alert_words: (c, e) => replace(c, "alertWords", e.alert_words),
  attachment: lists.attachment,
  call: nothing, // compose/calls.ts rings
  channel_folder: channels.folder,
  custom_profile_fields: people.profileFields,
  default_stream_groups: nothing,
  default_streams: (c, e) => replace(c, "defaultChannels", e.default_streams),
  delete_message: messages.deleted,
  device: nothing,
  drafts: lists.draft,
  heartbeat: nothing,
  invites_changed: (c) => replace(c, "invitesVersion", c.state.invitesVersion + 1),
  message: messages.arrived,
  muted_topics: nothing, // topicPolicies holds the same
  muted_users: people.muted,
  navigation_view: nothing,
  onboarding_steps: (c, e) => replace(c, "hints", e.onboarding_steps.map((x) => x.name)),
  presence: people.presence,
  reaction: messages.reaction,
  realm: organization.changed,
  realm_bot: people.bot,
  realm_domains: organization.domain,
  realm_emoji: organization.emoji,
  realm_export: (c, e) => replace(c, "exports", e.exports),
  realm_export_consent: organization.exportConsent,
  realm_linkifiers: (c, e) => replace(c, "linkifiers", e.realm_linkifiers),
  realm_playgrounds: (c, e) => replace(c, "playgrounds", e.realm_playgrounds),
  realm_user: people.user,
  realm_user_settings_defaults: organization.defaultSetting,
  reminders: lists.reminder,
  restart: organization.restarted,
  saved_snippets: lists.snippet,
  scheduled_messages: lists.scheduled,
  stream: channels.channel,
  submessage: messages.submessage,
  subscription: channels.subscription,
  typing: messages.typing,
  typing_edit_message: nothing,
  update_message: messages.updated,
  update_message_flags: messages.flags,
  user_group: people.group,
  user_settings: organization.userSetting,
  user_status: people.status,
  user_topic: channels.topicPolicy,
  web_reload_client: nothing, // the loop of the queue reads it
};

function reduce<T extends EventType>(c: Change, type: T, e: EventOf<T>): void {
  if (!Object.hasOwn(reducers, type)) throw new Error("unknown event type"); // a newer server sends it
  reducers[type](c, e);
}

// apply applies events in order and returns the parts that changed. An event that the table does not have, or whose
// function fails, is reported to onError; the others are applied all the same.
export function apply(
  state: State,
  events: readonly ServerEvent[],
  now: number,
  onError: (e: ServerEvent, err: unknown) => void,
): Set<Part> {
  const changed = new Set<Part>();
  const c: Change = { state, now, touch: (part) => changed.add(part) };
  for (const e of events) {
    try {
      reduce(c, e.type, e);
    } catch (err) {
      onError(e, err);
    }
    state.queue.last = Math.max(state.queue.last, e.id);
  }
  return changed;
}
