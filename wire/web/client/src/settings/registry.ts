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
];

export function addSection(...list: Section[]): void {
  sections.push(...list);
}

export function installSettings(): void {
  addOverlay("settings", () => import("./frame.tsx").then((m) => m.SettingsFrame));
  addOverlay("organization", () => import("./frame.tsx").then((m) => m.SettingsFrame));
}
