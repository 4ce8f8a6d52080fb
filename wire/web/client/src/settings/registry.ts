// The sections of the settings: #settings/NAME for the user's own, #organization/NAME for those of the organization.
// To add one, add a line; it is loaded when it is first opened.
import type { ComponentType } from "preact";
import { t } from "../i18n/text.ts";
import type { IconName } from "../ui/icons.tsx";
import { addOverlay } from "../views/registry.ts";

export interface Section {
  area: "settings" | "organization";
  name: string; // in the address
  title: () => string;
  icon: IconName;
  shown?: () => boolean; // default: for every user
  load: () => Promise<ComponentType>;
}

export const sections: Section[] = [
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
    name: "organization-permissions",
    title: () => t("Permissions"),
    icon: "shield",
    load: () => import("./permissions.tsx").then((m) => m.Permissions),
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
];

export function addSection(...list: Section[]): void {
  sections.push(...list);
}

export function installSettings(): void {
  addOverlay("settings", () => import("./frame.tsx").then((m) => m.SettingsFrame));
  addOverlay("organization", () => import("./frame.tsx").then((m) => m.SettingsFrame));
}
