// Long messages are shortened to a part of the window. A button below shows the rest, as in Zulip.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Message } from "../api/types.ts";
import { t } from "../i18n/text.ts";
import { shownList } from "./selection.ts";
import { Content } from "../content/content.tsx";

const part = 0.65; // of the height of the window
const slack = 60; // pixels: less is not worth a button
const shortText = 900; // characters that never fill the part, unless they are many lines

// whole has the keys of the rows that the user has opened: rows are drawn again when they come back into the window.
const whole = signal<ReadonlySet<string>>(new Set()); // view state

// cutHeight returns the height in pixels to which long messages are shortened.
function cutHeight(): number {
  return Math.round(part * (globalThis.innerHeight ?? 800));
}

function setWhole(key: string, open: boolean): void {
  const now = new Set(whole.peek());
  if (open) now.add(key);
  else now.delete(key);
  whole.value = now;
}

// mayBeLong tells whether a text has to be measured.
function mayBeLong(text: string): boolean {
  return text.length > shortText || text.split("\n").length > 12;
}

export function MessageContent({ message: m }: { message: Message }) {
  const rendered = m.match_content ?? m.content;
  const html = m.is_me_message ? rendered.replace(/^<p>\/me /, "<p>") : rendered; // the name is before it
  return mayBeLong(html) ? <Shortened row={String(m.id)} text={html}><Content html={html} /></Shortened> : <Content html={html} />;
}

// OutgoingContent is the text of a message that is being sent. Only the server renders it.
export function OutgoingContent({ row, text }: { row: string; text: string }) {
  const content = (
    <div class="content plain" dir="auto">
      {text}
    </div>
  );
  return mayBeLong(text) ? <Shortened row={row} text={text}>{content}</Shortened> : content;
}

// openCondensed shows the whole text of a message that is shortened. It returns false for others.
export function openCondensed(id: number): boolean {
  if (!document.querySelector(`[data-message="${id}"] .condensed`)) return false;
  setWhole(String(id), true);
  return true;
}

// Shortened shows the beginning of a long text, and a button. row is the key of the row in the list.
function Shortened({ row, text, children }: { row: string; text: string; children: ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const open = whole.value.has(row);
  // The box is shortened here, not by drawing it again: the list measures its rows right after this.
  useLayoutEffect(() => {
    const content = box.current!.firstElementChild as HTMLElement;
    const fit = (): void => {
      const limit = cutHeight();
      const long = content.scrollHeight > limit + slack;
      box.current!.classList.toggle("condensed", long && !open);
      box.current!.style.maxHeight = long && !open ? `${limit}px` : "";
      button.current!.hidden = !long;
      if (long && !open && foundBelow(content, limit)) setWhole(row, true);
    };
    fit();
    const sizes = new ResizeObserver(fit);
    sizes.observe(content);
    addEventListener("resize", fit);
    return () => {
      sizes.disconnect();
      removeEventListener("resize", fit);
    };
  }, [text, open]);
  const toggle = (): void => {
    setWhole(row, !open);
    if (open) toTop(row, button.current!);
  };
  return (
    <>
      <div ref={box} class="long" onFocusIn={(e) => !open && isBelow(e.target as Element, box.current!, cutHeight()) && setWhole(row, true)}>
        {children}
      </div>
      <button ref={button} type="button" class="link show-more" hidden aria-expanded={open} onClick={toggle}>
        {open ? t("Show less") : t("Show more")}
      </button>
    </>
  );
}

function isBelow(el: Element, box: Element, limit: number): boolean {
  return el.getBoundingClientRect().bottom - box.getBoundingClientRect().top > limit;
}

// foundBelow tells whether all found words of a search are in the hidden part.
function foundBelow(content: HTMLElement, limit: number): boolean {
  const first = content.querySelector(".highlight");
  return !!first && isBelow(first, content, limit);
}

// toTop shows the beginning of a message that has become short, if it was above the window.
function toTop(key: string, within: Element): void {
  const row = within.closest(".message")!.getBoundingClientRect();
  const list = within.closest(".virtual")?.getBoundingClientRect();
  if (list && row.top < list.top) shownList.peek()?.list.scrollTo({ key, align: "start" });
}
