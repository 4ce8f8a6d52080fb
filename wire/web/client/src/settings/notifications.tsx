// The notifications of the user: their reasons and their ways.
import { useSignal } from "@preact/signals";
import { t } from "../i18n/text.ts";
import { read } from "../store/store.ts";
import { askPermission, permission } from "../notify/desktop.ts";
import { pushState, startPush, stopPush } from "../notify/push.ts";
import { playSound } from "../notify/sounds.ts";
import { UserChoice, UserSwitch } from "../forms/fields.tsx";
import { Card } from "../forms/forms.tsx";

export function Notifications() {
  return (
    <>
      <Permission />
      <NotificationFields />
    </>
  );
}

// NotificationFields are the settings that do not depend on the browser.
export function NotificationFields() {
  const sounds = read("settings").available_notification_sounds ?? [];
  return (
    <>
      <Card title={t("Direct messages and mentions")}>
        <UserSwitch name="enable_desktop_notifications" label={t("Desktop notifications")} />
        <UserSwitch name="enable_sounds" label={t("Sounds")} />
        <UserSwitch name="enable_offline_push_notifications" label={t("Mobile notifications")} />
        <UserSwitch name="enable_offline_email_notifications" label={t("Emails")} />
        <UserSwitch name="wildcard_mentions_notify" label={t("Also when everyone is mentioned")} />
      </Card>
      <Card title={t("Messages in channels")}>
        <UserSwitch name="enable_stream_desktop_notifications" label={t("Desktop notifications of channels")} />
        <UserSwitch name="enable_stream_audible_notifications" label={t("Sounds of channels")} />
        <UserSwitch name="enable_stream_push_notifications" label={t("Mobile notifications of channels")} />
        <UserSwitch name="enable_stream_email_notifications" label={t("Emails of channels")} />
      </Card>
      <Card title={t("Followed topics")}>
        <UserSwitch name="enable_followed_topic_desktop_notifications" label={t("Desktop notifications of followed topics")} />
        <UserSwitch name="enable_followed_topic_audible_notifications" label={t("Sounds of followed topics")} />
        <UserSwitch name="enable_followed_topic_push_notifications" label={t("Mobile notifications of followed topics")} />
        <UserSwitch name="enable_followed_topic_email_notifications" label={t("Emails of followed topics")} />
      </Card>
      <Card title={t("More")}>
        <UserChoice name="notification_sound" label={t("Sound")} options={["none", ...sounds].map((s) => ({ value: s, label: s }))} />
        <button type="button" class="button quiet" onClick={() => playSound(String(read("settings").notification_sound ?? "zulip"))}>
          {t("Play the sound")}
        </button>
        <UserChoice
          name="desktop_icon_count_display"
          label={t("Unread count badge")}
          options={[
            { value: 1, label: t("All unread messages") },
            { value: 2, label: t("Direct messages, mentions and followed topics") },
            { value: 3, label: t("Direct messages and mentions") },
            { value: 4, label: t("None") },
          ]}
        />
        <UserSwitch name="enable_online_push_notifications" label={t("Send mobile notifications even if you are online")} />
        <UserSwitch name="pm_content_in_desktop_notifications" label={t("Show the text of direct messages")} />
        <UserSwitch name="enable_login_emails" label={t("Emails about new logins")} />
        <UserSwitch name="enable_digest_emails" label={t("Digest emails")} />
        <UserSwitch name="message_content_in_email_notifications" label={t("Emails contain the text of messages")} />
        <UserChoice
          name="email_notifications_batching_period_seconds"
          label={t("Emails about messages are sent")}
          options={[
            { value: 30, label: t("After half a minute") },
            { value: 60, label: t("After one minute") },
            { value: 120, label: t("After two minutes") },
            { value: 300, label: t("After five minutes") },
            { value: 900, label: t("After fifteen minutes") },
            { value: 3600, label: t("After one hour") },
          ]}
        />
      </Card>
      <Card title={t("Topics")}>
        <UserChoice name="automatically_follow_topics_policy" label={t("Follow topics automatically")} options={participation()} />
        <UserChoice name="automatically_unmute_topics_in_muted_streams_policy" label={t("Unmute topics in muted channels automatically")} options={participation()} />
        <UserSwitch name="automatically_follow_topics_where_mentioned" label={t("Follow topics in which you are mentioned")} />
        <UserSwitch name="enable_followed_topic_wildcard_mentions_notify" label={t("Notify when everyone is mentioned in a followed topic")} />
        <UserChoice
          name="resolved_topic_notice_auto_read_policy"
          label={t("Notices of resolved topics are read at once")}
          options={[
            { value: "always", label: t("Always") },
            { value: "except_followed", label: t("Except in followed topics") },
            { value: "never", label: t("Never") },
          ]}
        />
      </Card>
    </>
  );
}

// participation are the occasions at which topics are followed or unmuted (protocol).
function participation(): { value: number; label: string }[] {
  return [
    { value: 1, label: t("When you take part in any way") },
    { value: 2, label: t("When you send a message") },
    { value: 3, label: t("When you start the topic") },
    { value: 4, label: t("Never") },
  ];
}

// Permission shows whether this browser allows notifications, and lets it ask the user.
function Permission() {
  switch (permission.value) {
    case "granted":
      return (
        <>
          <p role="status">{t("This browser shows notifications.")}</p>
          <WhileClosed />
        </>
      );
    case "denied":
      return <p role="status">{t("This browser blocks notifications. Allow them for this site in its settings.")}</p>;
    case "unsupported":
      return <p role="status">{t("This browser has no notifications.")}</p>;
  }
  return (
    <p class="with-button">
      {t("This browser has not been asked for notifications yet.")}
      <button type="button" class="button quiet" onClick={() => void askPermission()}>
        {t("Allow notifications")}
      </button>
    </p>
  );
}

// WhileClosed switches notifications on and off that arrive while no page is open.
function WhileClosed() {
  const failed = useSignal("");
  if (pushState.value === "unsupported") return null;
  const on = pushState.value === "on";
  const change = async () => {
    failed.value = "";
    try {
      await (on ? stopPush() : startPush());
    } catch (err) {
      failed.value = err instanceof Error ? err.message : String(err);
    }
  };
  return (
    <>
      <label class="field switch">
        <input type="checkbox" checked={on} onChange={() => void change()} />
        <span class="grow">{t("Also while no page is open, in this browser")}</span>
      </label>
      {failed.value && <p role="alert">{t("The browser did not subscribe: {reason}", { reason: failed.value })}</p>}
    </>
  );
}
