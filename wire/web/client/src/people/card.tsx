// The card of a user: name, presence, status, time zone, and ways to reach them.
import { Role } from "../api/types.ts";
import { t } from "../i18n/text.ts";
import { go, goTo } from "../store/router.ts";
import { avatarOf, presenceOf, userName } from "../store/queries.ts";
import { read } from "../store/store.ts";
import { closeDialogs, closePopover, openPopover } from "../ui/dialogs.tsx";
import { formatAgo, formatNowIn } from "../ui/time.ts";
import { StatusEmoji } from "../emoji/glyph.tsx";
import { FieldValue } from "./field_value.tsx";
import { openPart } from "../ui/parts.ts";

export function openUserCard(id: number, at: Element | DOMRect): void {
  openPopover(at, <UserCard id={id} />);
}

// PersonName is the name of a user, which opens their card.
export function PersonName({ id, class: more = "" }: { id: number; class?: string }) {
  return (
    <button type="button" class={`link person-link ${more}`} onClick={(e) => openUserCard(id, e.currentTarget)}>
      {userName(id)}
    </button>
  );
}

export function roleName(role: number): string {
  switch (role) {
    case Role.owner:
      return t("Owner");
    case Role.admin:
      return t("Administrator");
    case Role.moderator:
      return t("Moderator");
    case Role.guest:
      return t("Guest");
  }
  return t("Member");
}

export function presenceText(id: number): string {
  switch (presenceOf(id)) {
    case "active":
      return t("Active now");
    case "idle":
      return t("Idle");
    case "bot":
      return t("Bot");
  }
  const p = read("presences").get(id);
  const last = Math.max(p?.active_timestamp ?? 0, p?.idle_timestamp ?? 0);
  return last ? t("Last seen {ago}", { ago: formatAgo(last) }) : t("Offline");
}

function UserCard({ id }: { id: number }) {
  const u = read("users").get(id);
  if (!u) return <div class="card">{t("Unknown user")}</div>;
  const status = read("statuses").get(id);
  const open = (fn: () => void) => () => {
    closePopover();
    closeDialogs();
    fn();
  };
  return (
    <div class="card" role="dialog" aria-label={u.full_name}>
      <div class="card-head">
        <img class="avatar large" src={avatarOf(u, true)} alt="" width={64} height={64} />
        <div>
          <strong class="card-name">{u.full_name}</strong>
          <div class="quiet">
            <span class={`presence ${presenceOf(id)}`} /> {u.is_active ? presenceText(id) : t("Deactivated")}
          </div>
          <div class="quiet">{roleName(u.role)}</div>
        </div>
      </div>
      {status && (
        <div class="card-status">
          <StatusEmoji status={status} /> {status.status_text}
        </div>
      )}
      <dl class="card-facts">
        {(u.delivery_email ?? u.email) && (
          <>
            <dt>{t("Email")}</dt>
            <dd>{u.delivery_email ?? u.email}</dd>
          </>
        )}
        {u.timezone && localTime(u.timezone) && (
          <>
            <dt>{t("Local time")}</dt>
            <dd>{localTime(u.timezone)}</dd>
          </>
        )}
        <ProfileSummary id={id} />
      </dl>
      <div class="card-actions">
        {id === read("me").user_id && (
          <button type="button" class="button small" onClick={open(() => openPart(import("./status.tsx"), (m) => m.openStatus()))}>
            {t("Set a status")}
          </button>
        )}
        <button type="button" class="button small" onClick={open(() => goTo([{ operator: "dm", operand: [id] }]))}>
          {t("Direct message")}
        </button>
        <button type="button" class="button small quiet" onClick={open(() => goTo([{ operator: "sender", operand: id }]))}>
          {t("Messages sent")}
        </button>
        <button type="button" class="button small quiet" onClick={open(() => go(`#user/${id}`))}>
          {t("Profile")}
        </button>
      </div>
    </div>
  );
}

export function localTime(zone: string): string {
  return formatNowIn(zone);
}

function ProfileSummary({ id }: { id: number }) {
  const data = read("users").get(id)?.profile_data ?? {};
  return (
    <>
      {read("profileFields")
        .filter((f) => f.display_in_profile_summary && data[f.id]?.value)
        .map((f) => (
          <div key={f.id} class="contents">
            <dt>{f.name}</dt>
            <dd>
              <FieldValue field={f} value={data[f.id]!.value} rendered={data[f.id]!.rendered_value} />
            </dd>
          </div>
        ))}
    </>
  );
}
