// The image viewer over everything: the arrow keys go through the images of the view.
import { useState } from "preact/hooks";
import { t } from "../i18n/text.ts";
import { closeDialog, Dialog, openDialog } from "../ui/dialogs.tsx";
import { Icon } from "../ui/icons.tsx";
import { keepPosition } from "../content/players.ts";

interface Picture {
  src: string;
  href: string;
  title: string;
  video: boolean;
}

export function openLightbox(at: HTMLAnchorElement): void {
  const all = [...document.querySelectorAll<HTMLAnchorElement>(".virtual .message_inline_image a")];
  const pictures = all.map((a) => ({ src: a.href, href: a.href, title: a.title || a.href.split("/").pop()!, video: !!a.querySelector("video") }));
  openDialog(<Lightbox pictures={pictures} first={Math.max(0, all.indexOf(at))} />);
}

function onPlayer(el: HTMLVideoElement | null): void {
  if (el) keepPosition(el);
}

function Lightbox({ pictures, first }: { pictures: Picture[]; first: number }) {
  const [at, setAt] = useState(first);
  const p = pictures[at]!;
  const step = (by: number): void => setAt((i) => Math.max(0, Math.min(pictures.length - 1, i + by)));
  return (
    <Dialog title={p.title} class="lightbox" wide>
      <div
        class="lightbox-stage"
        tabIndex={0}
        autofocus
        onKeyDown={(e) => {
          if (e.target instanceof HTMLVideoElement) return; // the arrows go through the video
          const forward = document.documentElement.dir === "rtl" ? "ArrowLeft" : "ArrowRight";
          if (e.key === "ArrowRight" || e.key === "ArrowLeft") step(e.key === forward ? 1 : -1);
          if (e.key === "v") closeDialog();
        }}
      >
        <button type="button" class="icon-button" aria-label={t("Previous image")} disabled={at === 0} onClick={() => step(-1)}>
          <Icon name="chevronRight" size={28} />
        </button>
        {p.video ? <video key={p.src} ref={onPlayer} src={p.src} controls aria-label={p.title} /> : <img src={p.src} alt={p.title} />}
        <button type="button" class="icon-button" aria-label={t("Next image")} disabled={at === pictures.length - 1} onClick={() => step(1)}>
          <Icon name="chevronRight" size={28} />
        </button>
      </div>
      <footer class="dialog-foot">
        <a class="button quiet" href={p.href} target="_blank" rel="noopener noreferrer">
          {t("Open in a new tab")}
        </a>
      </footer>
    </Dialog>
  );
}
