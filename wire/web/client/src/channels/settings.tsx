// The page of one channel in the window #channels: #channels/ID/NAME/TAB, with the tabs general, personal, permissions
// and subscribers.
import { useEffect, useState } from "preact/hooks";
import * as api from "../api/channels.ts";
import { errorText, jsonString } from "../api/client.ts";
import { changeSubscription } from "../api/endpoints.ts";
import type { Channel, NamesOf, SettingOf, Subscription } from "../api/types.ts";
import { plural, t } from "../i18n/text.ts";
import { hashOfChannel } from "../store/narrow.ts";
import { loadMembers } from "../store/members.ts";
import { attempt } from "../store/actions.ts";
import { mayInChannel, permissionOf } from "../store/queries.ts";
import { peek, read } from "../store/store.ts";
import { PersonName } from "../people/card.tsx";
import { FoundPeople, PeopleList, PersonForm } from "../people/pick.tsx";
import { isShort } from "../store/people.ts";
import { Choice, Switch } from "../forms/fields.tsx";
import { Allowed, SettingsForm } from "../forms/forms.tsx";
import { GroupChoice } from "../people/group_choice.tsx";
import { Confirm, openDialog } from "../ui/dialogs.tsx";
import { ColourChoice } from "./colours.tsx";
import { topicsPolicies } from "./create.tsx";
import { formatDate } from "../ui/time.ts";

function mayAdminister(c: Channel): boolean {
  return read("me").is_admin || mayInChannel(c, "can_administer_channel_group");
}

export function ChannelPage({ channel: c, tab }: { channel: Channel; tab: string | undefined }) {
  const sub = read("subscriptions").get(c.stream_id);
  const tabs = [
    { name: "general", title: t("General"), draw: () => <General channel={c} /> },
    ...(sub ? [{ name: "personal", title: t("Personal"), draw: () => <Personal sub={sub} /> }] : []),
    { name: "permissions", title: t("Permissions"), draw: () => <ChannelPermissions channel={c} /> },
    { name: "subscribers", title: t("Subscribers"), draw: () => <Subscribers channel={c} /> },
  ];
  const current = tabs.find((x) => x.name === tab) ?? tabs[0]!;
  return (
    <>
      <nav class="channel-tools" aria-label={t("Sections")}>
        <a class="button small quiet" href="#channels/all">
          {t("All channels")}
        </a>
        {tabs.map((x) => (
          <a key={x.name} class="button small quiet" href={`#channels/${c.stream_id}/${encodeURIComponent(c.name)}/${x.name}`} aria-current={x === current ? "page" : undefined}>
            {x.title}
          </a>
        ))}
      </nav>
      <div class="dialog-text" key={`${c.stream_id} ${current.name}`}>
        <h3 class="settings-title">{current.title}</h3>
        {current.draw()}
      </div>
    </>
  );
}

type Privacy = api.NewChannel["privacy"];

function privacyOf(c: Channel): Privacy {
  if (c.is_web_public) return "web";
  if (!c.invite_only) return "public";
  return c.history_public_to_subscribers ? "private-shared" : "private";
}

