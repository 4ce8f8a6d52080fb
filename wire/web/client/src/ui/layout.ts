// The open columns at the sides. On a phone both cover the view. In windows of medium width the people are shown above
// the right part of the messages, beside the button that opens them and above the compose box.
import { batch, computed, signal } from "@preact/signals";

const wide = matchMedia("(min-width: 1100px)");
const phone = matchMedia("(max-width: 759px)"); // as in layout.css

// onPhone tells whether an open column covers the view, which cannot be used then.
const onPhone = signal(phone.matches); // view state

const isWide = signal(wide.matches); // view state

export const leftOpen = signal(false); // view state; matters only on narrow windows
// rightOpen is view state that this browser keeps.
export const rightOpen = signal(wide.matches && localStorage.getItem("people") !== "closed");

// A window that becomes narrow, also by zooming, shows the view: there the column would cover it.
let openOnNarrow = false; // view state

// resized takes over both widths at once: in between, the column of people would be above the view, and get the focus.
const resized = (): void =>
  batch(() => {
    onPhone.value = phone.matches;
    if (isWide.value === wide.matches) return;
    isWide.value = wide.matches;
    if (wide.matches) openOnNarrow = rightOpen.value;
    rightOpen.value = openOnNarrow || (wide.matches && localStorage.getItem("people") !== "closed");
  });
for (const width of [wide, phone]) width.addEventListener("change", resized);

// covered tells whether a column covers the view, on a phone.
export const covered = computed(() => onPhone.value && (leftOpen.value || rightOpen.value));

// peopleFloat tells whether the people are above a part of the view, in a window of medium width.
export const peopleFloat = computed(() => !isWide.value && !onPhone.value && rightOpen.value);

// closeColumns closes the columns that are above the view. It returns false if none is.
export function closeColumns(): boolean {
  if (!covered.value && !peopleFloat.value) return false;
  leftOpen.value = false;
  rightOpen.value = false;
  return true;
}

// closePeople closes the column of people, and gives the focus back to the button that opens it.
export function closePeople(): void {
  rightOpen.value = false;
  focusWhenDrawn("[data-people]");
}

// focusWhenDrawn focuses an element once the page has been drawn with the columns as they are now: while a column covers
// the view, the view is inert, and nothing in it can have the focus. The microtask that draws was queued before this one,
// so no key is pressed in between.
export function focusWhenDrawn(selector: string): void {
  queueMicrotask(() => document.querySelector<HTMLElement>(selector)?.focus());
}

// closeAfterLink closes a column that is above the view when one of its links was chosen for this window.
export function closeAfterLink(e: MouseEvent): void {
  if ((e.target as Element).closest("a") && !e.ctrlKey && !e.metaKey && !e.shiftKey) closeColumns();
}

rightOpen.subscribe((open) => {
  if (wide.matches) localStorage.setItem("people", open ? "open" : "closed");
});
