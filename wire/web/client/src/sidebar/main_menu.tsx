// The main menu: settings, administration, theme, help, log out.
import { changeSetting } from "../api/endpoints.ts";
import { csrfToken } from "../api/client.ts";
import { ColorScheme } from "../api/types.ts";
import { t } from "../i18n/text.ts";
import { StatusEmoji } from "../emoji/glyph.tsx";
import { presenceText } from "../people/card.tsx";
import { go } from "../store/router.ts";
import { attempt } from "../store/actions.ts";
import { peek, read } from "../store/store.ts";
import { Menu, openPopover, type MenuItem, type MenuItems } from "../ui/dialogs.tsx";
import { Avatar } from "../ui/avatar.tsx";
import type { IconName } from "../ui/icons.tsx";
import { openShortcuts } from "../help/shortcuts.tsx";
import { openPart } from "../ui/parts.ts";

export function openMainMenu(at: Element): void {
  openPopover(at, <MainMenu at={at} />, "g");
}

// menuItems are items of other modules, such as the server page.
export const menuItems: (() => MenuItem | false)[] = []; // registry

function openThemes(at: Element | DOMRect): void {
  const scheme = Number(peek().settings.color_scheme ?? ColorScheme.system);
  const theme = (value: number, label: string, icon: IconName): MenuItem => ({
    label,
    icon: scheme === value ? "check" : icon,
    run: () => attempt(changeSetting({ color_scheme: value })),
  });
  const items = [theme(ColorScheme.light, t("Light"), "sun"), theme(ColorScheme.dark, t("Dark"), "moon"), theme(ColorScheme.system, t("Automatic"), "globe")];
  openPopover(at, <Menu label={t("Theme")} items={items} />);
}

// mainItems are the items of the main menu in three groups: the user, the organization, and help. The switcher offers them
// too, without an element beside which the themes can be shown.
export function mainItems(at: Element | DOMRect = new DOMRect(innerWidth / 2, 120)): MenuItems {
  const me = read("me");
  const visible = read("settings").presence_enabled !== false;
  return [
    { label: t("Set a status"), icon: "smile", run: () => openPart(import("../people/status.tsx"), (m) => m.openStatus()) },
    visible
      ? { label: t("Go invisible"), icon: "eye", run: () => attempt(changeSetting({ presence_enabled: false })) }
      : { label: t("Turn off invisible mode"), icon: "eye", run: () => attempt(changeSetting({ presence_enabled: true })) },
    { label: t("Your profile"), icon: "person", run: () => go(`#user/${me.user_id}`) },
    { label: t("Settings"), icon: "gear", run: () => go("#settings/profile") },
    { label: t("Theme"), icon: "moon", run: () => openThemes(at) },
    ...menuItems.map((make) => make()),
    null,
    { label: me.is_admin ? t("Manage organization") : t("Organization"), icon: "shield", run: () => go("#organization/organization-profile") },
    { label: t("Manage channels"), icon: "hash", run: () => go("#channels/subscribed") },
    { label: t("User groups"), icon: "people", run: () => go("#groups/your") },
    { label: t("Invite people"), icon: "plus", run: () => go("#invite") },
    me.is_owner && { label: t("Server"), icon: "feed", run: () => location.assign("/admin/server") },
    null,
    { label: t("Keyboard shortcuts"), icon: "help", key: "?", run: openShortcuts },
    { label: t("Message formatting"), icon: "edit", run: () => go("#message-formatting") },
    { label: t("Search operators"), icon: "search", run: () => go("#search-operators") },
    { label: t("About"), icon: "help", run: () => go("#about-zulip") },
    { label: t("Your sessions"), icon: "list", run: () => location.assign("/accounts/sessions/") },
    { label: t("Log out"), icon: "logout", run: logOut },
  ];
}

function MainMenu({ at }: { at: Element }) {
  const me = read("me");
  const status = read("statuses").get(me.user_id);
  return (
    <>
      <div class="menu-head">
        <Avatar id={me.user_id} size={36} />
        <div class="grow">
          <strong>{me.full_name}</strong>
          <small>
            <StatusEmoji status={status} /> {status?.status_text || presenceText(me.user_id)}
          </small>
        </div>
      </div>
      <Menu label={t("Main menu")} items={mainItems(at)} />
    </>
  );
}

// logOut sends the form that ends the session.
function logOut(): void {
  history.replaceState(null, "", location.pathname); // the address can name a person
  const form = document.createElement("form");
  form.method = "post";
  form.action = "/accounts/logout/";
  const token = document.createElement("input");
  token.name = "csrfmiddlewaretoken";
  token.value = csrfToken();
  token.type = "hidden";
  form.append(token);
  document.body.append(form);
  form.submit();
}