function General({ channel: c }: { channel: Channel }) {
  const id = c.stream_id;
  const realm = read("realm");
  const may = mayAdminister(c) && !c.is_archived;
  const set = (params: Record<string, unknown>): Promise<unknown> => api.changeChannel(id, params);
  const folders = [...read("folders").values()].filter((f) => !f.is_archived || f.id === c.folder_id).sort((a, b) => a.order - b.order);
  return (
    <>
      {c.is_archived && <p class="quiet">{t("The channel is archived.")}</p>}
      <p class="quiet">
        {c.creator_id ? <CreatedBy user={c.creator_id} date={formatDate(c.date_created)} /> : t("Created on {date}", { date: formatDate(c.date_created) })}
      </p>
      <a class="button small quiet" href={hashOfChannel(id, peek())}>
        {t("Go to the channel")}
      </a>
      <Allowed when={may} reason={t("You cannot change this channel.")}>
        <SettingsForm
          form="change-channel"
          button={t("Save")}
          keep
          stored
          fields={[
            { name: "name", label: t("Name"), value: c.name, required: true },
            { name: "description", label: t("Description"), kind: "area", value: c.description },
          ]}
          run={(v) => set({ new_name: v.text("name") === c.name ? undefined : v.text("name"), description: v.text("description") })}
        />
        <Choice<Privacy>
          label={t("Access")}
          value={privacyOf(c)}
          options={[
            { value: "public", label: t("Public") },
            ...(realm.realm_enable_spectator_access || c.is_web_public ? [{ value: "web" as const, label: t("Web-public") }] : []),
            { value: "private-shared", label: t("Private, shared history") },
            { value: "private", label: t("Private, protected history") },
          ]}
          save={(v) => set({ is_private: v.startsWith("private"), is_web_public: v === "web", history_public_to_subscribers: v !== "private" })}
        />
        <Choice
          label={t("Messages without a topic")}
          value={c.topics_policy}
          options={topicsPolicies()}
          save={(v) => set({ topics_policy: v })}
        />
        <Choice
          label={t("Folder")}
          value={c.folder_id ?? 0}
          options={[{ value: 0, label: t("No folder") }, ...folders.map((f) => ({ value: f.id, label: f.name }))]}
          save={(v) => set({ folder_id: v || null })}
        />
        <Retention value={c.message_retention_days ?? null} disabled={!read("me").is_owner} save={(v) => set({ message_retention_days: v })} />
        <Switch
          label={t("New users are subscribed")}
          value={read("defaultChannels").includes(id)}
          disabled={!read("me").is_admin || c.invite_only}
          save={(v) => set({ is_default_stream: v })}
        />
        {may && (
          <button type="button" class="button danger" onClick={() => askArchive(c)}>
            {t("Archive channel")}
          </button>
        )}
      </Allowed>
      {c.is_archived && mayAdminister(c) && (
        <button type="button" class="button" onClick={() => void attempt(set({ is_archived: false }))}>
          {t("Restore channel")}
        </button>
      )}
    </>
  );
}

// CreatedBy is a sentence with the name of a user, which opens their card. Each language has the name at its own place.
function CreatedBy({ user, date }: { user: number; date: string }) {
  const [before, after] = t("Created by {name} on {date}", { date }).split("{name}");
  return (
    <>
      {before}
      <PersonName id={user} />
      {after}
    </>
  );
}

const asOrganization = 0; // of the choices of a channel's retention
const forever = -1;

// Retention is the choice of how long a channel keeps messages; null is the time of the organization.
export function Retention(p: { value: number | null; disabled?: boolean; plain?: boolean; save: (v: number | string) => Promise<unknown> }) {
  const now = p.value ?? asOrganization;
  const usual = [asOrganization, forever, 7, 30, 90, 365];
  const days = usual.includes(now) ? usual : [...usual, now];
  const label = (n: number): string => (n === asOrganization ? t("As in the organization") : n === forever ? t("Forever") : plural(n, "{count} day", "{count} days"));
  return (
    <Choice
      label={t("Keep messages")}
      value={now}
      disabled={p.disabled}
      plain={p.plain}
      options={days.map((n) => ({ value: n, label: label(n) }))}
      save={(n) => p.save(n === asOrganization ? jsonString("realm_default") : n === forever ? jsonString("unlimited") : n)}
    />
  );
}

function askArchive(c: Channel): void {
  const text = t("Nobody can send messages to it afterwards. The messages stay readable.");
  const run = (): unknown => attempt(api.archive(c.stream_id));
  openDialog(<Confirm title={t("Archive {name}?", { name: c.name })} text={text} button={t("Archive")} danger run={run} />);
}

function notificationNames(): { name: NamesOf<Subscription, boolean>; label: string; normal: SettingOf<boolean> }[] {
  return [
    { name: "desktop_notifications", label: t("Desktop notifications"), normal: "enable_stream_desktop_notifications" },
    { name: "audible_notifications", label: t("Sounds"), normal: "enable_stream_audible_notifications" },
    { name: "push_notifications", label: t("Mobile notifications"), normal: "enable_stream_push_notifications" },
    { name: "email_notifications", label: t("Emails"), normal: "enable_stream_email_notifications" },
    { name: "wildcard_mentions_notify", label: t("Mentions of all subscribers"), normal: "wildcard_mentions_notify" },
  ];
}

