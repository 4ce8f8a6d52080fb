// The tools of text fields. The buttons, the shortcuts, their lines in the list of shortcuts and the tests are all made from
// textTools.
import { openEmojiPicker } from "../emoji/open_picker.ts";
import { t } from "../i18n/text.ts";
import { Icon, type IconName } from "../ui/icons.tsx";
import { nameOf } from "../ui/key_names.ts";
import { change, insert, type Edit, type Selected } from "./text_field.ts";

interface Named {
  name: string;
  label: () => string;
  icon: IconName;
  key?: string; // the shortcut, as nameOf returns it
  shown?: (area: HTMLTextAreaElement | null) => boolean; // else always
}

// Formatting changes the text. The examples are texts before and after it, with the selected part between « and ».
export interface Formatting extends Named {
  edit(s: Selected): Edit;
  examples: [string, string][];
}

// Opening does something else with the field, such as opening a window.
interface Opening extends Named {
  run(area: HTMLTextAreaElement, button: HTMLElement): void;
}

type TextTool = Formatting | Opening;

// textTools is a registry: modules add their tools.
export const textTools: TextTool[] = [
  {
    name: "bold",
    label: () => t("Bold"),
    icon: "bold",
    key: "Ctrl+b",
    edit: (s) => wrap(s, "**", "**"),
    examples: [["a «word»", "a **«word»**"], ["a **«word»**", "a «word»"], ["*«word»*", "***«word»***"]],
  },
  {
    name: "italic",
    label: () => t("Italic"),
    icon: "italic",
    key: "Ctrl+i",
    edit: (s) => wrap(s, "*", "*"),
    examples: [["«»", "*«»*"], ["***«word»***", "**«word»**"], ["**«word»**", "***«word»***"]],
  },
  {
    name: "strikethrough",
    label: () => t("Strikethrough"),
    icon: "strike",
    edit: (s) => wrap(s, "~~", "~~"),
    examples: [["a «word»", "a ~~«word»~~"], ["a ~~«word»~~", "a «word»"]],
  },
  {
    name: "link",
    label: () => t("Link"),
    icon: "link",
    key: "Ctrl+Shift+L",
    edit: (s) => wrap(s, "[", linkEnd),
    examples: [["a «word»", "a [word](«url»)"], ["«»", "[«»](url)"]],
  },
  {
    name: "code",
    label: () => t("Code"),
    icon: "code",
    key: "Ctrl+Shift+C",
    edit: code,
    examples: [["«x»", "`«x»`"], ["`«x»`", "«x»"], ["«x\ny»", "```\n«x\ny»\n```"]],
  },
  {
    name: "list",
    label: () => t("List"),
    icon: "list",
    edit: (s) => linePrefix(s, () => "- "),
    examples: [["one\nt«wo\nthr»ee", "one\n- two\n- thr«»ee"]],
  },
  {
    name: "numbered-list",
    label: () => t("Numbered list"),
    icon: "numbers",
    edit: (s) => linePrefix(s, (i) => `${i + 1}. `),
    examples: [["one\nt«wo\nthr»ee", "one\n1. two\n2. thr«»ee"]],
  },
  {
    name: "quote",
    label: () => t("Quote"),
    icon: "quote",
    edit: (s) => linePrefix(s, () => "> "),
    examples: [["a word«»", "> a word«»"]],
  },
  {
    name: "spoiler",
    label: () => t("Spoiler"),
    icon: "spoiler",
    edit: (s) => block(s, "```spoiler "),
    examples: [["the «end»", "the \n```spoiler «»\nend\n```\n"], ["«»", "```spoiler «»\n\n```\n"]],
  },
  {
    name: "math",
    label: () => t("Math"),
    icon: "math",
    edit: (s) => (s.value.slice(s.start, s.end).includes("\n") ? wrap(s, "```math\n", "\n```") : wrap(s, "$$", "$$")),
    examples: [["a «x^2»", "a $$«x^2»$$"], ["a $$«x^2»$$", "a «x^2»"], ["«x\ny»", "```math\n«x\ny»\n```"]],
  },
  {
    name: "emoji",
    label: () => t("Emoji"),
    icon: "smile",
    run: (area, button) => openEmojiPicker(button, (e) => insert(area, `:${e.emoji_name}: `)),
  },
];

function run(tool: TextTool, area: HTMLTextAreaElement, button: HTMLElement): void {
  if ("edit" in tool) change(area, tool.edit);
  else tool.run(area, button);
}

// runShortcut carries out the tool of a pressed key. It returns false for other keys.
export function runShortcut(e: KeyboardEvent, area: HTMLTextAreaElement): boolean {
  const name = nameOf(e);
  const tool = textTools.find((x) => x.key === name);
  if (tool) run(tool, area, area);
  return tool !== undefined;
}

export function TextTools({ area, disabled }: { area: { current: HTMLTextAreaElement | null }; disabled: boolean }) {
  return (
    <fieldset class="compose-text-tools" disabled={disabled}>
      {textTools
        .filter((x) => x.shown?.(area.current) ?? true)
        .map((x) => (
          <button
            key={x.name}
            type="button"
            class="icon-button"
            title={x.label()}
            aria-label={x.label()}
            onMouseDown={(e) => e.preventDefault()}
            onClick={(e) => run(x, area.current!, e.currentTarget)}
          >
            <Icon name={x.icon} size={17} />
          </button>
        ))}
    </fieldset>
  );
}

const linkEnd = "](url)";

// wrap puts marks around the selected text, or removes them, and selects the text again: then the same tool undoes it.
function wrap({ value, start: a, end: b }: Selected, before: string, after: string): Edit {
  const inner = value.slice(a, b);
  if (before === after && inner && isWrapped(value, a, b, before)) {
    const from = a - before.length;
    return { from, to: b + after.length, insert: inner, select: [from, from + inner.length] };
  }
  const start = a + before.length;
  const end = start + inner.length;
  const address = inner !== "" && after === linkEnd;
  return { from: a, to: b, insert: before + inner + after, select: address ? [end + 2, end + 5] : [start, end] };
}

// isWrapped reports whether a part of a text is between marks. One star is italic, two are bold, three are both.
function isWrapped(value: string, a: number, b: number, mark: string): boolean {
  if (mark.startsWith("*")) {
    const stars = Math.min(/\**$/.exec(value.slice(0, a))![0].length, /^\**/.exec(value.slice(b))![0].length);
    return mark === "*" ? stars === 1 || stars >= 3 : stars >= 2;
  }
  return value.slice(0, a).endsWith(mark) && value.slice(b).startsWith(mark);
}

function code(s: Selected): Edit {
  return s.value.slice(s.start, s.end).includes("\n") ? wrap(s, "```\n", "\n```") : wrap(s, "`", "`");
}

// block puts the selected text into a block of its own lines, with the cursor behind the beginning of the block.
function block({ value, start, end }: Selected, begin: string): Edit {
  const before = start > 0 && value[start - 1] !== "\n" ? "\n" : "";
  const at = start + before.length + begin.length;
  return { from: start, to: end, insert: `${before}${begin}\n${value.slice(start, end)}\n\`\`\`\n`, select: [at, at] };
}

function linePrefix({ value, start, end }: Selected, prefix: (line: number) => string): Edit {
  const from = value.lastIndexOf("\n", start - 1) + 1;
  return { from, to: end, insert: value.slice(from, end).split("\n").map((l, i) => prefix(i) + l).join("\n") };
}
