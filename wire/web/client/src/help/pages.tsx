// The help windows: #about-zulip, #message-formatting and #search-operators. The keyboard shortcuts are in shortcuts.tsx.
import { useEffect, useState } from "preact/hooks";
import { renderMarkdown } from "../api/endpoints.ts";
import { t } from "../i18n/text.ts";
import { Content } from "../content/content.tsx";
import { closeOverlay } from "../store/router.ts";
import { read } from "../store/store.ts";
import { Dialog } from "../ui/dialogs.tsx";

export function About() {
  const realm = read("realm");
  return (
    <Dialog title={t("About")} onClose={closeOverlay}>
      <div class="dialog-text">
        <p>
          <strong>{realm.realm_name}</strong>
        </p>
        <p>{t("This organization runs on Parley, a team chat server with the protocol of Zulip.")}</p>
        <dl class="card-facts">
          <dt>{t("Version of the protocol")}</dt>
          <dd>{realm.zulip_version}</dd>
          <dt>{t("Feature level")}</dt>
          <dd>{realm.zulip_feature_level}</dd>
        </dl>
      </div>
    </Dialog>
  );
}

const examples = [
  "*italic*",
  "**bold**",
  "~~struck~~",
  "[a link](https://example.org)",
  "`code`",
  "```python\nprint(1)\n```",
  "> a quotation",
  "```quote\nseveral lines\nof a quotation\n```",
  "```spoiler Title\nhidden text\n```",
  "* one\n* two",
  "1. first\n2. second",
  "| a | b |\n|---|---|\n| 1 | 2 |",
  "$$x^2$$",
  ":tada:",
  "<time:2030-01-01T12:00:00Z>",
  "/me waves",
];

export function Formatting() {
  return (
    <Dialog title={t("Message formatting")} wide onClose={closeOverlay}>
      <div class="dialog-text" tabIndex={0} role="region" aria-label={t("Examples")}>
        <table class="settings-table">
          <thead>
            <tr>
              <th scope="col">{t("You write")}</th>
              <th scope="col">{t("Others see")}</th>
            </tr>
          </thead>
          <tbody>
            {examples.map((x) => (
              <tr key={x}>
                <td>
                  <code class="source">{x}</code>
                </td>
                <td>
                  <Rendered source={x} />
                </td>
              </tr>
            ))}
            <tr>
              <td>
                <code>{"@**" + t("Name") + "**"}</code>
              </td>
              <td>{t("Mentions and notifies a user or a group")}</td>
            </tr>
            <tr>
              <td>
                <code>{"#**" + t("channel>topic") + "**"}</code>
              </td>
              <td>{t("A link to a channel or topic")}</td>
            </tr>
          </tbody>
        </table>
      </div>
    </Dialog>
  );
}

// Rendered shows an example as the server renders it.
function Rendered({ source }: { source: string }) {
  const [html, setHTML] = useState("");
  useEffect(() => {
    renderMarkdown(source).then(
      (a) => setHTML(a.rendered),
      () => setHTML(""),
    );
  }, [source]);
  return <Content html={html} />;
}

export function SearchOperators() {
  const rows: [string, string][] = [
    ["word", t("Messages with the word")],
    ['"two words"', t("Messages with exactly these words")],
    ["channel:general", t("Messages in a channel")],
    ["channels:public", t("Messages in all public channels")],
    ["topic:lunch", t("Messages in a topic")],
    ["dm:Name", t("Direct messages with a user")],
    ["dm-including:Name", t("Direct messages in which a user takes part")],
    ["sender:Name", t("Messages that a user sent")],
    ["sender:me", t("Messages that you sent")],
    ["is:dm", t("Direct messages")],
    ["is:mentioned", t("Messages that mention you")],
    ["is:starred", t("Messages that you starred")],
    ["is:unread", t("Unread messages")],
    ["is:alerted", t("Messages with your alert words")],
    ["is:resolved", t("Messages in resolved topics")],
    ["is:followed", t("Messages in topics that you follow")],
    ["is:muted", t("Messages in muted topics and channels")],
    ["has:link", t("Messages with links")],
    ["has:image", t("Messages with images")],
    ["has:attachment", t("Messages with files")],
    ["has:reaction", t("Messages with reactions")],
    ["near:ID", t("Messages around a message")],
    ["-channel:general", t("A minus excludes: messages outside of the channel")],
  ];
  return (
    <Dialog title={t("Search operators")} wide onClose={closeOverlay}>
      <div class="dialog-text" tabIndex={0} role="region" aria-label={t("Search operators")}>
        <table class="settings-table">
          <thead>
            <tr>
              <th scope="col">{t("Operator")}</th>
              <th scope="col">{t("Finds")}</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(([operator, text]) => (
              <tr key={operator}>
                <td>
                  <code>{operator}</code>
                </td>
                <td>{text}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Dialog>
  );
}
