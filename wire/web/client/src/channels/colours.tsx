// The colours that a user can give to a channel.
import { changeSubscription } from "../api/endpoints.ts";
import { t } from "../i18n/text.ts";
import { attempt } from "../store/actions.ts";
import { read } from "../store/store.ts";
import { closePopover } from "../ui/dialogs.tsx";

// colours are names for screen readers and the values that are stored.
function colours(): [string, string][] {
  return [
    [t("Red"), "#e4523d"],
    [t("Orange"), "#f0a050"],
    [t("Brown"), "#a47462"],
    [t("Yellow"), "#fae589"],
    [t("Lime"), "#b5cf4f"],
    [t("Green"), "#76ce90"],
    [t("Dark green"), "#53a063"],
    [t("Turquoise"), "#58c4c0"],
    [t("Light blue"), "#a6c7e5"],
    [t("Blue"), "#4f8de4"],
    [t("Dark blue"), "#4b5cc4"],
    [t("Violet"), "#bd86e5"],
    [t("Purple"), "#9987e1"],
    [t("Pink"), "#e79ab5"],
    [t("Magenta"), "#e4a5d6"],
    [t("Gray"), "#94989f"],
  ];
}

// ColourChoice is a group of radio buttons, one for each colour. A stored colour that is none of them is one more.
export function ColourChoice({ channel, done }: { channel: number; done?: () => void }) {
  const now = read("subscriptions").get(channel)?.color ?? "";
  const list = colours();
  if (now && !list.some(([, value]) => value === now)) list.push([t("Current color"), now]);
  const choose = (value: string): void => {
    void attempt(changeSubscription({ stream_id: channel, property: "color", value }));
    done?.();
  };
  return (
    <div class="colours" role="radiogroup" aria-label={t("Color")}>
      {list.map(([name, value]) => (
        <label key={value} class="colour" title={name} style={{ "--colour": value }}>
          <input class="visually-hidden" type="radio" name={`colour-${channel}`} aria-label={name} checked={value === now} onChange={() => choose(value)} />
        </label>
      ))}
    </div>
  );
}

export function ColourCard({ channel }: { channel: number }) {
  return (
    <div class="card">
      <ColourChoice channel={channel} done={closePopover} />
    </div>
  );
}
