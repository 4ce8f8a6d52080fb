// Every event of the queue: one table from the type of an event to the function that applies it to the state. The
// functions are pure but for the state that they are given: no clock, no network, no browser.
import type { ServerEvent } from "../api/types.ts";
import { replacePart, replaceValues } from "./reducers_lists.ts";
import * as channels from "./reducers_channels.ts";
import * as lists from "./reducers_lists.ts";
import * as messages from "./reducers_messages.ts";
import * as organization from "./reducers_organization.ts";
import * as people from "./reducers_people.ts";
import type { Change, Part, State } from "./state.ts";

export type Reducer = (c: Change, e: ServerEvent) => void;

const nothing: Reducer = () => {};

export const reducers: Record<string, Reducer> = {
  alert_words: replacePart("alertWords", "alert_words"),
  attachment: lists.attachment,
  channel_folder: channels.folder,
  custom_profile_fields: people.profileFields,
  default_stream_groups: replacePart("defaultChannelGroups", "default_stream_groups"),
  default_streams: replacePart("defaultChannels", "default_streams"),
  delete_message: messages.deleted,
  device: lists.device,
  drafts: lists.draft,
  has_webex_token: replaceValues("has_webex_token"),
  has_zoom_token: replaceValues("has_zoom_token"),
  heartbeat: nothing,
  invites_changed: (c) => {
    c.state.invitesVersion++;
    c.touch("invitesVersion");
  },
  message: messages.arrived,
  muted_topics: nothing, // topicPolicies holds the same
  muted_users: people.muted,
  navigation_view: lists.navigation,
  onboarding_steps: replacePart("onboarding", "onboarding_steps"),
  presence: people.presence,
  reaction: messages.reaction,
  realm: organization.changed,
  realm_bot: people.bot,
  realm_domains: organization.domain,
  realm_emoji: organization.emoji,
  realm_export: replacePart("exports", "exports"),
  realm_export_consent: organization.exportConsent,
  realm_linkifiers: replacePart("linkifiers", "realm_linkifiers"),
  realm_playgrounds: replacePart("playgrounds", "realm_playgrounds"),
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
  typing_edit_message: messages.typingEdit,
  update_message: messages.updated,
  update_message_flags: messages.flags,
  user_group: people.group,
  user_settings: organization.userSetting,
  user_status: people.status,
  user_topic: channels.topicPolicy,
  web_reload_client: nothing, // the loop of the queue reads it
};

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
    const reducer = reducers[e.type];
    try {
      if (reducer) reducer(c, e);
      else onError(e, new Error("unknown event type"));
    } catch (err) {
      onError(e, err);
    }
    state.queue.last = Math.max(state.queue.last, e.id);
  }
  return changed;
}
