// Dialogs: a stack of modal windows over everything. openDialog(<MyDialog />) shows one; closeDialog() ends the top one.
// A menu or card beside an element is a popover: openPopover(element, <Menu />).
import { signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { t } from "../i18n/text.ts";
import { Icon, type IconName } from "./icons.tsx";

export const dialogs = signal<JSX.Element[]>([]); // view state

export function openDialog(dialog: JSX.Element): void {
  closePopover();
  dialogs.value = [...dialogs.value, dialog];
}

export function closeDialog(): void {
  dialogs.value = dialogs.value.slice(0, -1);
}

// useSubmit returns whether a request of the dialog is on its way, and a function that sends one, unless one is: a second
// click on a slow network sends nothing. The request returns whether it succeeded. That closes the dialog, and no other one
// that is in front by then.
export function useSubmit(): [boolean, (send: () => Promise<boolean>) => void] {
  const [busy, setBusy] = useState(false);
  const sending = useRef(false);
  const submit = (send: () => Promise<boolean>): void => {
    if (sending.current) return;
    sending.current = true;
    setBusy(true);
    const own = dialogs.peek().at(-1);
    void send().then((done) => {
      sending.current = false;
      setBusy(false);
      if (done) dialogs.value = dialogs.value.filter((d) => d !== own);
    });
  };
  return [busy, submit];
}

// closeDialogs ends all, for actions that go to another view.
export function closeDialogs(): void {
  dialogs.value = [];
}

// Dialog is the frame of every dialog.
export function Dialog(p: { title: string; children: ComponentChildren; wide?: boolean; class?: string; onClose?: () => void; keys?: (e: KeyboardEvent) => void }) {
  const frame = useRef<HTMLDialogElement>(null);
  const close = p.onClose ?? closeDialog;
  // Not after the next frame: keys that are pressed until then would act on the page behind.
  useLayoutEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    const el = frame.current!;
    if (!el.open) el.showModal();
    // Without a field that asks for it, the window has the focus itself, not its first button, which closes it.
    if (!el.querySelector("[autofocus]")) el.focus();
    return () => {
      if (popover.value?.dialog === el) closePopover();
      el.close(); // while it is open, nothing outside of it can have the focus
      before?.focus?.();
    };
  }, []);
  return (
    <dialog
      ref={frame}
      tabIndex={-1}
      class={`dialog ${p.wide ? "wide" : ""} ${p.class ?? ""}`}
      aria-label={p.title}
      onCancel={(e) => {
        e.preventDefault();
        close();
      }}
      onMouseDown={(e) => e.target === frame.current && close()}
      onKeyDown={p.keys}
    >
      <div class="dialog-body">
        <header class="dialog-head">
          <h2>{p.title}</h2>
          <button class="icon-button" type="button" aria-label={t("Close")} onClick={close}>
            <Icon name="close" />
          </button>
        </header>
        {p.children}
      </div>
      <PopoverOf dialog={frame} />
    </dialog>
  );
}

// closeOn returns a handler of keys: the shortcut that opened a window also closes it.
export function closeOn(key: string, close: () => void = closeDialog): (e: KeyboardEvent) => void {
  return (e) => {
    if (e.key !== key) return;
    e.preventDefault();
    close();
  };
}

// Confirm asks before something that cannot be undone.
export function Confirm(p: { title: string; text: ComponentChildren; button: string; danger?: boolean; run: () => unknown }) {
  return (
    <Dialog title={p.title}>
      <div class="dialog-text">{p.text}</div>
      <footer class="dialog-foot">
        <button type="button" class="button quiet" onClick={closeDialog}>
          {t("Cancel")}
        </button>
        <button
          type="button"
          class={`button ${p.danger ? "danger" : ""}`}
          autofocus
          onClick={() => {
            closeDialog();
            void p.run();
          }}
        >
          {p.button}
        </button>
      </footer>
    </Dialog>
  );
}

interface Popover {
  at: DOMRect;
  owner: Element | null;
  dialog: Element | null; // that the owner is in
  content: JSX.Element;
  key?: string; // pressed again, it closes the popover
}

export const popover = signal<Popover | null>(null); // view state

export function openPopover(at: Element | DOMRect, content: JSX.Element, key?: string): void {
  const owner = at instanceof Element ? at : null;
  if (owner && popover.value?.owner === owner) {
    closePopover();
    return;
  }
  popover.value = { at: at instanceof Element ? at.getBoundingClientRect() : at, owner, dialog: owner?.closest("dialog") ?? null, content, key };
}

