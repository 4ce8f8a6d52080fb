// The setup page of integrations: choose a service, a channel and events; it creates the bot and shows the address
// that the service must call.
import { useState } from "preact/hooks";
import { BotType, createBot } from "../api/administration.ts";
import { t } from "../i18n/text.ts";
import { may } from "../store/queries.ts";
import { read } from "../store/store.ts";
import { PlainChoice } from "../forms/fields.tsx";
import { Allowed, CopyBox, SettingsForm, type Entered, type FormField } from "../forms/forms.tsx";
import { externalAddress, shortName } from "./integration_address.ts";
import type { Integration } from "../api/types.ts";

export function Integrations() {
  const all = read("realm").realm_incoming_webhook_bots ?? [];
  const [name, setName] = useState(all[0]?.name ?? "");
  const service = all.find((s) => s.name === name);
  const allowed = may("can_create_bots_group") || may("can_create_write_only_bots_group");
  return (
    <Allowed when={allowed} reason={t("You cannot create bots in this organization.")}>
      <p>{t("A service calls the address of a bot, and the bot writes what happened there into a channel.")}</p>
      <PlainChoice label={t("Service")} value={name} options={all.map((s) => ({ value: s.name, label: s.display_name }))} choose={setName} />
      {service && <Setup key={service.name} service={service} />}
    </Allowed>
  );
}

function Setup({ service }: { service: Integration }) {
  const [address, setAddress] = useState("");
  const channels = [...read("channels").values()].filter((c) => !c.is_archived && read("subscriptions").has(c.stream_id));
  channels.sort((a, b) => a.name.localeCompare(b.name));
  const fields: FormField[] = [
    { name: "bot", label: t("Name of the bot"), value: service.display_name, required: true },
    {
      name: "stream",
      label: t("Channel"),
      kind: "choice",
      options: [
        { value: "", label: t("Direct message to me") },
        ...channels.map((c) => ({ value: String(c.stream_id), label: c.name })),
      ],
    },
    { name: "topic", label: t("Topic"), help: t("Empty: the integration chooses topics.") },
  ];
  for (const o of service.url_options ?? []) {
    if (o.key === "stream" || o.key === "topic") continue;
    fields.push({ name: `url:${o.key}`, label: o.label, kind: o.input_type === "checkbox" ? "check" : "text" });
  }
  for (const o of service.config_options ?? []) {
    fields.push({ name: `config:${o.key}`, label: o.label, kind: "password", help: t("Optional") });
  }
  const kinds = service.all_event_types ?? [];
  if (kinds.length) {
    const help = t("All kinds of events, or only those that are checked.");
    fields.push({ name: "event", label: t("Events"), kind: "checks", values: kinds, options: kinds.map((value) => ({ value, label: value })), help });
  }
  const run = async (v: Entered): Promise<void> => {
    const config: Record<string, string> = {};
    for (const o of service.config_options ?? []) {
      const value = v.text(`config:${o.key}`);
      if (value) config[o.key] = value;
    }
    const bot = await createBot({
      full_name: v.text("bot"),
      short_name: shortName(v.text("bot")),
      bot_type: BotType.incoming,
      service_name: service.name,
      config_data: Object.keys(config).length ? config : undefined,
    });
    const options: Record<string, string> = {};
    for (const o of service.url_options ?? []) {
      const name = o.key === "stream" || o.key === "topic" ? o.key : `url:${o.key}`;
      const given = v.has(name) ? "true" : v.text(name);
      if (given) options[o.key] = given;
    }
    const chosen = v.all("event");
    const events = chosen.length < kinds.length ? chosen : [];
    setAddress(externalAddress(read("realm").realm_url || location.origin, service.name, bot.api_key, options, events));
  };
  return (
    <>
      <SettingsForm form="integration" title={t("Set up {name}", { name: service.display_name })} fields={fields} button={t("Create bot")} done={t("The bot was created.")} keep run={run} />
      {address && (
        <section aria-label={t("Address of the webhook")}>
          <CopyBox label={t("Address of the webhook")} text={address} />
          <p class="quiet">{t("Enter it in the settings of {name}. It contains the bot's key: keep it secret.", { name: service.display_name })}</p>
        </section>
      )}
    </>
  );
}