function Personal({ sub }: { sub: Subscription }) {
  const set = (property: string, value: unknown): Promise<unknown> => changeSubscription({ stream_id: sub.stream_id, property, value });
  const settings = read("settings");
  return (
    <>
      <Switch label={t("Mute channel")} value={sub.is_muted} save={(v) => set("is_muted", v)} />
      <Switch label={t("Pin to the top")} value={sub.pin_to_top} save={(v) => set("pin_to_top", v)} />
      <div class="field">
        <span class="field-label">{t("Color")}</span>
        <ColourChoice channel={sub.stream_id} />
      </div>
      {notificationNames().map((n) => (
        <Choice
          key={n.name}
          label={n.label}
          value={sub[n.name] === null ? "" : String(sub[n.name])}
          options={[
            { value: "", label: settings[n.normal] ? t("As usual: on") : t("As usual: off") },
            { value: "true", label: t("On") },
            { value: "false", label: t("Off") },
          ]}
          save={(v) => set(n.name, v === "" ? null : v === "true")}
        />
      ))}
    </>
  );
}

// labelOf returns the name of a permission of channels.
export function labelOf(setting: string): string {
  switch (setting) {
    case "can_add_subscribers_group":
      return t("Subscribe others");
    case "can_administer_channel_group":
      return t("Administer the channel");
    case "can_create_topic_group":
      return t("Start topics");
    case "can_delete_any_message_group":
      return t("Delete any message");
    case "can_delete_own_message_group":
      return t("Delete their own messages");
    case "can_move_messages_out_of_channel_group":
      return t("Move messages to another channel");
    case "can_move_messages_within_channel_group":
      return t("Move messages to another topic");
    case "can_remove_subscribers_group":
      return t("Unsubscribe others");
    case "can_resolve_topics_group":
      return t("Resolve topics");
    case "can_send_message_group":
      return t("Send messages");
    case "can_subscribe_group":
      return t("Subscribe themselves");
  }
  return setting;
}

function ChannelPermissions({ channel: c }: { channel: Channel }) {
  const all = read("realm").server_supported_permission_settings?.stream ?? {};
  return (
    <Allowed when={mayAdminister(c) && !c.is_archived} reason={t("You cannot change the permissions of this channel.")}>
      {Object.entries(all).map(([name, limits]) => {
        const value = permissionOf(c, name);
        if (value === undefined) return null;
        return <GroupChoice key={name} label={labelOf(name)} value={value} limits={limits} save={(v) => api.changeChannel(c.stream_id, { [name]: { new: v } })} />;
      })}
    </Allowed>
  );
}

function Subscribers({ channel: c }: { channel: Channel }) {
  const id = c.stream_id;
  const [error, setError] = useState("");
  const members = read("members").get(id);
  const complete = members?.complete ?? false;
  const large = isShort() && !complete;
  useEffect(() => {
    if (!complete && !large) loadMembers(id).catch((err: unknown) => setError(errorText(err)));
  }, [id, complete, large]);
  const mayAdd = mayAdminister(c) || mayInChannel(c, "can_add_subscribers_group") || (!c.invite_only && read("subscriptions").has(id));
  const mayRemove = mayAdminister(c) || mayInChannel(c, "can_remove_subscribers_group");
  const me = read("me").user_id;
  if (error) return <p role="alert">{error}</p>;
  if (!large && (!members || !complete)) return <p aria-busy="true" />;
  const known = members?.ids ?? new Set<number>();
  const list = {
    label: t("Subscribers"),
    action: t("Unsubscribe"),
    may: (user: number) => mayRemove || user === me,
    run: (user: number) => (user === me ? api.unsubscribe(c.name) : api.removeSubscribers(c.name, [user])),
  };
  const count = large ? (c.subscriber_count ?? 0) : known.size;
  return (
    <>
      {mayAdd && !c.is_archived && (
        <PersonForm form="add-subscriber" title={t("Add subscribers")} button={t("Add")} without={large ? new Set() : known} run={(user) => api.addSubscribers(c.name, [user])} />
      )}
      {count > 0 && <h4>{plural(count, "{count} subscriber", "{count} subscribers")}</h4>}
      {large ? <FoundPeople {...list} of={{ channel_id: id }} /> : <PeopleList {...list} ids={[...known]} />}
    </>
  );
}
