// The settings of the organization about messages, automatic messages, emails and guests.
import { languageNames } from "../i18n/languages.ts";
import { t } from "../i18n/text.ts";
import { read } from "../store/store.ts";
import { Allowed, Card } from "../forms/forms.tsx";
import { RealmChannel, RealmChoice, RealmLimit, RealmSwitch, RealmText, type Option } from "./realm_fields.tsx";

function choices(of: Record<string, { id: number; name: string }> = {}): Option<number>[] {
  return Object.values(of).map((x) => ({ value: x.id, label: x.name }));
}

// weekday returns the name of a day; 0 is Monday (protocol).
function weekday(n: number): string {
  return new Intl.DateTimeFormat(document.documentElement.lang, { weekday: "long", timeZone: "UTC" }).format(new Date(Date.UTC(2024, 0, 1 + n)));
}

export function OrganizationSettings() {
  const realm = read("realm");
  const pictures = Boolean(realm.giphy_api_key || realm.tenor_api_key || realm.klipy_api_key);
  const ratings = pictures ? choices(realm.gif_rating_policy_options) : []; // without a provider, no client offers them
  const providers = choices(realm.realm_available_video_chat_providers).map((x) => (x.value === 0 ? { ...x, label: t("None") } : x));
  return (
    <Allowed when={read("me").is_admin} reason={t("Only administrators can change this.")}>
      <Card title={t("Messages")}>
        <RealmChoice
          name="topics_policy"
          label={t("Messages without a topic")}
          options={[
            { value: "allow_empty_topic", label: t("Allowed") },
            { value: "disable_empty_topic", label: t("Not allowed") },
          ]}
        />
        <RealmSwitch name="allow_message_editing" label={t("Allow message editing")} />
        <RealmLimit name="message_content_edit_limit_seconds" label={t("Time limit for editing messages")} />
        <RealmLimit name="message_content_delete_limit_seconds" label={t("Time limit for deleting messages")} />
        <RealmLimit name="move_messages_within_stream_limit_seconds" label={t("Time limit for moving messages to another topic")} />
        <RealmLimit name="move_messages_between_streams_limit_seconds" label={t("Time limit for moving messages to another channel")} />
        <RealmChoice
          name="message_edit_history_visibility_policy"
          label={t("Edit history")}
          options={[
            { value: "all", label: t("Edits and moves are shown") },
            { value: "moves", label: t("Only moves are shown") },
            { value: "none", label: t("Not shown") },
          ]}
        />
        <RealmSwitch name="enable_read_receipts" label={t("Read receipts")} />
        {(realm.server_assistant?.summaries || realm.server_assistant?.translations) && (
          <RealmSwitch
            name="assistant_enabled"
            label={t("Allow summaries and translations")}
            help={t("Texts of messages are sent to services that the operator of this server has chosen.")}
            disabled={!read("me").is_owner}
          />
        )}
        {realm.server_assistant?.search_by_meaning && (
          <RealmSwitch
            name="meaning_search_enabled"
            label={t("Allow search by meaning")}
            help={t("The texts of all messages, also of private channels and direct messages, are sent to a service that the operator of this server has chosen.")}
            disabled={!read("me").is_owner}
          />
        )}
        <RealmSwitch name="presence_disabled" label={t("Do not show when users are active")} />
      </Card>
      <Card title={t("Previews and calls")}>
        <RealmSwitch name="inline_image_preview" label={t("Show previews of images and videos")} />
        <RealmSwitch name="inline_url_embed_preview" label={t("Show previews of linked websites")} />
        <RealmChoice name="media_preview_size" label={t("Size of previews")} options={[100, 150, 200].map((n) => ({ value: n, label: `${n} %` }))} />
        {ratings.length > 0 && <RealmChoice name="gif_rating_policy" label={t("Animated pictures")} options={ratings} />}
        <RealmChoice name="video_chat_provider" label={t("Video calls")} options={providers} />
        <RealmText
          form="jitsi"
          name="jitsi_server_url"
          label={t("Address of the Jitsi server")}
          help={realm.server_jitsi_server_url ? t("Empty: the one of this server.") : t("Without an address there are no video calls.")}
          kind="url"
          button={t("Save address")}
          convert={(text) => JSON.stringify(text || "default")}
        />
        <RealmText form="code-language" name="default_code_block_language" label={t("Language of code blocks without one")} button={t("Save language")} />
      </Card>
      <Card title={t("Automatic messages")}>
        <RealmChannel name="new_stream_announcements_stream_id" label={t("Announce new channels in")} />
        <RealmChannel name="signup_announcements_stream_id" label={t("Announce new users in")} />
        <RealmChannel name="zulip_update_announcements_stream_id" label={t("Announce news of the server in")} />
        <RealmChannel name="moderation_request_channel_id" label={t("Send reports of messages to")} privateOnly />
        <RealmSwitch name="send_channel_events_messages" label={t("Send channel events messages")} />
        <RealmText form="welcome-message" name="welcome_message_custom_text" label={t("Welcome message")} help={t("The Welcome Bot adds it to its first message to new users.")} kind="area" button={t("Save message")} />
      </Card>
      <Card title={t("Language and emails")}>
        <RealmChoice
          name="default_language"
          label={t("Language of new users and of automatic messages")}
          options={Object.entries({ ...named(String(realm.realm_default_language)), ...languageNames }).map(([value, label]) => ({ value, label }))}
        />
        <RealmSwitch name="digest_emails_enabled" label={t("Send weekly digest emails to inactive users")} />
        <RealmChoice name="digest_weekday" label={t("Day of the digests")} options={[0, 1, 2, 3, 4, 5, 6].map((n) => ({ value: n, label: weekday(n) }))} />
        <RealmSwitch name="send_welcome_emails" label={t("Send emails to new users")} />
        <RealmSwitch name="message_content_allowed_in_email_notifications" label={t("Emails contain the text of messages")} />
        <RealmSwitch name="require_e2ee_push_notifications" label={t("Require end-to-end encryption for mobile notifications")} />
      </Card>
      <Card title={t("Guests")}>
        <RealmSwitch name="enable_guest_user_indicator" label={t("Mark the names of guests")} />
        <RealmSwitch name="enable_guest_user_dm_warning" label={t("Warn users when they direct message a guest")} />
      </Card>
    </Allowed>
  );
}

function named(code: string): Record<string, string> {
  return code in languageNames ? {} : { [code]: code };
}
