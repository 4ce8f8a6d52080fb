import { t } from "../i18n/text.ts";
import { closeOverlay } from "../router.ts";
import { Dialog } from "../ui/dialogs.tsx";
import { addOverlay } from "../views/registry.ts";

export function installPeople(): void {
  addOverlay("user", () => import("./profile.tsx").then((m) => m.UserProfile));
  addOverlay("groups", () => import("./groups.tsx").then((m) => m.Groups));
  addOverlay("invite", () => import("../settings/invitations.tsx").then((m) => () => (
    <Dialog title={t("Invite people")} wide onClose={closeOverlay}>
      <div class="dialog-text">
        <h3 class="settings-title">{t("Invitations")}</h3>
        <m.Invitations />
      </div>
    </Dialog>
  )));
}
