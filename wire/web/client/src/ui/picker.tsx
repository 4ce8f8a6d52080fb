// Picker is the field for one of several options, instead of the browser's select: a combobox with a list that is searched
// by typing. It follows the ARIA patterns of comboboxes. Only the options in the window of the list exist in the document.
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { plural, t } from "../i18n/text.ts";
import { Avatar } from "./avatar.tsx";
import { Icon, type IconName } from "./icons.tsx";
import { findWhileTyping, isShort } from "../store/people.ts";
import { matches } from "./matches.ts";

export interface PickerOption<T> {
  value: T;
  label: string;
  detail?: string;
  icon?: IconName;
  color?: string; // of the icon
  user?: number; // whose picture is shown
  disabled?: boolean;
}

interface Props<T> {
  value: T | undefined; // undefined: none is chosen
  options: readonly PickerOption<T>[];
  choose: (value: T) => void;
  id?: string; // of the element of its label
  label?: string; // else
  name?: string;
  placeholder?: string;
  describedBy?: string;
  disabled?: boolean;
  required?: boolean;
  class?: string;
}

const fewOptions = 8; // lists of so few are not searched: a letter goes to the next option that begins with it
const rowHeight = 34; // pixels, as in dialogs.css
const shownRows = 8;
const overscan = 4; // rows drawn beyond each edge

// fits reports whether an option is found by a query: each word begins a word of the label, or the label contains it.
function fits(o: { label: string; detail?: string }, q: string): boolean {
  return matches(o.label, q) || o.label.toLowerCase().includes(q) || (o.detail ?? "").toLowerCase().includes(q);
}

