// The window #channels: all channels that the user can see, subscribing and unsubscribing, and a form for new ones.
import { useState } from "preact/hooks";
import { subscribe, unsubscribe } from "../api/channels.ts";
import type { Channel } from "../api/types.ts";
import { matches } from "../ui/matches.ts";
import { plural, t } from "../i18n/text.ts";
import { closeOverlay, go, type Route } from "../store/router.ts";
import { attempt } from "../store/actions.ts";
import { hashOfChannel } from "../store/narrow.ts";
import { may, mayInChannel } from "../store/queries.ts";
import { peek, read } from "../store/store.ts";
import { Confirm, Dialog, openDialog } from "../ui/dialogs.tsx";
import { channelIcon, Icon } from "../ui/icons.tsx";
import { NewChannelForm } from "./create.tsx";
import { ChannelPage } from "./settings.tsx";

export function Channels({ route }: { route: Route }) {
  const create = route.rest[0] === "new";
  const id = Number(route.rest[0]) || 0;
  const channel = read("channels").get(id);
  const title = create ? t("New channel") : channel ? channel.name : t("Channels");
  return (
    <Dialog title={title} class="channels" onClose={closeOverlay} keys={create || id ? undefined : keys}>
      {create && <NewChannelForm />}
      {channel && <ChannelPage channel={channel} tab={route.rest[2]} />}
      {id > 0 && !channel && <p class="dialog-text">{t("There is no such channel, or you cannot see it.")}</p>}
      {!create && id === 0 && <List route={route} />}
    </Dialog>
  );
}

// keys are those of Zulip: the arrows go through the channels and the two lists, letters act on the channel with the focus.
function keys(e: KeyboardEvent): void {
  const frame = e.currentTarget as Element;
  const rows = [...frame.querySelectorAll<HTMLElement>("[data-row]")];
  const filter = frame.querySelector<HTMLElement>("input[type=search]");
  const inFilter = document.activeElement === filter;
  const at = rows.findIndex((x) => x.contains(document.activeElement));
  const row = rows[at];
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.key === "ArrowDown") rows[Math.min(at + 1, rows.length - 1)]?.focus();
  else if (e.key === "ArrowUp" && !inFilter) (at > 0 ? rows[at - 1] : filter)?.focus();
  else if (inFilter) return;
  else if (e.key === "ArrowLeft") go("#channels/subscribed");
  else if (e.key === "ArrowRight") go("#channels/all");
  else if (e.key === "n" && frame.querySelector("[data-new]")) go("#channels/new");
  else if (e.key === "V" && row) row.querySelector("a")!.click();
  else if (e.key === "S" && row) row.querySelector<HTMLElement>("[data-subscribe]")!.click();
  else if (e.key === "Enter" && row && document.activeElement === row) row.querySelector<HTMLElement>("a.icon-button")!.click();
  else return;
  e.preventDefault();
}

function List({ route }: { route: Route }) {
  const [query, setQuery] = useState("");
  const subscriptions = read("subscriptions");
  const q = query.trim().toLowerCase();
  const tab = route.rest[0] === "subscribed" ? "subscribed" : "all";
  const list = [...read("channels").values()]
    .filter((c) => !c.is_archived && (matches(c.name, q) || c.description.toLowerCase().includes(q)))
    .filter((c) => tab === "all" || subscriptions.has(c.stream_id))
    .sort((a, b) => a.name.localeCompare(b.name));
  const mayCreate = may("can_create_public_channel_group") || may("can_create_private_channel_group");
  return (
    <>
      <div class="channel-tools">
        <nav aria-label={t("Channels")}>
          <a class="button small quiet" href="#channels/subscribed" aria-current={tab === "subscribed" ? "page" : undefined}>
            {t("Subscribed")}
          </a>
          <a class="button small quiet" href="#channels/all" aria-current={tab === "all" ? "page" : undefined}>
            {t("All")}
          </a>
        </nav>
        <input class="input" type="search" aria-label={t("Search channels")} placeholder={t("Search channels")} value={query} onInput={(e) => setQuery(e.currentTarget.value)} />
        {mayCreate && (
          <button type="button" class="button small" data-new onClick={() => go("#channels/new")}>
            {t("New channel")}
          </button>
        )}
      </div>
      <ul class="channel-list" tabIndex={0} aria-label={t("Channels")}>
        {list.map((c) => (
          <Row key={c.stream_id} channel={c} subscribed={subscriptions.has(c.stream_id)} />
        ))}
        {list.length === 0 && <li class="quiet">{t("No channel fits.")}</li>}
      </ul>
    </>
  );
}

function Row({ channel: c, subscribed }: { channel: Channel; subscribed: boolean }) {
  const color = read("subscriptions").get(c.stream_id)?.color;
  const maySubscribe = !c.invite_only || mayInChannel(c, "can_subscribe_group") || mayInChannel(c, "can_add_subscribers_group");
  const leave = (): void => {
    const run = (): unknown => attempt(unsubscribe(c.name));
    if (!c.invite_only) return void run();
    openDialog(<Confirm title={t("Unsubscribe from {name}?", { name: c.name })} text={t("The channel is private. Perhaps you cannot subscribe again.")} button={t("Unsubscribe")} danger run={run} />);
  };
  return (
    <li tabIndex={-1} data-row>
      <span class="completion-icon" style={color ? { color } : undefined}>
        <Icon name={channelIcon(c)} size={17} />
      </span>
      <span class="grow">
        <a href={hashOfChannel(c.stream_id, peek())}>{c.name}</a>
        <small>
          {plural(c.subscriber_count ?? 0, "{count} subscriber", "{count} subscribers")}
          {c.description && ` · ${c.description}`}
        </small>
      </span>
      <a class="icon-button" href={`#channels/${c.stream_id}/${encodeURIComponent(c.name)}/general`} aria-label={t("Settings of {name}", { name: c.name })} title={t("Channel settings")}>
        <Icon name="gear" size={16} />
      </a>
      {subscribed ? (
        <button type="button" class="button small quiet" data-subscribe aria-label={t("Unsubscribe from {name}", { name: c.name })} onClick={leave}>
          {t("Unsubscribe")}
        </button>
      ) : (
        <button type="button" class="button small" data-subscribe disabled={!maySubscribe} aria-label={t("Subscribe to {name}", { name: c.name })} onClick={() => void attempt(subscribe(c.name))}>
          {t("Subscribe")}
        </button>
      )}
    </li>
  );
}
