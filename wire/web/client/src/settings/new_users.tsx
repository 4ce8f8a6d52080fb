// The settings that new users begin with.
import { t } from "../i18n/text.ts";
import { read } from "../store/store.ts";
import { ForNewUsers } from "../forms/fields.tsx";
import { Allowed } from "../forms/forms.tsx";
import { NotificationFields } from "./notifications.tsx";
import { Preferences } from "./preferences.tsx";
import { Privacy } from "./privacy.tsx";

export function NewUsers() {
  return (
    <Allowed when={read("me").is_admin} reason={t("Only administrators can change this.")}>
      <p class="quiet">{t("New users begin with these settings. The settings of existing users stay.")}</p>
      <ForNewUsers.Provider value>
        <Preferences />
        <h4>{t("Privacy")}</h4>
        <Privacy />
        <NotificationFields />
      </ForNewUsers.Provider>
    </Allowed>
  );
}
