// The look and the behaviour of the client.
import { useContext } from "preact/hooks";
import { ColorScheme } from "../api/types.ts";
import { languageNames } from "../i18n/languages.ts";
import { t } from "../i18n/text.ts";
import { read } from "../store/store.ts";
import { density, type Density } from "../ui/density.ts";
import { ForNewUsers, PlainChoice, UserChoice, UserSwitch } from "../forms/fields.tsx";
import { Card } from "../forms/forms.tsx";

export function Preferences() {
  const chosen = String(read("settings").default_language ?? "en");
  const languages = { ...(chosen in languageNames ? {} : { [chosen]: chosen }), ...languageNames };
  return (
    <>
      <Card title={t("Appearance")}>
        <UserChoice
          name="default_language"
          label={t("Language")}
          help={t("Texts without a translation are shown in English.")}
          options={Object.entries(languages).map(([value, label]) => ({ value, label }))}
        />
        <UserChoice
          name="color_scheme"
          label={t("Theme")}
          options={[
            { value: ColorScheme.system, label: t("Automatic") },
            { value: ColorScheme.light, label: t("Light") },
            { value: ColorScheme.dark, label: t("Dark") },
          ]}
        />
        <DensityChoice />
        {read("realm").server_assistant && (
          <UserSwitch name="hide_ai_features" label={t("Hide summaries and translations")} />
        )}
        <UserSwitch name="high_contrast_mode" label={t("High contrast")} />
        <UserSwitch name="fluid_layout_width" label={t("Use full width on wide screens")} />
        <UserChoice name="web_font_size_px" label={t("Text size")} options={[12, 14, 15, 16, 18, 20].map((n) => ({ value: n, label: `${n} px` }))} />
      </Card>
      <Card title={t("Views")}>
        <UserChoice
          name="web_home_view"
          label={t("Home view")}
          options={[
            { value: "inbox", label: t("Inbox") },
            { value: "recent", label: t("Recent conversations") },
            { value: "all_messages", label: t("Combined feed") },
          ]}
        />
        <UserSwitch name="web_left_sidebar_show_channel_folders" label={t("Group channels by folder in the left column")} />
        <UserSwitch name="web_inbox_show_channel_folders" label={t("Group channels by folder in the inbox")} />
        <UserSwitch name="web_escape_navigates_to_home_view" label={t("Escape goes to the home view")} />
        <UserChoice
          name="web_mark_read_on_scroll_policy"
          label={t("Mark messages as read when they are seen")}
          options={[
            { value: 1, label: t("Always") },
            { value: 2, label: t("Only in conversations") },
            { value: 3, label: t("Never") },
          ]}
        />
      </Card>
      <Card title={t("Writing")}>
        <UserSwitch name="enter_sends" label={t("Enter sends messages")} help={t("Otherwise Ctrl+Enter does.")} />
        <UserSwitch name="web_navigate_to_sent_message" label={t("Open the conversation of a sent message")} />
        <UserSwitch name="twenty_four_hour_time" label={t("24-hour time")} />
        <UserChoice
          name="emojiset"
          label={t("Emoji")}
          options={[
            { value: "google", label: t("Pictures of the system") },
            { value: "text", label: t("Text, such as :smile:") },
          ]}
        />
        <UserSwitch name="translate_emoticons" label={t("Convert emoticons such as :) to emoji before sending")} />
      </Card>
      <Card title={t("Lists")}>
        <UserSwitch name="starred_message_counts" label={t("Show the number of starred messages")} />
        <UserSwitch name="display_emoji_reaction_users" label={t("Display names of reacting users when few users have reacted")} />
        <UserChoice
          name="user_list_style"
          label={t("List of people")}
          options={[
            { value: 1, label: t("Compact") },
            { value: 2, label: t("With status") },
            { value: 3, label: t("With pictures and status") },
          ]}
        />
      </Card>
    </>
  );
}

// DensityChoice is a setting of this browser, not of the account: it fits the screen.
function DensityChoice() {
  if (useContext(ForNewUsers)) return null;
  const options: { value: Density; label: string }[] = [
    { value: "compact", label: t("Compact") },
    { value: "comfortable", label: t("Comfortable") },
  ];
  return <PlainChoice<Density> label={t("Density in this browser")} value={density.value} options={options} choose={(v) => (density.value = v)} />;
}
