// What others see of the user, and what leaves the organization.
import { t } from "../i18n/text.ts";
import { UserChoice, UserSwitch } from "../forms/fields.tsx";

export function Privacy() {
  return (
    <>
      <UserChoice
        name="email_address_visibility"
        label={t("Your email address is shown to")}
        options={[
          { value: 1, label: t("Everyone, with guests") },
          { value: 2, label: t("All members") },
          { value: 5, label: t("Moderators and above") },
          { value: 3, label: t("Administrators and owners") },
          { value: 4, label: t("Nobody") },
        ]}
      />
      <UserSwitch name="presence_enabled" label={t("Let others see when you are active")} />
      <UserSwitch name="send_read_receipts" label={t("Let others see which messages you have read")} />
      <UserSwitch name="send_private_typing_notifications" label={t("Let others see when you write direct messages")} />
      <UserSwitch name="send_stream_typing_notifications" label={t("Let others see when you write in channels")} />
      <UserSwitch name="receives_typing_notifications" label={t("Show when others are writing")} />
      <UserSwitch name="allow_private_data_export" label={t("Administrators can export your private messages")} />
    </>
  );
}
