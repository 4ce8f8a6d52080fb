// Formatted text that is pasted becomes Markdown, and an address that is pasted over selected text becomes its link, as in
// Zulip. The library that converts text is loaded when it is needed.
import { insert } from "./text_field.ts";
import { dataTakers } from "./extras.ts";

const maxPaste = 500_000; // characters of HTML; longer texts are pasted without their formatting

// formats are elements that Markdown can express. Text without them is pasted as it is: programs for code, for example,
// copy spans of colours.
const formats = "a[href], b, strong, em, i, del, s, code, ul, ol, blockquote, h1, h2, h3, h4, h5, h6";

export function installPaste(): void {
  dataTakers.push(
    (data, area) => {
      const address = data.getData("text/plain").trim();
      const { selectionStart: a, selectionEnd: b, value } = area;
      const selected = value.slice(a, b);
      if (!isAddress(address) || !selected.trim() || selected.includes("\n") || isAddress(selected)) return false;
      insert(area, `[${selected}](${address})`);
      return true;
    },
    takeFormatted,
  );
}

function isAddress(text: string): boolean {
  return /^https?:\/\/\S+$/.test(text) && URL.canParse(text);
}

function takeFormatted(data: DataTransfer, area: HTMLTextAreaElement): boolean {
  const html = data.getData("text/html");
  if (!html || html.length > maxPaste || data.files.length > 0) return false;
  const { body } = new DOMParser().parseFromString(html.replace(/\sstyle="[^"]*"/g, ""), "text/html");
  if (!body.querySelector(formats) || body.querySelector("table")) return false;
  const plain = data.getData("text/plain");
  void import("./paste_markdown.ts").then(
    (m) => insert(area, m.markdownOf(body)),
    () => insert(area, plain), // without the library the text must not be lost
  );
  return true;
}
