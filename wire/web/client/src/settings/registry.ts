// The sections of the settings: #settings/NAME for the user's own, #organization/NAME for those of the organization.
// To add a section, add a line. The code of a section is loaded when the section is first opened.
import type { ComponentType } from "preact";
import { t } from "../i18n/text.ts";
import { cardActions } from "../people/card.tsx";
import { read } from "../store/store.ts";
import { openPart } from "../ui/parts.ts";
import type { IconName } from "../ui/icons.tsx";
import { addOverlay } from "../ui/registry.ts";

export interface Section {
  area: "settings" | "organization";
  name: string; // in the address
  title: () => string;
  icon: IconName;
  load: () => Promise<ComponentType>;
}

export const sections: Section[] = [
  {
    area: "settings",
    name: "profile",
    title: () => t("Profile"),
    icon: "person",
    load: () => import("./account.tsx").then((m) => m.Profile),
  },
  {
    area: "settings",
    name: "account",
    title: () => t("Account"),
    icon: "lock",
    load: () => import("./account.tsx").then((m) => m.Account),
  },
  {
    area: "settings",
    name: "privacy",
    title: () => t("Privacy"),
    icon: "eye",
    load: () => import("./privacy.tsx").then((m) => m.Privacy),
  },
  {
    area: "settings",
    name: "preferences",
    title: () => t("Preferences"),
    icon: "gear",
    load: () => import("./preferences.tsx").then((m) => m.Preferences),
  },
  {
    area: "settings",
    name: "integrations",
    title: () => t("Integrations"),
    icon: "link",
    load: () => import("./integrations.tsx").then((m) => m.Integrations),
  },
  {
    area: "organization",
    name: "organization-profile",
    title: () => t("Organization profile"),
    icon: "globe",
    load: () => import("./organization_profile.tsx").then((m) => m.OrganizationProfile),
  },
  {
    area: "organization",
    name: "organization-settings",
    title: () => t("Organization settings"),
    icon: "gear",
    load: () => import("./organization_settings.tsx").then((m) => m.OrganizationSettings),
  },
  {
    area: "organization",
    name: "joining",
    title: () => t("Joining and accounts"),
    icon: "lock",
    load: () => import("./joining.tsx").then((m) => m.Joining),
  },
  {
    area: "organization",
    name: "organization-permissions",
    title: () => t("Permissions"),
    icon: "shield",
    load: () => import("./permissions.tsx").then((m) => m.Permissions),
  },
  {
    area: "organization",
    name: "organization-level-user-defaults",
    title: () => t("Default user settings"),
    icon: "person",
    load: () => import("./new_users.tsx").then((m) => m.NewUsers),
  },
  {
    area: "organization",
    name: "users",
    title: () => t("Users"),
    icon: "people",
    load: () => import("./users.tsx").then((m) => m.Users),
  },
  {
    area: "organization",
    name: "invites",
    title: () => t("Invitations"),
    icon: "plus",
    load: () => import("./invitations.tsx").then((m) => m.Invitations),
  },
  {
    area: "settings",
    name: "notifications",
    title: () => t("Notifications"),
    icon: "bell",
    load: () => import("./notifications.tsx").then((m) => m.Notifications),
  },
  {
    area: "settings",
    name: "your-bots",
    title: () => t("Bots"),
    icon: "bot",
    load: () => import("./bots.tsx").then((m) => m.Bots),
  },
  {
    area: "settings",
    name: "alert-words",
    title: () => t("Alert words"),
    icon: "at",
    load: () => import("./account.tsx").then((m) => m.AlertWords),
  },
  {
    area: "settings",
    name: "uploaded-files",
    title: () => t("Uploaded files"),
    icon: "file",
    load: () => import("./uploads.tsx").then((m) => m.Uploads),
  },
  {
    area: "settings",
    name: "muted-users",
    title: () => t("Muted users"),
    icon: "mute",
    load: () => import("./account.tsx").then((m) => m.MutedUsers),
  },
  {
    area: "settings",
    name: "topics",
    title: () => t("Topics"),
    icon: "topic",
    load: () => import("./topics.tsx").then((m) => m.Topics),
  },
  {
    area: "organization",
    name: "channels",
    title: () => t("Channels"),
    icon: "hash",
    load: () => import("./organization_lists.tsx").then((m) => m.Channels),
  },
  {
    area: "organization",
    name: "channel-folders",
    title: () => t("Channel folders"),
    icon: "folder",
    load: () => import("./folders.tsx").then((m) => m.Folders),
  },
  {
    area: "organization",
    name: "emoji-settings",
    title: () => t("Custom emoji"),
    icon: "smile",
    load: () => import("./organization_lists.tsx").then((m) => m.CustomEmoji),
  },
  {
    area: "organization",
    name: "linkifier-settings",
    title: () => t("Linkifiers"),
    icon: "link",
    load: () => import("./organization_lists.tsx").then((m) => m.Linkifiers),
  },
  {
    area: "organization",
    name: "playground-settings",
    title: () => t("Code playgrounds"),
    icon: "code",
    load: () => import("./organization_lists.tsx").then((m) => m.Playgrounds),
  },
  {
    area: "organization",
    name: "profile-field-settings",
    title: () => t("Profile fields"),
    icon: "list",
    load: () => import("./profile_fields.tsx").then((m) => m.ProfileFields),
  },
  {
    area: "organization",
    name: "data-retention",
    title: () => t("Data retention"),
    icon: "clock",
    load: () => import("./organization_profile.tsx").then((m) => m.Retention),
  },
  {
    area: "organization",
    name: "data-exports-admin",
    title: () => t("Exports"),
    icon: "upload",
    load: () => import("./organization_lists.tsx").then((m) => m.Exports),
  },
  {
    area: "organization",
    name: "usage",
    title: () => t("Usage"),
    icon: "list",
    load: () => import("./usage.tsx").then((m) => m.Usage),
  },
  {
    area: "organization",
    name: "audit-log",
    title: () => t("Audit log"),
    icon: "eye",
    load: () => import("./audit_log.tsx").then((m) => m.AuditLog),
  },
  {
    area: "organization",
    name: "compliance",
    title: () => t("Compliance exports"),
    icon: "check",
    load: () => import("./compliance.tsx").then((m) => m.Compliance),
  },
  {
    area: "organization",
    name: "data-places",
    title: () => t("Where data goes"),
    icon: "globe",
    load: () => import("./places.tsx").then((m) => m.Places),
  },
];

export function installSettings(): void {
  cardActions.push((u) => read("me").is_admin && u.is_active && !u.is_bot && { label: t("Manage user"), run: () => openPart(import("./users.tsx"), (m) => m.openUser(u.user_id)) });
  addOverlay("settings", () => import("./frame.tsx").then((m) => m.SettingsFrame));
  addOverlay("invite", () => import("./invitations.tsx").then((m) => m.InviteWindow));
  addOverlay("organization", () => import("./frame.tsx").then((m) => m.SettingsFrame));
}
