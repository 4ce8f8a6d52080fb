// The window #user/ID: the profile of a user with their groups and channels.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { muteUser } from "../api/administration.ts";
import { getChannelsOf } from "../api/channels.ts";
import { t } from "../i18n/text.ts";
import { StatusEmoji } from "../emoji/glyph.tsx";
import { closeOverlay, goTo, type Route } from "../store/router.ts";
import { attempt } from "../store/actions.ts";
import { hashOfChannel } from "../store/narrow.ts";
import { missingName, presenceOf } from "../store/queries.ts";
import { peek, read } from "../store/store.ts";
import { Avatar } from "../ui/avatar.tsx";
import { Dialog } from "../ui/dialogs.tsx";
import { formatDayInYear } from "../ui/time.ts";
import { FieldValue } from "./field_value.tsx";
import { localTime, PersonName, presenceText, roleName } from "./card.tsx";

export function UserProfile({ route }: { route: Route }) {
  const id = Number(route.rest[0]);
  const u = read("users").get(id);
  if (!u) {
    return (
      <Dialog title={missingName(id)} onClose={closeOverlay}>
        <p class="dialog-text">{t("There is no such user, or you cannot see them.")}</p>
      </Dialog>
    );
  }
  const status = read("statuses").get(id);
  const mine = id === read("me").user_id;
  const muted = read("mutedUsers").has(id);
  const email = u.delivery_email ?? u.email;
  const data = u.profile_data ?? {};
  const fields = read("profileFields").filter((f) => data[f.id]?.value);
  const facts: [string, ComponentChildren][] = [
    [t("Role"), roleName(u.role)],
    [t("Email"), email],
    [t("Member since"), formatDayInYear(Date.parse(u.date_joined) / 1000)],
  ];
  if (u.is_bot && u.bot_owner_id) facts.push([t("Owner"), <PersonName id={u.bot_owner_id} />]);
  if (u.timezone && localTime(u.timezone)) facts.push([t("Local time"), localTime(u.timezone)]);
  for (const f of fields) facts.push([f.name, <FieldValue field={f} value={data[f.id]!.value} rendered={data[f.id]!.rendered_value} />]);
  return (
    <Dialog title={u.full_name} class="profile" onClose={closeOverlay}>
      <div class="dialog-text" tabIndex={0} role="region" aria-label={t("Profile")}>
        <div class="card-head">
          <Avatar id={id} size={64} class="large" />
          <div>
            <span class={`presence ${presenceOf(id)}`} /> {u.is_active ? presenceText(id) : t("Deactivated")}
            {status && (
              <div class="quiet">
                <StatusEmoji status={status} /> {status.status_text}
              </div>
            )}
          </div>
        </div>
        <dl class="card-facts">
          {facts.map(([name, value]) => (
            <div key={name} class="contents">
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
        <div class="card-actions">
          {mine ? (
            <a class="button small" href="#settings/profile">
              {t("Edit profile")}
            </a>
          ) : (
            <>
              <button type="button" class="button small" onClick={() => goTo([{ operator: "dm", operand: [id] }])}>
                {t("Direct message")}
              </button>
              <button type="button" class="button small quiet" onClick={() => void attempt(muteUser(muted ? "remove" : "add", id))}>
                {muted ? t("Unmute user") : t("Mute user")}
              </button>
            </>
          )}
          <button type="button" class="button small quiet" onClick={() => goTo([{ operator: "sender", operand: id }])}>
            {t("View messages sent")}
          </button>
        </div>
        <GroupsOf id={id} />
        <ChannelsOf key={id} id={id} />
      </div>
    </Dialog>
  );
}

function GroupsOf({ id }: { id: number }) {
  const groups = [...read("groups").values()].filter((g) => !g.is_system_group && !g.deactivated && g.members.includes(id));
  if (groups.length === 0) return null;
  return (
    <>
      <h3>{t("User groups")}</h3>
      <ul>
        {groups.map((g) => (
          <li key={g.id}>
            <a href={`#groups/${g.id}/${encodeURIComponent(g.name)}`}>{g.name}</a>
          </li>
        ))}
      </ul>
    </>
  );
}

// ChannelsOf lists the channels of the user. The server names only those that the caller can see.
function ChannelsOf({ id }: { id: number }) {
  const [ids, setIDs] = useState<number[]>([]);
  useEffect(() => {
    getChannelsOf(id).then(
      (a) => setIDs(a.subscribed_channel_ids),
      () => setIDs([]), // bots of others: the list is left out
    );
  }, [id]);
  const channels = ids.map((c) => read("channels").get(c)).filter((c) => !!c);
  if (channels.length === 0) return null;
  return (
    <>
      <h3>{t("Channels")}</h3>
      <ul>
        {channels.map((c) => (
          <li key={c.stream_id}>
            <a href={hashOfChannel(c.stream_id, peek())}>{c.name}</a>
          </li>
        ))}
      </ul>
    </>
  );
}
