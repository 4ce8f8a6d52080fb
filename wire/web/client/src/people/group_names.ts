// The names of the groups that every organization has.
import type { UserGroup } from "../api/types.ts";
import { t } from "../i18n/text.ts";

// groupName returns the name of a group as people see it.
export function groupName(g: UserGroup | undefined): string {
  switch (g?.name) {
    case "role:nobody":
      return t("Nobody");
    case "role:owners":
      return t("Owners");
    case "role:administrators":
      return t("Administrators and owners");
    case "role:moderators":
      return t("Moderators and above");
    case "role:fullmembers":
      return t("Full members and above");
    case "role:members":
      return t("All members");
    case "role:everyone":
      return t("Everyone, with guests");
    case "role:internet":
      return t("Everyone on the internet");
  }
  return g?.name ?? t("Unknown group");
}
