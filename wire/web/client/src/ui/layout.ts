// The open columns at the sides. On narrow windows they cover the view.
import { signal } from "@preact/signals";

const wide = matchMedia("(min-width: 1100px)");

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

rightOpen.subscribe((open) => {
  if (wide.matches) localStorage.setItem("people", open ? "open" : "closed");
});
