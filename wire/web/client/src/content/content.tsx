// The text of a message. The server has rendered it to safe HTML; this makes emoji, times, spoilers, code blocks and
// links work. Style attributes, which the security policy does not allow in HTML, are set from here.
import { parseAddress } from "../api/address.ts";
import { memo } from "../ui/memo.ts";
import { useLayoutEffect, useRef } from "preact/hooks";
import { t } from "../i18n/text.ts";
import { peek, read } from "../store/store.ts";
import { keepPosition } from "./players.ts";
import { playgroundAddress } from "./playground.ts";
import { isInSetting } from "../store/queries.ts";
import { formatTime } from "../ui/time.ts";
import { emojiText } from "../emoji/glyph.tsx";

export const Content = memo(function Content({ html, class: cls = "" }: { html: string; class?: string }) {
  const el = useRef<HTMLDivElement>(null);
  const emojiset = read("settings").emojiset;
  const playgrounds = read("playgrounds");
  useLayoutEffect(() => {
    el.current!.replaceChildren(prepare(html));
  }, [html, emojiset, playgrounds]);
  return <div class={`content ${cls}`} ref={el} dir="auto" />;
});

// prepare turns rendered HTML into nodes.
function prepare(html: string): DocumentFragment {
  const parser = new DOMParser().parseFromString(html.replace(/<[a-z][^>]*>/gi, withoutStyle), "text/html");
  const out = document.createDocumentFragment();
  const root = parser.body;
  const each = (selector: string, fn: (el: HTMLElement) => void): void => {
    for (const el of root.querySelectorAll<HTMLElement>(selector)) fn(el);
  };
  each("span.emoji", unicodeEmoji);
  each("time", localTime);
  each("a[href]", prepareLink);
  each(".user-mention", prepareMention);
  each(".user-group-mention", prepareGroupMention);
  each(".codehilite", addCodeTools);
  each(".spoiler-block", prepareSpoiler);
  each('a[href^="/user_uploads/"]', fileCard);
  each("a.message_embed_image", (el) => {
    el.setAttribute("aria-hidden", "true"); // the title beside it is the same link
    el.tabIndex = -1;
  });
  each("img", (el) => el.setAttribute("loading", "lazy"));
  each(".message_inline_image", inlineSize);
  gatherImages(root);
  each("pre", (el) => (el.tabIndex = 0)); // the keyboard scrolls long lines
  each("audio", (el) => keepPosition(el as HTMLMediaElement));
  const styled = [...root.querySelectorAll<HTMLElement>("[data-style]")];
  if (root.querySelector(".katex")) void import("./katex.ts").then((k) => k.loadStyles());
  onlyEmoji(root);
  out.append(...root.childNodes);
  document.adoptNode(out);
  for (const el of styled) {
    el.style.cssText = el.dataset.style!;
    delete el.dataset.style;
  }
  return out;
}

