// The card of a user: name, presence, status, time zone, and ways to reach them.
import { Role, type User } from "../api/types.ts";
import { t } from "../i18n/text.ts";
import { go, goTo, routes } from "../store/router.ts";
import { missingName, presenceOf, userName } from "../store/queries.ts";
import { peek, read } from "../store/store.ts";
import { Avatar } from "../ui/avatar.tsx";
import { Icon } from "../ui/icons.tsx";
import { copyText } from "../ui/clipboard.ts";
import { closeDialogs, closePopover, openPopover, type MenuItem } from "../ui/dialogs.tsx";
import { mentionText } from "../compose/quote.ts";
import { compose, insertText, openCompose } from "../compose/state.ts";
import { conversationOf, operandOfFirst } from "../store/narrow.ts";
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

// GuestMark marks the name of a guest, if the organization wants that.
export function GuestMark({ id }: { id: number }) {
  if (!read("realm").realm_enable_guest_user_indicator || read("users").get(id)?.role !== Role.guest) return null;
  return (
    <span class="badge" title={t("This user is a guest")}>
      {t("guest")}
    </span>
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

// cardActions are buttons of other modules, such as the administration of users.
export const cardActions: ((u: User) => MenuItem | false)[] = []; // registry

// mention writes a mention into the compose box, for the conversation of the view if there is one.
function mention(id: number): void {
  const { terms } = routes.peek().view;
  const place = terms && conversationOf(terms);
  if (!compose.peek().open) openCompose(place ?? { channel: Number((terms && operandOfFirst(terms, "channel")) || peek().subscriptions.keys().next().value || 0) });
  insertText(mentionText(id) + " ");
}

function UserCard({ id }: { id: number }) {
  const u = read("users").get(id);
  if (!u) return <div class="card">{missingName(id)}</div>;
  const status = read("statuses").get(id);
  const open = (fn: () => void) => () => {
    closePopover();
    closeDialogs();
    fn();
  };
  return (
    <div class="card" role="dialog" aria-label={u.full_name}>
      <div class="card-head">
        <Avatar id={id} size={64} class="large" />
        <div>
          <strong class="card-name">{u.full_name}</strong> <GuestMark id={id} />
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
            <dd>
              {u.delivery_email ?? u.email}
              <button type="button" class="icon-button small" aria-label={t("Copy email")} title={t("Copy email")} onClick={() => void copyText(u.delivery_email ?? u.email, t("Copied."))}>
                <Icon name="copy" size={14} />
              </button>
            </dd>
          </>
        )}
        {u.is_bot && !!u.bot_owner_id && (
          <>
            <dt>{t("Owner")}</dt>
            <dd>
              <PersonName id={u.bot_owner_id} />
            </dd>
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
        {!u.is_system_bot && (
          <button type="button" class="button small" onClick={open(() => goTo([{ operator: "dm", operand: [id] }]))}>
            {t("Direct message")}
          </button>
        )}
        {u.is_active && !u.is_system_bot && (
          <button type="button" class="button small quiet" onClick={open(() => mention(id))}>
            {t("Mention")}
          </button>
        )}
        <button type="button" class="button small quiet" onClick={open(() => goTo([{ operator: "sender", operand: id }]))}>
          {t("View messages sent")}
        </button>
        <button type="button" class="button small quiet" onClick={open(() => go(`#user/${id}`))}>
          {t("Profile")}
        </button>
        {cardActions
          .map((make) => make(u))
          .map(
            (x) =>
              x && (
                <button key={x.label} type="button" class="button small quiet" onClick={open(() => void x.run())}>
                  {x.label}
                </button>
              ),
          )}
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
