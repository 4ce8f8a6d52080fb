// Invitations by email and by link.
import { useEffect, useState } from "preact/hooks";
import * as api from "../api/administration.ts";
import { type Invite, Role } from "../api/types.ts";
import { t } from "../i18n/text.ts";
import { roleName } from "../people/card.tsx";
import { attempt } from "../store/actions.ts";
import { may, userName } from "../store/queries.ts";
import { read } from "../store/store.ts";
import { formatDate } from "../ui/time.ts";
import { Allowed, CopyBox, RowTable, SettingsForm, type Entered, type FormField } from "../forms/forms.tsx";
import { closeOverlay } from "../store/router.ts";
import { Dialog } from "../ui/dialogs.tsx";

const day = 24 * 60; // minutes

// InviteWindow shows the same as the section of the settings, at the address #invite.
export function InviteWindow() {
  return (
    <Dialog title={t("Invite people")} wide onClose={closeOverlay}>
      <div class="dialog-text">
        <h3 class="settings-title">{t("Invitations")}</h3>
        <Invitations />
      </div>
    </Dialog>
  );
}

export function Invitations() {
  const [list, setList] = useState<Invite[]>([]);
  const [link, setLink] = useState("");
  const version = read("invitesVersion");
  useEffect(() => {
    void attempt(api.getInvites()).then((a) => a && setList(a.invites));
  }, [version]);
  return (
    <>
      <Allowed when={may("can_invite_users_group")} reason={t("You cannot invite users by email.")}>
        <SettingsForm
          form="invite-by-email"
          title={t("Invite by email")}
          button={t("Send invitations")}
          done={t("The invitations were sent.")}
          fields={[{ name: "emails", label: t("Email addresses"), kind: "area", required: true, help: t("Separated by commas or lines.") }, ...common()]}
          run={(v) => api.invite(v.text("emails"), v.number("role"), channelsOf(v), minutesOf(v))}
        />
      </Allowed>
      <Allowed when={may("create_multiuse_invite_group")} reason={t("You cannot create invitation links.")}>
        <SettingsForm
          form="invite-by-link"
          title={t("Invite by link")}
          button={t("Create link")}
          done={t("The link was created.")}
          fields={common()}
          run={async (v) => setLink((await api.makeInviteLink(v.number("role"), channelsOf(v), minutesOf(v))).invite_link)}
        />
        {link && <CopyBox label={t("Invitation link")} text={link} />}
      </Allowed>
      <h4>{t("Open invitations")}</h4>
      <RowTable
        label={t("Open invitations")}
        rows={list}
        name={(i) => i.email ?? t("Link")}
        empty={t("No open invitations")}
        columns={[
          { title: t("To"), cell: (i) => i.email ?? (i.link_url ? <a href={i.link_url}>{t("Link")}</a> : t("Link")) },
          { title: t("Role"), cell: (i) => roleName(i.invited_as) },
          { title: t("Invited by"), cell: (i) => userName(i.invited_by_user_id) },
          { title: t("Expires"), cell: (i) => (i.expiry_date ? formatDate(i.expiry_date) : t("Never")) },
        ]}
        actions={[
          {
            label: t("Send again"),
            icon: "send",
            shown: (i) => !i.is_multiuse,
            run: (i) => api.resendInvite(i.id),
          },
          { label: t("Revoke"), icon: "trash", ask: t("Nobody can join with it afterwards."), run: api.revokeInvite },
        ]}
      />
    </>
  );
}

// common are the fields of both ways. The server refuses roles above the user's own.
function common(): FormField[] {
  const me = read("me");
  const roles = Object.values(Role).filter((r) => me.is_owner || r > Role.owner);
  return [
    {
      name: "role",
      label: t("Join as"),
      kind: "choice",
      value: String(Role.member),
      options: roles.map((r) => ({ value: String(r), label: roleName(r) })),
    },
    {
      name: "days",
      label: t("Expires"),
      kind: "choice",
      value: "10",
      options: [
        { value: "1", label: t("In one day") },
        { value: "3", label: t("In three days") },
        { value: "10", label: t("In ten days") },
        { value: "30", label: t("In thirty days") },
        { value: "", label: t("Never") },
      ],
    },
    { name: "channels", label: t("Subscribe to the default channels"), kind: "check", value: "true" },
  ];
}

function channelsOf(v: Entered): number[] {
  return v.has("channels") ? read("defaultChannels") : [];
}

function minutesOf(v: Entered): number | null {
  return v.text("days") ? v.number("days") * day : null;
}
