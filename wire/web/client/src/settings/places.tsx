// Where data goes: each place outside the server to which data of the organization can go, with the switch that closes it.
import { useEffect, useState } from "preact/hooks";
import { changeRealm } from "../api/administration.ts";
import * as api from "../api/places.ts";
import { Card } from "../forms/forms.tsx";
import { Switch } from "../forms/fields.tsx";
import { t } from "../i18n/text.ts";
import { attempt } from "../store/actions.ts";
import { read } from "../store/store.ts";
import { formatDate } from "../ui/time.ts";

// Values of the settings that are not only a switch: of a closed place, and the one that opens it again.
const values: Record<string, { closed: unknown; open: unknown }> = {
  default_avatar_source: { closed: "J", open: "G" },
  gif_rating_policy: { closed: 0, open: 1 },
  video_chat_provider: { closed: 0, open: 1 },
};
const byAdministrators = ["default_avatar_source", "gif_rating_policy", "inline_url_embed_preview", "message_content_allowed_in_email_notifications", "video_chat_provider"];

export function Places() {
  const { is_admin } = read("me");
  const [state, setState] = useState<api.Places | null>(null);
  useEffect(() => {
    if (is_admin) void attempt(api.getPlaces()).then((x) => setState(x ?? null));
  }, [is_admin]);
  if (!is_admin) return <p class="quiet">{t("Only owners and administrators can see where data goes.")}</p>;
  if (!state) return <p aria-busy="true" />;
  const shown = (configured: boolean) => state.places.filter((p) => p.configured === configured).map((p) => <PlaceRow key={p.name} place={p} />);
  return (
    <>
      <p>{t("These are the places outside this server to which data of the organization can go. Owners decide which of them are allowed.")}</p>
      <Card title={t("Set up on this server")}>{shown(true)}</Card>
      <Card title={t("Not set up on this server")}>{shown(false)}</Card>
    </>
  );
}

function PlaceRow({ place: p }: { place: api.Place }) {
  const [title, what] = describe(p.name);
  const hosts = p.hosts.map((h) => (h === "*" ? t("addresses that users choose") : h));
  const parts = [what];
  if (hosts.length > 0) parts.push(t("Goes to: {hosts}", { hosts: hosts.join(", ") }));
  if (p.last_used) parts.push(t("Last time: {time}", { time: formatDate(p.last_used) }));
  if (!p.setting)
    return (
      <div class="field">
        <span class="grow">
          {title}
          <small>{[...parts, t("Only the operator of the server can change this.")].join(" ")}</small>
        </span>
      </div>
    );
  return <PlaceSwitch place={p} label={title} help={parts.join(" ")} setting={p.setting} />;
}

function PlaceSwitch({ place: p, label, help, setting }: { place: api.Place; label: string; help: string; setting: string }) {
  const { is_owner } = read("me");
  const of = values[setting] ?? { closed: false, open: true };
  const now = (read("realm") as unknown as Record<string, unknown>)[`realm_${setting}`];
  const disabled = !is_owner && !byAdministrators.includes(setting);
  return <Switch label={label} help={help} value={now === undefined ? p.open : now !== of.closed} disabled={disabled} save={(on) => changeRealm({ [setting]: on ? of.open : of.closed })} />;
}

// describe returns the title of a place and what goes there. Places that this page does not know keep their names.
function describe(name: string): [title: string, what: string] {
  switch (name) {
    case "mobile_push":
      return [t("Notifications of phones"), t("Senders, channels, topics and texts of messages go to the push services of the phones.")];
    case "browser_push":
      return [t("Notifications of browsers"), t("Encrypted notifications go to the push service of each browser.")];
    case "link_previews":
      return [t("Previews of linked websites"), t("The server fetches the pages that messages link to.")];
    case "external_pictures":
      return [t("Pictures of other sites"), t("The server fetches pictures of other sites that messages show.")];
    case "gravatar":
      return ["Gravatar", t("Browsers load profile pictures with a hash of the email address. The switch is for new accounts.")];
    case "gif_provider":
      return [t("Animated pictures"), t("The words that users search for go to the provider.")];
    case "model":
      return [t("Summaries"), t("Senders and texts of messages go to a language model when users ask for a summary.")];
    case "translation":
      return [t("Translations"), t("Texts of messages go to a service when users ask for a translation.")];
    case "vectors":
      return [t("Search by meaning"), t("Texts of all messages, and the words that users search for.")];
    case "message_emails":
      return [t("Emails about messages"), t("Emails tell users of messages that they missed.")];
    case "message_email_content":
      return [t("Emails contain the text of messages"), t("These emails contain senders, topics and texts.")];
    case "account_emails":
      return [t("Emails about accounts"), t("Invitations, confirmations, logins and new passwords.")];
    case "incoming_email":
      return [t("Incoming emails"), t("The server reads replies and emails to channels, and asks DNS about their senders.")];
    case "outgoing_webhooks":
      return [t("Services of bots"), t("Messages to bots go to the services of their owners.")];
    case "livekit":
      return [t("Calls"), t("Names, pictures and voices of the people in calls.")];
    case "jitsi":
      return [t("Video calls with Jitsi"), t("Browsers open calls at the Jitsi server.")];
    case "login_providers":
      return [t("Login providers"), t("Users log in there; names and email addresses come from there.")];
    case "scim":
      return ["SCIM", t("An identity provider reads and changes users and groups.")];
    case "file_bucket":
      return [t("Storage of files"), t("Uploaded files, pictures and exports.")];
    case "backup_bucket":
      return [t("Storage of backups"), t("Encrypted backups of all data.")];
    case "virus_scanner":
      return [t("Virus scanner"), t("Uploaded files are examined there.")];
    case "cluster":
      return [t("Other servers of the operator"), t("All data goes to the other servers of the cluster.")];
    case "certificates":
      return [t("Certificate authority"), t("The host names of this server.")];
  }
  return [name, ""];
}