// withoutStyle renames the style attribute of a tag, because the parser would report it as a violation.
function withoutStyle(tag: string): string {
  return tag.replace(/\sstyle="/g, ' data-style="');
}

// unicodeEmoji shows an emoji as text, which browsers draw in colour.
function unicodeEmoji(el: HTMLElement): void {
  if (peek().settings.emojiset === "text") return;
  const code = /\bemoji-([0-9a-f-]+)\b/.exec(el.className)?.[1];
  if (code) el.textContent = emojiText(code);
}

function localTime(el: HTMLElement): void {
  const at = Date.parse(el.getAttribute("datetime") ?? "");
  if (Number.isNaN(at)) return;
  el.textContent = formatTime(at / 1000, "full");
  el.title = t("Everyone sees this in their own time zone.");
}

// scripts are the protocols of addresses that run code in the page. The server sends none of them.
const scripts = new Set(["javascript:", "vbscript:", "data:"]);

function prepareLink(el: HTMLElement): void {
  const a = el as HTMLAnchorElement;
  const url = parseAddress(a.getAttribute("href")!, location.href);
  if (!url || scripts.has(url.protocol)) return a.removeAttribute("href");
  if (url.origin === location.origin && url.pathname === "/" && url.hash) {
    a.setAttribute("href", url.hash);
    return;
  }
  a.target = "_blank";
  a.rel = "noopener noreferrer";
}

// fileCard shows a link to an uploaded file that is no picture, video or sound as a card with the kind of the file.
function fileCard(el: HTMLElement): void {
  if (el.closest(".message_inline_image, .message_inline_video, audio") || el.querySelector("img, video, audio")) return;
  const kind = /\.([a-z0-9]{1,5})$/i.exec(parseAddress(el.getAttribute("href")!, location.href)?.pathname ?? "")?.[1];
  el.classList.add("file-card");
  el.dataset.kind = (kind ?? "").toUpperCase();
}

function prepareMention(el: HTMLElement): void {
  const id = el.dataset.userId;
  const silent = el.classList.contains("silent");
  if (id === "*" || el.classList.contains("topic-mention")) {
    el.classList.add("mentions-me");
    return;
  }
  const u = peek().users.get(Number(id));
  if (u) el.textContent = (silent ? "" : "@") + u.full_name;
  if (Number(id) === peek().me.user_id && !silent) el.classList.add("mentions-me");
  el.setAttribute("role", "button");
  el.tabIndex = 0;
}

function prepareGroupMention(el: HTMLElement): void {
  const g = peek().groups.get(Number(el.dataset.userGroupId));
  const silent = el.classList.contains("silent");
  if (g && isInSetting(peek(), g.id, peek().me.user_id) && !silent) el.classList.add("mentions-me");
  el.setAttribute("role", "button");
  el.tabIndex = 0;
}

// addCodeTools adds a button that copies the code, and links to the playgrounds of its language.
function addCodeTools(el: HTMLElement): void {
  const tools = document.createElement("div");
  tools.className = "code-tools";
  const language = el.dataset.codeLanguage;
  for (const p of peek().playgrounds) {
    if (!language || p.pygments_language !== language) continue;
    const link = document.createElement("a");
    link.className = "code-copy";
    link.textContent = t("View in {name}", { name: p.name });
    link.href = playgroundAddress(p.url_template, el.querySelector("code")?.textContent ?? "");
    link.target = "_blank";
    link.rel = "noopener noreferrer";
    tools.append(link);
  }
  const button = document.createElement("button");
  button.type = "button";
  button.className = "code-copy";
  button.dataset.action = "copy-code";
  button.textContent = t("Copy");
  tools.append(button);
  el.append(tools);
  if (language) el.title = language;
}

function prepareSpoiler(el: HTMLElement): void {
  const head = el.querySelector<HTMLElement>(".spoiler-header");
  const body = el.querySelector<HTMLElement>(".spoiler-content");
  if (!head || !body) return;
  if (!head.textContent?.trim()) head.textContent = t("Spoiler");
  head.tabIndex = 0;
  head.setAttribute("role", "button");
  head.setAttribute("aria-expanded", "false");
  head.dataset.action = "spoiler";
  body.hidden = true;
}

// inlineSize reserves the room of an image before it is loaded, so that the list does not move, and names the image.
function inlineSize(el: HTMLElement): void {
  const img = el.querySelector("img");
  const link = el.querySelector("a");
  if (img && !img.alt) img.alt = link?.title || link?.href.split("/").pop() || t("Picture");
  const size = /^(\d+)x(\d+)$/.exec(img?.dataset.originalDimensions ?? "");
  if (!img || !size) return;
  img.width = Number(size[1]);
  img.height = Number(size[2]);
}

// gatherImages puts images that follow each other into one grid.
function gatherImages(root: HTMLElement): void {
  for (const first of root.querySelectorAll<HTMLElement>(".message_inline_image")) {
    if (first.parentElement?.classList.contains("image-grid")) continue;
    const grid = root.ownerDocument.createElement("div");
    grid.className = "image-grid";
    first.before(grid);
    let next: Element | null = first;
    while (next?.classList.contains("message_inline_image")) {
      const after: Element | null = next.nextElementSibling;
      grid.append(next);
      next = after;
    }
  }
}

// onlyEmoji enlarges a message that has nothing but emoji.
function onlyEmoji(root: HTMLElement): void {
  const p = root.children.length === 1 ? root.firstElementChild : null;
  if (p?.tagName !== "P") return;
  const nodes = [...p.childNodes];
  const emoji = nodes.every((n) =>
    n instanceof Element || n.nodeType === 1 ? (n as Element).classList.contains("emoji") : !n.textContent?.trim(),
  );
  if (emoji && nodes.length && nodes.length < 12) p.classList.add("only-emoji");
}
