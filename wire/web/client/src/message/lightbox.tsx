// The viewer of pictures over everything, dark in every theme: sender and date, zoom and pan, download, and a strip with all
// pictures of the view.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { t } from "../i18n/text.ts";
import { conversationOfMessage, narrowTo } from "../store/narrow.ts";
import { userName } from "../store/queries.ts";
import { goTo } from "../store/router.ts";
import { peek } from "../store/store.ts";
import { Avatar } from "../ui/avatar.tsx";
import { closeDialog, Dialog, openDialog } from "../ui/dialogs.tsx";
import { Icon, type IconName } from "../ui/icons.tsx";
import { formatTime } from "../ui/time.ts";
import { keepPosition } from "../content/players.ts";

interface Picture {
  href: string;
  small: string; // the picture of the strip
  title: string;
  video: boolean;
  message: number;
}

export function openLightbox(at: HTMLAnchorElement): void {
  const all = [...document.querySelectorAll<HTMLAnchorElement>(".virtual .message_inline_image a")];
  const pictures = all.map(
    (a): Picture => ({
      href: a.href,
      small: a.querySelector("img")?.src ?? "",
      title: a.title || a.href.split("/").pop()!,
      video: !!a.querySelector("video"),
      message: Number(a.closest<HTMLElement>("[data-message]")?.dataset.message ?? 0),
    }),
  );
  openDialog(<Lightbox pictures={pictures} first={Math.max(0, all.indexOf(at))} />);
}

const maxZoom = 8; // times the size that fits the window
const step = 1.5; // of one press of a button or key

interface View {
  zoom: number;
  x: number; // pixels from the middle
  y: number;
}

const fitted: View = { zoom: 1, x: 0, y: 0 };

function Lightbox({ pictures, first }: { pictures: Picture[]; first: number }) {
  const [at, setAt] = useState(first);
  const [view, setView] = useState<View>(fitted);
  const p = pictures[at]!;
  const go = (to: number): void => {
    setAt(Math.max(0, Math.min(pictures.length - 1, to)));
    setView(fitted);
  };
  const zoom = (by: number): void =>
    setView((v) => {
      const now = Math.max(1, Math.min(maxZoom, v.zoom * by));
      return now === 1 ? fitted : { zoom: now, x: (v.x * now) / v.zoom, y: (v.y * now) / v.zoom };
    });
  const keys = (e: KeyboardEvent): void => {
    if (e.target instanceof HTMLVideoElement || e.ctrlKey || e.metaKey || e.altKey) return; // the arrows go through the video
    const forward = document.documentElement.dir === "rtl" ? "ArrowLeft" : "ArrowRight";
    if (e.key === "ArrowRight" || e.key === "ArrowLeft") go(at + (e.key === forward ? 1 : -1));
    else if (e.key === "v") closeDialog();
    else if (e.key === "+" || e.key === "=") zoom(step);
    else if (e.key === "-") zoom(1 / step);
    else if (e.key === "0") setView(fitted);
    else return;
    e.preventDefault();
  };
  return (
    <Dialog title={p.title} class="lightbox" wide keys={keys}>
      <Head picture={p} zoomed={view.zoom} zoom={zoom} fit={() => setView(fitted)} />
      <div class="lightbox-stage" tabIndex={0} autofocus role="group" aria-label={p.title}>
        <Turn icon="chevronRight" label={t("Previous image")} disabled={at === 0} press={() => go(at - 1)} />
        {p.video ? <video key={p.href} ref={onPlayer} src={p.href} controls aria-label={p.title} /> : <Stage key={p.href} picture={p} view={view} setView={setView} zoom={zoom} />}
        <Turn icon="chevronRight" label={t("Next image")} disabled={at === pictures.length - 1} press={() => go(at + 1)} />
      </div>
      {pictures.length > 1 && <Strip pictures={pictures} at={at} go={go} />}
    </Dialog>
  );
}

function onPlayer(el: HTMLVideoElement | null): void {
  if (el) keepPosition(el);
}

function Turn(p: { icon: IconName; label: string; disabled: boolean; press: () => void }) {
  return (
    <button type="button" class="icon-button lightbox-turn" aria-label={p.label} title={p.label} disabled={p.disabled} onClick={p.press}>
      <Icon name={p.icon} size={28} />
    </button>
  );
}

