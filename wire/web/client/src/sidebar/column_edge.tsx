// The edge of the left column, which makes it wider or narrower.
import { signal } from "@preact/signals";
import { t } from "../i18n/text.ts";

const narrowest = 200; // pixels
const widest = 480;
const usual = 280;
const keyStep = 16;

// width is view state that this browser keeps.
const width = signal(between(Number(localStorage.getItem("left-width")) || usual));
width.subscribe((v) => {
  localStorage.setItem("left-width", String(v));
  document.documentElement.style.setProperty("--left-width", `${v}px`);
});

function between(v: number): number {
  return Math.round(Math.max(narrowest, Math.min(widest, v)));
}

function isRightToLeft(): boolean {
  return document.documentElement.dir === "rtl";
}

export function ColumnEdge() {
  const move = (e: PointerEvent & { currentTarget: HTMLElement }): void => {
    if (!e.currentTarget.hasPointerCapture(e.pointerId)) return;
    width.value = between(isRightToLeft() ? innerWidth - e.clientX : e.clientX);
  };
  return (
    <div
      class="column-edge"
      role="separator"
      aria-orientation="vertical"
      aria-label={t("Width of the column")}
      aria-valuemin={narrowest}
      aria-valuemax={widest}
      aria-valuenow={width.value}
      tabIndex={0}
      onPointerDown={(e) => {
        e.preventDefault();
        e.currentTarget.setPointerCapture(e.pointerId);
      }}
      onPointerMove={move}
      onDblClick={() => (width.value = usual)}
      onKeyDown={(e) => {
        const by = { ArrowRight: keyStep, ArrowLeft: -keyStep }[e.key];
        if (!by) return;
        e.preventDefault();
        e.stopPropagation();
        width.value = between(width.value + (isRightToLeft() ? -by : by));
      }}
    />
  );
}