export function Picker<T extends string | number>(p: Props<T>) {
  const own = useId();
  const id = p.id ?? own;
  const input = useRef<HTMLInputElement>(null);
  const [open, setOpen] = useState(false);
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const searched = p.options.length > fewOptions || (isShort() && p.options.some((o) => o.user !== undefined));
  const q = query.trim().toLowerCase();
  const list = open && q ? p.options.filter((o) => fits(o, q)) : p.options;
  const chosen = p.options.find((o) => o.value === p.value);
  const show = (begin = ""): void => {
    if (p.disabled) return;
    setQuery(begin);
    setAt(begin ? 0 : Math.max(0, p.options.findIndex((o) => o.value === p.value)));
    setOpen(true);
  };
  const hide = (): void => {
    setOpen(false);
    setQuery("");
  };
  const choose = (o: PickerOption<T> | undefined): void => {
    if (!o || o.disabled) return;
    hide();
    if (o.value !== p.value) p.choose(o.value);
  };
  // step goes to another option that can be chosen.
  const step = (by: number): void => {
    let next = at;
    for (let left = Math.abs(by); left > 0; left--) {
      let i = next + Math.sign(by);
      while (list[i]?.disabled) i += Math.sign(by);
      if (!list[i]) break;
      next = i;
    }
    setAt(next);
  };
  // toLetter goes to the next option that begins with a letter.
  const toLetter = (letter: string): void => {
    const from = open ? at : p.options.findIndex((o) => o.value === p.value);
    const order = [...p.options.slice(from + 1), ...p.options.slice(0, from + 1)];
    const next = order.find((o) => !o.disabled && o.label.toLowerCase().startsWith(letter));
    if (!open) show();
    if (next) setAt(p.options.indexOf(next));
  };
  const keys = (e: KeyboardEvent): void => {
    if (e.isComposing || e.ctrlKey || e.metaKey) return;
    const down = { ArrowDown: 1, ArrowUp: -1, PageDown: shownRows, PageUp: -shownRows }[e.key];
    if (down !== undefined) {
      if (open) step(down);
      else show();
    } else if (open && e.key === "Enter") choose(list[at]);
    else if (open && e.key === "Escape") hide();
    else if (open && !searched && (e.key === "Home" || e.key === "End")) setAt(e.key === "Home" ? 0 : list.length - 1);
    else if (!searched && e.key === " ") open ? choose(list[at]) : show();
    else if (!searched && e.key.length === 1 && !e.altKey) toLetter(e.key.toLowerCase());
    else if (e.key === "Tab" && open) return hide();
    else return;
    e.preventDefault();
    e.stopPropagation();
  };
  return (
    <span class={`picker ${p.class ?? ""} ${open ? "open" : ""}`}>
      {chosen?.user !== undefined && !open && <Avatar id={chosen.user} size={20} />}
      {chosen?.icon && !open && <OptionIcon option={chosen} />}
      <input
        ref={input}
        id={id}
        type="text"
        class="picker-input"
        role="combobox"
        name={p.name}
        aria-label={p.label}
        aria-describedby={p.describedBy}
        aria-haspopup="listbox"
        aria-expanded={open}
        aria-autocomplete={searched ? "list" : "none"}
        aria-controls={open ? `${id}-list` : undefined}
        aria-activedescendant={open && list[at] ? `${id}-${at}` : undefined}
        autocomplete="off"
        spellcheck={false}
        readOnly={!searched}
        aria-required={p.required}
        disabled={p.disabled}
        placeholder={open ? (chosen?.label ?? t("Search")) : (p.placeholder ?? t("Choose…"))}
        value={open && searched ? query : (chosen?.label ?? "")}
        onMouseDown={() => (open ? searched || hide() : show())}
        onInput={(e) => {
          if (p.options.some((o) => o.user !== undefined)) findWhileTyping(e.currentTarget.value, { deactivated: "also" }); // some lists have deactivated users, too
          if (!open) return show((e as InputEvent).data ?? e.currentTarget.value); // not behind the label
          setQuery(e.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={keys}
        onBlur={hide}
      />
      <Icon name="chevronDown" size={14} />
      {open && <List id={`${id}-list`} item={id} field={input} list={list} at={at} value={p.value} choose={choose} />}
      <span class="visually-hidden" role="status">
        {open && searched ? plural(list.length, "{count} option", "{count} options") : ""}
      </span>
    </span>
  );
}

function OptionIcon({ option: o }: { option: Pick<PickerOption<unknown>, "icon" | "color"> }) {
  return (
    <span class="completion-icon" style={o.color ? { color: o.color } : undefined}>
      <Icon name={o.icon!} size={15} />
    </span>
  );
}

interface ListProps<T> {
  id: string;
  item: string; // the beginning of the ids of the options
  field: { current: HTMLInputElement | null };
  list: readonly PickerOption<T>[];
  at: number;
  value: T | undefined;
  choose: (o: PickerOption<T>) => void;
}

// List is in the top layer, so that no window cuts it off.
function List<T extends string | number>({ id, item, field, list, at, value, choose }: ListProps<T>) {
  const el = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const height = Math.min(list.length, shownRows) * rowHeight;
  useLayoutEffect(() => {
    el.current!.showPopover();
    const put = (): void => place(el.current!, field.current!.closest(".picker")!.getBoundingClientRect());
    put();
    addEventListener("resize", put);
    addEventListener("scroll", put, true);
    return () => {
      removeEventListener("resize", put);
      removeEventListener("scroll", put, true);
    };
  }, []);
  useLayoutEffect(() => place(el.current!, field.current!.closest(".picker")!.getBoundingClientRect()), [height]);
  useEffect(() => {
    const box = el.current!;
    if (at * rowHeight < box.scrollTop) box.scrollTop = at * rowHeight;
    else if ((at + 1) * rowHeight > box.scrollTop + box.clientHeight) box.scrollTop = (at + 1) * rowHeight - box.clientHeight;
  }, [at, list.length]);
  const first = Math.max(0, Math.floor(top / rowHeight) - overscan);
  const drawn = new Set<number>();
  for (let i = first; i < Math.min(list.length, first + shownRows + 2 * overscan); i++) drawn.add(i);
  if (at < list.length) drawn.add(at); // the field names it
  return (
    <div ref={el} id={id} popover="manual" class="picker-list" role="listbox" aria-label={t("Options")} tabIndex={-1} onScroll={(e) => setTop(e.currentTarget.scrollTop)} onMouseDown={(e) => e.preventDefault()}>
      <div role="presentation" style={{ height: `${list.length * rowHeight}px` }}>
        {[...drawn].map((i) => (
          <div
            key={String(list[i]!.value)}
            id={`${item}-${i}`}
            role="option"
            aria-selected={list[i]!.value === value}
            aria-disabled={list[i]!.disabled}
            aria-setsize={list.length}
            aria-posinset={i + 1}
            class={`picker-option ${i === at ? "current" : ""}`}
            style={{ top: `${i * rowHeight}px` }}
            onClick={(e) => {
              e.preventDefault(); // else a label around the field presses it again
              choose(list[i]!);
            }}
          >
            {list[i]!.user !== undefined && <Avatar id={list[i]!.user!} size={20} />}
            {list[i]!.icon && <OptionIcon option={list[i]!} />}
            <span class="grow">{list[i]!.label}</span>
            {list[i]!.detail && <small>{list[i]!.detail}</small>}
            {list[i]!.value === value && <Icon name="check" size={14} />}
          </div>
        ))}
      </div>
      {list.length === 0 && <p class="picker-none">{t("Nothing found")}</p>}
    </div>
  );
}

// place puts the list below the field, or above it where there is more room.
function place(el: HTMLElement, at: DOMRect): void {
  const gap = 4;
  const below = innerHeight - at.bottom - 2 * gap;
  const above = at.top - 2 * gap;
  const wanted = Math.min(el.scrollHeight + 2, shownRows * rowHeight + 10);
  const up = below < wanted && above > below;
  const width = Math.min(Math.max(at.width, 220), innerWidth - 2 * gap);
  const rtl = document.documentElement.dir === "rtl";
  const left = rtl ? at.right - width : at.left;
  el.style.width = `${width}px`;
  el.style.maxHeight = `${Math.min(wanted, up ? above : below)}px`;
  el.style.left = `${Math.max(gap, Math.min(left, innerWidth - width - gap))}px`;
  el.style.top = up ? "auto" : `${at.bottom + gap}px`;
  el.style.bottom = up ? `${innerHeight - at.top + gap}px` : "auto";
}
