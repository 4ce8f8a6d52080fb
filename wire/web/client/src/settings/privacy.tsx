// What others see of the user, and what leaves the organization.
import { t } from "../i18n/text.ts";
import { UserChoice, UserSwitch } from "../forms/fields.tsx";

export function Privacy() {
  return (
    <>
      <UserChoice
        name="email_address_visibility"
        label={t("Who can see your email address")}
        options={[
          { value: 1, label: t("Everyone, with guests") },
          { value: 2, label: t("All members") },
          { value: 5, label: t("Moderators and above") },
          { value: 3, label: t("Administrators and owners") },
          { value: 4, label: t("Nobody") },
        ]}
      />
      <UserSwitch name="presence_enabled" label={t("Display your availability to other users")} />
      <UserSwitch name="send_read_receipts" label={t("Let other users see when you have read messages")} />
      <UserSwitch name="send_private_typing_notifications" label={t("Let recipients see when you are typing direct messages")} />
      <UserSwitch name="send_stream_typing_notifications" label={t("Let recipients see when you are typing in channels")} />
      <UserSwitch name="receives_typing_notifications" label={t("Show when other users are typing")} />
      <UserSwitch name="allow_private_data_export" label={t("Administrators can export your private messages")} />
    </>
  );
}
