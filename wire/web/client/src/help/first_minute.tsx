// Hints above the view for new users: five keys, and for the owner of a new organization what to do first.
import type { ComponentChildren } from "preact";
import { dismissHint } from "../api/endpoints.ts";
import { t } from "../i18n/text.ts";
import { attempt } from "../store/actions.ts";
import { read } from "../store/store.ts";
import { copyText } from "../ui/clipboard.ts";
import { Dialog, openDialog } from "../ui/dialogs.tsx";
import { Icon } from "../ui/icons.tsx";
import { keysHint, othersExist, ownChannelExists, startHint } from "./hints.tsx";

export function Hints({ start }: { start: boolean }) {
  return start ? <Start /> : read("hints").includes(keysHint) ? <Keys /> : null;
}

interface HintProps {
  hint: string;
  title: string;
  children: ComponentChildren;
}

function Hint({ hint, title, children }: HintProps) {
  return (
    <section class="first-hint" aria-label={title}>
      <strong>{title}</strong>
      {children}
      <button type="button" class="link" data-dismiss={hint} onClick={() => void attempt(dismissHint(hint))}>
        {t("Do not show this again")}
      </button>
    </section>
  );
}

function Keys() {
  const keys: [string, string][] = [
    ["Ctrl+K", t("Search, or go to a place")],
    ["N", t("Next unread topic")],
    ["R", t("Reply")],
    ["C", t("New channel message")],
    ["?", t("Keyboard shortcuts")],
  ];
  return (
    <Hint hint={keysHint} title={t("Five keys to begin with")}>
      <ul>
        {keys.map(([key, text]) => (
          <li key={key}>
            <kbd>{key}</kbd> {text}
          </li>
        ))}
      </ul>
      <p class="quiet">{t("The field at the top also takes you to channels, topics, people and settings.")}</p>
    </Hint>
  );
}

function Start() {
  return (
    <Hint hint={startHint} title={t("Start your organization")}>
      <ol>
        <Step done={othersExist()}>
          <a href="#invite">{t("Invite people")}</a>
        </Step>
        <Step done={ownChannelExists()}>
          <a href="#channels/new">{t("Create a channel")}</a>
        </Step>
        <Step done={false}>
          <button type="button" class="link" onClick={() => openDialog(<Phone />)}>
            {t("Connect a phone")}
          </button>
        </Step>
      </ol>
    </Hint>
  );
}

function Step({ done, children }: { done: boolean; children: ComponentChildren }) {
  return (
    <li class={done ? "done" : ""}>
      {children} {done && (
        <>
          <Icon name="check" size={14} /> <span class="visually-hidden">{t("Done")}</span>
        </>
      )}
    </li>
  );
}

function Phone() {
  const address = location.origin;
  return (
    <Dialog title={t("Connect a phone")}>
      <div class="dialog-text">
        <p>{t("Install the Zulip app, choose to add an account, and enter this address:")}</p>
        <p>
          <strong>{address}</strong>
        </p>
        <button type="button" class="button" onClick={() => void copyText(address, t("Copied."))}>
          {t("Copy")}
        </button>
      </div>
    </Dialog>
  );
}
