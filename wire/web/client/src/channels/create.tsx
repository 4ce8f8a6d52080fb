// The form for new channels, #channels/new: access, place, subscribers and all permissions.
import { useState } from "preact/hooks";
import { createChannel, findChannel, type NewChannel } from "../api/channels.ts";
import { errorText, jsonString } from "../api/client.ts";
import type { GroupSetting, Limits } from "../api/types.ts";
import { t } from "../i18n/text.ts";
import { PeopleField } from "../people/people_field.tsx";
import { go } from "../store/router.ts";
import { Choice } from "../forms/fields.tsx";
import { GroupChoice } from "../people/group_choice.tsx";
import { may, permissionOf } from "../store/queries.ts";
import { peek, read } from "../store/store.ts";
import { labelOf, Retention } from "./settings.tsx";

function privacies(): { value: NewChannel["privacy"]; label: string; help: string; shown: boolean }[] {
  const spectators = Boolean(read("realm").realm_enable_spectator_access);
  const mayPrivate = may("can_create_private_channel_group");
  return [
    { value: "public", label: t("Public"), help: t("Members can join and read all messages."), shown: may("can_create_public_channel_group") },
    { value: "web", label: t("Web-public"), help: t("Readable for everyone on the internet."), shown: spectators && may("can_create_web_public_channel_group") },
    { value: "private-shared", label: t("Private, shared history"), help: t("By invitation; new subscribers can read older messages."), shown: mayPrivate },
    { value: "private", label: t("Private, protected history"), help: t("By invitation; new subscribers see only new messages."), shown: mayPrivate },
  ];
}

export function NewChannelForm() {
  const me = read("me");
  const realm = read("realm");
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const [users, setUsers] = useState([me.user_id]);
  const [texts, setTexts] = useState({ name: "", description: "" });
  const [chosen, setChosen] = useState<NewChannel["privacy"] | null>(null); // else the first that is shown
  const [announce, setAnnounce] = useState(false);
  const [isDefault, setIsDefault] = useState(false);
  const [more, setMore] = useState<Record<string, unknown>>({});
  const change = (name: string) => (value: unknown) => {
    setMore((now) => ({ ...now, [name]: value }));
    return Promise.resolve();
  };
  const shown = privacies().filter((x) => x.shown);
  const privacy = chosen ?? shown[0]?.value;
  const submit = (e: SubmitEvent): void => {
    e.preventDefault();
    const name = texts.name.trim();
    if (busy || !privacy) return;
    if ([...peek().channels.values()].some((c) => c.name.toLowerCase() === name.toLowerCase())) {
      return setError(t("A channel of this name exists."));
    }
    setBusy(true);
    const params = { ...more, is_default_stream: isDefault || undefined };
    const open = (): Promise<void> => findChannel(name).then((a) => go(`#narrow/channel/${a.stream_id}`));
    createChannel({ name, description: texts.description, privacy, announce, users, params })
      .then(open)
      .catch((err: unknown) => setError(errorText(err)))
      .finally(() => setBusy(false));
  };
  return (
    <form class="dialog-text channel-form" data-form="create-channel" onSubmit={submit}>
      <label class="field">
        <span class="field-label">{t("Name")}</span>
        <input
          class="input"
          name="name"
          required
          autofocus
          maxLength={Number(realm.max_stream_name_length ?? 60)}
          value={texts.name}
          onInput={(e) => {
            setError("");
            setTexts({ ...texts, name: e.currentTarget.value });
          }}
        />
      </label>
      <label class="field">
        <span class="field-label">{t("Description")}</span>
        <input
          class="input"
          name="description"
          maxLength={Number(realm.max_stream_description_length ?? 1024)}
          value={texts.description}
          onInput={(e) => setTexts({ ...texts, description: e.currentTarget.value })}
        />
      </label>
      <fieldset>
        <legend>{t("Access")}</legend>
        {shown.map((x) => (
          <label class="field switch" key={x.value}>
            <input type="radio" name="privacy" value={x.value} required checked={x.value === privacy} onChange={() => setChosen(x.value)} />
            <span class="grow">
              {x.label}
              <small>{x.help}</small>
            </span>
          </label>
        ))}
      </fieldset>
      <fieldset>
        <legend>{t("Subscribers")}</legend>
        <PeopleField users={users} setUsers={setUsers} />
      </fieldset>
      <details class="more-settings">
        <summary>{t("More settings and permissions")}</summary>
        <Place values={more} change={change} />
        <label class="field switch">
          <input type="checkbox" name="announce" checked={announce} onChange={(e) => setAnnounce(e.currentTarget.checked)} />
          <span class="grow">{t("Announce new channel")}</span>
        </label>
        {me.is_admin && (
          <label class="field switch">
            <input type="checkbox" name="default" checked={isDefault} onChange={(e) => setIsDefault(e.currentTarget.checked)} />
            <span class="grow">{t("New users are subscribed")}</span>
          </label>
        )}
        <Permissions values={more} change={change} />
      </details>
      {error && (
        <p class="send-error" role="alert">
          {error}
        </p>
      )}
      <footer class="dialog-foot">
        <button type="button" class="button quiet" onClick={() => go("#channels/all")}>
          {t("Cancel")}
        </button>
        <button type="submit" class="button" disabled={busy}>
          {t("Create")}
        </button>
      </footer>
    </form>
  );
}

interface Part {
  values: Record<string, unknown>;
  change: (name: string) => (value: unknown) => Promise<unknown>;
}

// Place has the folder, the use of topics, and how long messages are kept.
function Place({ values, change }: Part) {
  const folders = [...read("folders").values()].filter((f) => !f.is_archived).sort((a, b) => a.order - b.order);
  const retention = values.message_retention_days;
  const kept = retention === jsonString("unlimited") ? -1 : typeof retention === "number" ? retention : null;
  return (
    <>
      <Choice<number>
        plain
        label={t("Folder")}
        value={Number(values.folder_id ?? 0)}
        options={[{ value: 0, label: t("No folder") }, ...folders.map((f) => ({ value: f.id, label: f.name }))]}
        save={(v) => change("folder_id")(v || undefined)}
      />
      {may("can_set_topics_policy_group") && (
        <Choice<string> plain label={t("Messages without a topic")} value={String(values.topics_policy ?? "inherit")} options={topicsPolicies()} save={change("topics_policy")} />
      )}
      {read("me").is_owner && <Retention plain value={kept} save={change("message_retention_days")} />}
    </>
  );
}

// topicsPolicies are the ways in which a channel can use topics.
export function topicsPolicies(): { value: string; label: string }[] {
  return [
    { value: "inherit", label: t("As in the organization") },
    { value: "allow_empty_topic", label: t("Allowed") },
    { value: "disable_empty_topic", label: t("Not allowed") },
    { value: "empty_topic_only", label: t("Only these: the channel has no topics") },
  ];
}

// Permissions are sent only if they were changed: the server knows the defaults.
function Permissions({ values, change }: Part) {
  const all = read("realm").server_supported_permission_settings?.stream ?? {};
  const groups = [...read("groups").values()];
  const initial = (limits: Limits): GroupSetting =>
    groups.find((g) => g.is_system_group && g.name === limits.default_group_name)?.id ?? { direct_members: [read("me").user_id], direct_subgroups: [] };
  return (
    <fieldset>
      <legend>{t("Permissions")}</legend>
      {Object.entries(all).map(([name, limits]) => (
        <GroupChoice plain key={name} label={labelOf(name)} value={permissionOf(values, name) ?? initial(limits)} limits={limits} save={change(name)} />
      ))}
    </fieldset>
  );
}
