// The bots of the user: programs with an account, incoming and outgoing webhooks.
import { useEffect, useState } from "preact/hooks";
import * as api from "../api/administration.ts";
import { t } from "../i18n/text.ts";
import { attempt } from "../store/actions.ts";
import { may } from "../store/queries.ts";
import { peek, read } from "../store/store.ts";
import { closeDialog, Dialog, openDialog } from "../ui/dialogs.tsx";
import { PlainChoice } from "../forms/fields.tsx";
import { forgetBotCommands } from "../store/bot_commands.ts";
import { commandsOf, linesOf } from "./bot_commands.ts";
import { Deliveries } from "./deliveries.tsx";
import { AddButton, Allowed, CopyBox, NewForm, RowTable, SettingsForm, type FormField } from "../forms/forms.tsx";
import type { OwnBot } from "../api/types.ts";

function kinds(): { value: number; label: string }[] {
  return [
    { value: api.BotType.generic, label: t("Program with an API key") },
    { value: api.BotType.incoming, label: t("Incoming webhook: it can only send messages") },
    { value: api.BotType.outgoing, label: t("Outgoing webhook: an address is called when the bot is mentioned") },
  ];
}

export function Bots() {
  const [list, setList] = useState<OwnBot[]>([]);
  const [again, setAgain] = useState(0);
  const bots = read("bots");
  const users = read("users");
  const names = [...bots.keys()].map((id) => `${id} ${users.get(id)?.full_name} ${users.get(id)?.is_active}`).join();
  useEffect(() => {
    if (!peek().me.is_guest) void attempt(api.getBots()).then((a) => a && setList(a.bots));
  }, [names, again]);
  const then = (done: Promise<unknown>): Promise<void> => done.then(() => setAgain((n) => n + 1));
  const me = read("me");
  const allowed = !me.is_guest && (may("can_create_bots_group") || may("can_create_write_only_bots_group"));
  const former = [...users.values()].filter((u) => u.is_bot && !u.is_active && u.bot_owner_id === me.user_id);
  return (
    <>
      <Allowed when={allowed} reason={t("You cannot create bots in this organization.")}>
        <AddButton title={t("Add a bot")} open={() => openDialog(<NewBot added={() => setAgain((n) => n + 1)} />)} />
      </Allowed>
      <RowTable
        label={t("Your bots")}
        rows={list}
        name={(b) => b.full_name}
        empty={t("No bots")}
        columns={[
          { title: t("Name"), cell: (b) => b.full_name },
          { title: t("Email"), cell: (b) => b.username },
        ]}
        actions={[
          { label: t("Edit"), icon: "edit", run: async (b) => openDialog(<BotDialog bot={b} done={() => setAgain((n) => n + 1)} />) },
          { label: t("Deactivate"), icon: "trash", ask: t("The bot can no longer do anything."), run: (b) => then(api.deactivateBot(b.user_id)) },
        ]}
      />
      {former.length > 0 && (
        <RowTable
          label={t("Deactivated bots")}
          rows={former}
          name={(u) => u.full_name}
          empty=""
          columns={[{ title: t("Deactivated bots"), cell: (u) => u.full_name }]}
          actions={[{ label: t("Reactivate"), icon: "check", run: (u) => then(api.reactivateUser(u.user_id)) }]}
        />
      )}
    </>
  );
}

// NewBot asks for the type of a bot first: outgoing webhooks have more fields.
function NewBot({ added }: { added: () => void }) {
  const [type, setType] = useState<number>(api.BotType.generic);
  const outgoing = type === api.BotType.outgoing;
  const fields: FormField[] = [
    { name: "name", label: t("Name"), required: true },
    { name: "short", label: t("Address"), required: true, help: t("The part before -bot.") },
  ];
  if (outgoing) fields.push({ name: "url", label: t("Address that is called"), kind: "url", required: true }, interfaceField());
  return (
    <Dialog title={t("Add a bot")}>
      <div class="dialog-text">
        <PlainChoice label={t("Bot type")} value={type} options={kinds()} choose={setType} />
        <NewForm
          form="add-bot"
          key={type}
          button={t("Add bot")}
          fields={fields}
          run={async (v) => {
            const payload = outgoing ? { payload_url: v.text("url"), interface_type: v.number("interface") } : {};
            await api.createBot({ full_name: v.text("name"), short_name: v.text("short"), bot_type: type, ...payload });
            added();
          }}
        />
      </div>
    </Dialog>
  );
}

// interfaceField chooses the form of the data that an outgoing webhook sends.
function interfaceField(now = 1): FormField {
  return {
    name: "interface",
    label: t("Format of the calls"),
    kind: "choice",
    value: String(now),
    options: [
      { value: "1", label: "Zulip" },
      { value: "2", label: "Slack" },
    ],
  };
}

// BotDialog changes a bot, shows its key and the text of a configuration file, and makes a new key.
function BotDialog({ bot, done }: { bot: OwnBot; done: () => void }) {
  const [key, setKey] = useState(bot.api_key);
  const [first] = bot.services;
  const service = first && "base_url" in first ? first : undefined;
  const fields: FormField[] = [{ name: "name", label: t("Name"), value: bot.full_name, required: true }];
  if (service) {
    fields.push({ name: "url", label: t("Address that is called"), kind: "url", value: service.base_url, required: true }, interfaceField(service.interface));
  }
  const [commands, setCommands] = useState<string | null>(); // null: they could not be loaded
  useEffect(() => {
    if (!service) return;
    void attempt(api.getBotCommands()).then((a) => setCommands(a ? linesOf(a.commands.filter((c) => c.bot_id === bot.user_id)) : null));
  }, [bot.user_id]);
  if (service && commands === undefined) return null;
  if (typeof commands === "string") {
    const help = t("One in each line: /name, the words after it, a colon, and what it does. A message that begins with a command calls the bot.");
    fields.push({ name: "commands", label: t("Commands"), kind: "area", value: commands, help });
  }
  const zuliprc = `[api]\nemail=${bot.username}\nkey=${key}\nsite=${peek().realm.realm_url}\n`;
  const renew = async (): Promise<void> => {
    const answer = await attempt(api.renewBotKey(bot.user_id));
    if (answer) setKey(answer.api_key);
    done();
  };
  return (
    <Dialog title={bot.full_name}>
      <div class="dialog-text">
        <SettingsForm
          form="change-bot"
          button={t("Save")}
          keep
          stored
          fields={fields}
          run={async (v) => {
            const params = service ? { service_payload_url: JSON.stringify(v.text("url")), service_interface: v.number("interface") } : {};
            await api.changeBot(bot.user_id, { full_name: v.text("name"), ...params });
            if (typeof commands === "string" && v.text("commands") !== commands) {
              await api.setBotCommands(bot.user_id, commandsOf(v.text("commands")));
              forgetBotCommands();
            }
            done();
            closeDialog();
          }}
        />
        {service && <Deliveries bot={bot.user_id} key={key} />}
        <CopyBox label={t("API key")} text={key} />
        <button type="button" class="button quiet" onClick={() => void renew()}>
          {t("New key")}
        </button>
        <h3>{t("Configuration file")}</h3>
        <pre class="source">{zuliprc}</pre>
        <a class="button quiet small" download="zuliprc" href={"data:text/plain;charset=utf-8," + encodeURIComponent(zuliprc)}>
          {t("Download")}
        </a>
      </div>
    </Dialog>
  );
}
