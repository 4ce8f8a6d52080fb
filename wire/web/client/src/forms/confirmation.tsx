// The window that asks for the password before a dangerous act, such as an export, if the login is not recent.
import { useEffect } from "preact/hooks";
import { confirmSession } from "../api/administration.ts";
import { onConfirmation } from "../api/client.ts";
import { t } from "../i18n/text.ts";
import { Dialog, openDialog } from "../ui/dialogs.tsx";
import { NewForm } from "./forms.tsx";

export function installConfirmation(): void {
  onConfirmation(() => new Promise((done) => openDialog(<AskPassword done={done} />)));
}

function AskPassword({ done }: { done: (confirmed: boolean) => void }) {
  useEffect(() => () => done(false), []); // closed without the password; a promise has its value only once
  const title = t("Confirm that it is you");
  return (
    <Dialog title={title}>
      <div class="dialog-text">
        <p>{t("You logged in a while ago. Enter your password to continue.")}</p>
        <NewForm
          form="confirm-password"
          title={title}
          button={t("Continue")}
          fields={[{ name: "password", label: t("Your password"), kind: "password", required: true }]}
          run={async (v) => {
            await confirmSession(v.secret("password"));
            done(true);
          }}
        />
      </div>
    </Dialog>
  );
}
