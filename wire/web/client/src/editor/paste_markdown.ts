// The conversion of HTML to the Markdown of messages.
import Turndown from "turndown";

// markdownOf returns the Markdown of the content of an element, which it changes.
export function markdownOf(body: HTMLElement): string {
  for (const el of body.querySelectorAll("script, style, meta, title")) el.remove();
  // Some editors put everything into one element for bold text.
  for (const el of body.querySelectorAll("b")) if (el.querySelector("p, ul, ol, div, h1, h2, h3")) el.replaceWith(...el.childNodes);
  const service = new Turndown({ headingStyle: "atx", bulletListMarker: "*", codeBlockStyle: "fenced", emDelimiter: "*", hr: "---" });
  service.escape = (text) => text; // messages have no backslash escapes
  service.addRule("struck", { filter: ["del", "s"], replacement: (text) => `~~${text}~~` });
  service.addRule("image", { filter: "img", replacement: (_, el) => (el as HTMLImageElement).alt });
  service.addRule("link", {
    filter: (el) => el.nodeName === "A" && !!el.getAttribute("href"),
    replacement: (text, el) => linkText(text, (el as HTMLAnchorElement).getAttribute("href")!),
  });
  return service.turndown(body).replace(/^(\s*[*\d.]+)\s{2,}/gm, "$1 ");
}

function linkText(text: string, href: string): string {
  if (!/^(https?|mailto):/.test(href)) return text;
  return text === href || text === "" ? href : `[${text}](${href})`;
}
