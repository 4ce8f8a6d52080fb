// The window in which the user searches animated pictures of the operator's provider. The server asks the provider.
import { useEffect, useRef, useState } from "preact/hooks";
import { errorText, request } from "../api/client.ts";
import type * as answers from "../api/schema.ts";
import { change } from "../editor/text_field.ts";
import { t } from "../i18n/text.ts";
import { closeDialog, Dialog, openDialog } from "../ui/dialogs.tsx";

const pauseMs = 300; // of typing, before the provider is asked: each search counts there

interface Found {
  gifs: answers.Gif[];
  next: string;
  provider: string;
}

// linkTo returns a link to a picture. The title is plain text, so brackets in it must not end it.
function linkTo(gif: answers.Gif): string {
  return `[${gif.title.replace(/[[\]\\`]/g, "") || "GIF"}](${gif.url}) `;
}

function GifDialog({ area, start, end }: { area: HTMLTextAreaElement; start: number; end: number }) {
  const [query, setQuery] = useState("");
  const [found, setFound] = useState<Found | null>(null);
  const [error, setError] = useState("");
  const loading = useRef<AbortController | null>(null);

  const load = async (page: string): Promise<void> => {
    loading.current?.abort();
    const { signal } = (loading.current = new AbortController());
    try {
      const a = await request<answers.GetGifsAnswer>("/gifs", { params: { query: query.trim(), page }, signal });
      setFound((old) => ({ gifs: [...(page && old ? old.gifs : []), ...a.gifs], next: a.next_page, provider: a.provider }));
      setError("");
    } catch (err) {
      if (!signal.aborted) setError(errorText(err));
    }
  };
  useEffect(() => {
    const timer = setTimeout(() => void load(""), query ? pauseMs : 0);
    return () => clearTimeout(timer);
  }, [query]);
  useEffect(() => () => loading.current?.abort(), []);

  const choose = (gif: answers.Gif): void => {
    closeDialog();
    requestAnimationFrame(() => change(area, () => ({ from: start, to: end, insert: linkTo(gif) })));
  };
  return (
    <Dialog title={t("Choose a GIF")}>
      <div class="dialog-text">
        <input class="input" type="search" autofocus aria-label={t("Search GIFs")} placeholder={t("Search GIFs")} maxLength={50} value={query} onInput={(e) => setQuery(e.currentTarget.value)} />
        <p class="quiet" role="status">
          {error || (!found ? t("Loading…") : found.gifs.length === 0 ? t("No GIFs found") : t("Powered by {name}", { name: found.provider }))}
        </p>
        <div class="gif-grid">
          {found?.gifs.map((gif) => (
            <button key={gif.url} type="button" title={gif.title} onClick={() => choose(gif)}>
              <img src={gif.preview_url} alt={gif.title || "GIF"} width={gif.width} height={gif.height} loading="lazy" />
            </button>
          ))}
        </div>
        {found?.next && (
          <button type="button" class="button quiet" onClick={() => void load(found.next)}>
            {t("Show more")}
          </button>
        )}
      </div>
    </Dialog>
  );
}

export function openGifs(area: HTMLTextAreaElement): void {
  openDialog(<GifDialog area={area} start={area.selectionStart} end={area.selectionEnd} />);
}
