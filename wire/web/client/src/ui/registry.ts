// The views of the middle column and the overlays above it, by the name in the address. A view is loaded when it is
// first shown, unless it belongs to the first screen. To add one, call addView or addOverlay from a module of
// modules.ts.
import type { ComponentType } from "preact";
import type { Route } from "../store/router.ts";

interface ViewProps {
  route: Route;
}

export type View = ComponentType<ViewProps>;

export interface ViewEntry {
  load: () => Promise<View> | View;
}

export const views = new Map<string, ViewEntry>(); // registry
export const overlays = new Map<string, ViewEntry>(); // registry

export function addView(name: string, load: ViewEntry["load"]): void {
  views.set(name, { load });
}

export function addOverlay(name: string, load: ViewEntry["load"]): void {
  overlays.set(name, { load });
}