function Head({ picture: p, zoomed, zoom, fit }: { picture: Picture; zoomed: number; zoom: (by: number) => void; fit: () => void }) {
  const m = peek().messages.get(p.message);
  const toMessage = (): void => {
    closeDialog();
    goTo([...narrowTo(conversationOfMessage(m!, peek().me.user_id)), { operator: "near", operand: m!.id }]);
  };
  const tool = (icon: IconName, label: string, press: () => void, disabled = false) => (
    <button type="button" class="icon-button" aria-label={label} title={label} disabled={disabled} onClick={press}>
      <Icon name={icon} />
    </button>
  );
  return (
    <div class="lightbox-head">
      {m && (
        <>
          <Avatar id={m.sender_id} size={32} />
          <span class="grow">
            <strong>{userName(m.sender_id)}</strong> <time>{formatTime(m.timestamp, "full")}</time>
          </span>
          {tool("message", t("Go to the message"), toMessage)}
        </>
      )}
      {!m && <span class="grow" />}
      {!p.video && (
        <>
          {tool("minus", t("Zoom out"), () => zoom(1 / step), zoomed === 1)}
          <button type="button" class="lightbox-zoom" aria-label={t("{zoom} %: fit to the window", { zoom: Math.round(zoomed * 100) })} title={t("Fit to the window")} onClick={fit}>
            {Math.round(zoomed * 100)} %
          </button>
          {tool("plus", t("Zoom in"), () => zoom(step), zoomed === maxZoom)}
        </>
      )}
      <a class="icon-button" href={p.href} download={p.title} aria-label={t("Download")} title={t("Download")}>
        <Icon name="download" />
      </a>
      <a class="icon-button" href={p.href} target="_blank" rel="noopener noreferrer" aria-label={t("Open in a new tab")} title={t("Open in a new tab")}>
        <Icon name="expand" />
      </a>
    </div>
  );
}

// Stage shows a picture, which the wheel and two clicks enlarge. An enlarged one is moved with the pointer.
function Stage({ picture: p, view, setView, zoom }: { picture: Picture; view: View; setView: (v: View) => void; zoom: (by: number) => void }) {
  const drag = useRef<{ x: number; y: number; from: View } | null>(null);
  const box = useRef<HTMLDivElement>(null);
  // Preact adds wheel handlers as passive ones, which cannot keep the page from scrolling.
  useLayoutEffect(() => {
    const wheel = (e: WheelEvent): void => {
      e.preventDefault();
      zoom(e.deltaY < 0 ? step : 1 / step);
    };
    box.current!.addEventListener("wheel", wheel, { passive: false });
    return () => box.current?.removeEventListener("wheel", wheel);
  }, []);
  return (
    <div
      ref={box}
      class={`lightbox-picture ${view.zoom > 1 ? "zoomed" : ""}`}
      onDblClick={() => (view.zoom > 1 ? setView(fitted) : zoom(step * step))}
      onPointerDown={(e) => {
        if (view.zoom === 1) return;
        e.preventDefault();
        e.currentTarget.setPointerCapture(e.pointerId);
        drag.current = { x: e.clientX, y: e.clientY, from: view };
      }}
      onPointerMove={(e) => {
        const d = drag.current;
        if (d) setView({ ...d.from, x: d.from.x + e.clientX - d.x, y: d.from.y + e.clientY - d.y });
      }}
      onPointerUp={() => (drag.current = null)}
      onPointerCancel={() => (drag.current = null)}
    >
      <img src={p.href} alt={p.title} draggable={false} style={{ transform: `translate(${view.x}px, ${view.y}px) scale(${view.zoom})` }} />
    </div>
  );
}

function Strip({ pictures, at, go }: { pictures: Picture[]; at: number; go: (to: number) => void }) {
  const current = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => current.current?.scrollIntoView({ block: "nearest", inline: "center" }), [at]);
  return (
    <div class="lightbox-strip" role="group" aria-label={t("All pictures of the view")}>
      {pictures.map((p, i) => (
        <button key={p.href + i} ref={i === at ? current : undefined} type="button" aria-label={p.title} aria-current={i === at ? "true" : undefined} onClick={() => go(i)}>
          {p.small ? <img src={p.small} alt="" loading="lazy" /> : <Icon name="video" />}
        </button>
      ))}
    </div>
  );
}
