// The open columns at the sides. On narrow windows they cover the view.
import { computed, signal } from "@preact/signals";

const wide = matchMedia("(min-width: 1100px)");
const phone = matchMedia("(max-width: 759px)"); // as in layout.css

// onPhone tells whether an open column covers the view, which cannot be used then.
export const onPhone = signal(phone.matches);
phone.addEventListener("change", () => (onPhone.value = phone.matches));

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

// closeColumns closes the columns that cover the view. It returns false if none does.
export function closeColumns(): boolean {
  if (!covered.value) return false;
  leftOpen.value = false;
  rightOpen.value = false;
  return true;
}

// closeAfterLink closes a column that covers the view when one of its links was chosen.
export function closeAfterLink(e: MouseEvent): void {
  if ((e.target as Element).closest("a")) closeColumns();
}

// covered tells whether a column covers the view.
export const covered = computed(() => onPhone.value && (leftOpen.value || rightOpen.value));

rightOpen.subscribe((open) => {
  if (wide.matches) localStorage.setItem("people", open ? "open" : "closed");
});
