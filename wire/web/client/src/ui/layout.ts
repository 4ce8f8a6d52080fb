// The open columns at the sides. On a phone both cover the view. In windows of medium width the people are shown above
// the right part of the messages, beside the button that opens them and above the compose box.
import { computed, signal } from "@preact/signals";

const wide = matchMedia("(min-width: 1100px)");
const phone = matchMedia("(max-width: 759px)"); // as in layout.css

// onPhone tells whether an open column covers the view, which cannot be used then.
export const onPhone = signal(phone.matches);
phone.addEventListener("change", () => (onPhone.value = phone.matches));

const isWide = signal(wide.matches);
wide.addEventListener("change", () => (isWide.value = wide.matches));

export const leftOpen = signal(false); // matters only on narrow windows
export const rightOpen = signal(wide.matches && localStorage.getItem("people") !== "closed");

// A window that becomes narrow, also by zooming, shows the view: there the column would cover it.
let openOnNarrow = false;

wide.addEventListener("change", () => {
  if (!wide.matches) {
    rightOpen.value = openOnNarrow;
    return;
  }
  openOnNarrow = rightOpen.value;
  rightOpen.value = openOnNarrow || localStorage.getItem("people") !== "closed";
});

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
  focusPeopleButton();
  // A slow browser drops the focus when the column is removed from the page.
  setTimeout(() => document.activeElement === document.body && focusPeopleButton(), 100);
}

function focusPeopleButton(): void {
  document.querySelector<HTMLElement>("[data-people]")?.focus();
}

// closeAfterLink closes a column that is above the view when one of its links was chosen for this window.
export function closeAfterLink(e: MouseEvent): void {
  if ((e.target as Element).closest("a") && !e.ctrlKey && !e.metaKey && !e.shiftKey) closeColumns();
}

rightOpen.subscribe((open) => {
  if (wide.matches) localStorage.setItem("people", open ? "open" : "closed");
});
