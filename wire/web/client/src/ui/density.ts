// How close to each other rows are: compact, or comfortable. The stylesheet reads the attribute of the root element.
import { signal } from "@preact/signals";

export type Density = "compact" | "comfortable";

// density is view state that this browser keeps.
export const density = signal<Density>(localStorage.getItem("density") === "comfortable" ? "comfortable" : "compact");

density.subscribe((v) => {
  localStorage.setItem("density", v);
  document.documentElement.dataset.density = v;
});