export function closePopover(): void {
  if (popover.value) popover.value = null;
}

// PopoverOf draws the popover if its owner is in the dialog; without a dialog, if its owner is outside of all. While a
// dialog is open, the browser lets users reach only what is in it.
function PopoverOf({ dialog }: { dialog?: { current: HTMLDialogElement | null } }) {
  const p = popover.value;
  if (!p || p.dialog !== (dialog?.current ?? null)) return null;
  return <PopoverFrame key={`${p.at.x},${p.at.y}`} popover={p} />;
}

export function DialogHost() {
  return (
    <>
      {dialogs.value.map((d, i) => (
        <div key={i}>{d}</div>
      ))}
      <PopoverOf />
    </>
  );
}

function PopoverFrame({ popover: p }: { popover: Popover }) {
  const frame = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const el = frame.current!;
    place(el, p.at);
    const again = (): void => place(el, p.owner?.isConnected ? p.owner.getBoundingClientRect() : p.at);
    const grows = new ResizeObserver(again);
    grows.observe(el);
    addEventListener("resize", again);
    const before = document.activeElement as HTMLElement | null;
    const first = el.querySelector<HTMLElement>("[autofocus], input, [role=menuitem], button, a");
    (first ?? el).focus();
    const outside = (e: Event): void => {
      if (!el.contains(e.target as Node) && !p.owner?.contains(e.target as Node)) closePopover();
    };
    addEventListener("mousedown", outside, true);
    return () => {
      grows.disconnect();
      removeEventListener("resize", again);
      removeEventListener("mousedown", outside, true);
      if (before?.isConnected && el.contains(document.activeElement)) before.focus();
    };
  }, [p]);
  const keys = (e: KeyboardEvent): void => {
    const inField = (e.target as Element).matches("input, textarea, select");
    if (e.key === "Escape" || (e.ctrlKey && e.key === "[") || (e.key === p.key && !inField)) {
      e.preventDefault();
      e.stopPropagation();
      closePopover();
    }
    if (e.key === "ArrowDown" || e.key === "ArrowUp") moveFocus(frame.current!, e);
  };
  return (
    <div ref={frame} class="popover" role="region" aria-label={t("Menu")} tabIndex={-1} onKeyDown={keys}>
      {p.content}
    </div>
  );
}

function moveFocus(frame: HTMLElement, e: KeyboardEvent): void {
  const items = [...frame.querySelectorAll<HTMLElement>("[role=menuitem]")];
  if (items.length === 0) return;
  e.preventDefault();
  const at = items.indexOf(document.activeElement as HTMLElement);
  const next = (at + (e.key === "ArrowDown" ? 1 : -1) + items.length) % items.length;
  items[next]!.focus();
}

// place puts a popover beside its owner, inside of the window.
function place(el: HTMLElement, at: DOMRect): void {
  const gap = 6;
  const { width, height } = el.getBoundingClientRect();
  const below = at.bottom + gap + height <= innerHeight;
  const top = below ? at.bottom + gap : Math.max(gap, at.top - gap - height);
  const rtl = document.documentElement.dir === "rtl";
  const wanted = rtl ? at.right - width : at.left;
  const left = Math.max(gap, Math.min(wanted, innerWidth - width - gap));
  el.style.left = `${left}px`;
  el.style.top = `${Math.max(gap, Math.min(top, innerHeight - height - gap))}px`;
}

// MenuItem is one action of a menu.
export interface MenuItem {
  label: string;
  icon?: IconName;
  key?: string; // the shortcut, for display
  danger?: boolean;
  run: () => unknown;
}

// MenuItems are the lines of a menu: null draws a line between groups, false and undefined draw nothing.
export type MenuItems = (MenuItem | null | false | undefined)[];

// Menu is a popover with actions.
export function Menu({ items, label }: { items: MenuItems; label: string }) {
  return (
    <div class="menu" role="menu" aria-label={label}>
      {items.map((item, i) =>
        item ? (
          <button
            key={item.label}
            type="button"
            role="menuitem"
            class={item.danger ? "danger" : ""}
            onClick={() => {
              closePopover();
              void item.run();
            }}
          >
            {item.icon ? <Icon name={item.icon} size={16} /> : <span class="icon-space" />}
            <span class="grow">{item.label}</span>
            {item.key && <kbd>{item.key}</kbd>}
          </button>
        ) : item === null ? (
          <hr key={i} />
        ) : null,
      )}
    </div>
  );
}
