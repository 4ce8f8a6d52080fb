// Uploads of the compose box: a button, pasted and dropped files, and the progress of each. The link is put into the
// text at once as a placeholder, and completed when the file has arrived.
import { signal } from "@preact/signals";
import { errorText } from "../api/client.ts";
import { upload } from "../api/uploads.ts";
import { formatNumber, t } from "../i18n/text.ts";
import { routes } from "../store/router.ts";
import { peek } from "../store/store.ts";
import { dialogs } from "../ui/dialogs.tsx";
import { Icon } from "../ui/icons.tsx";
import { notify } from "../store/notices.ts";
import { changed, insert } from "../editor/text_field.ts";
import { composePanels, sendChecks } from "./extras.ts";
import { dataTakers } from "../editor/extras.ts";
import { text } from "./state.ts";
import { textTools } from "../editor/tools.tsx";

interface Running {
  id: number;
  name: string;
  size: number;
  sent: number; // bytes
  placeholder: string;
  stop: AbortController;
}

const running = signal<Running[]>([]); // in flight

// Attached is a file whose link is in a text.
interface Attached {
  name: string;
  url: string;
  link: string; // in the text
  picture: boolean;
}

// attached are the files that this page has uploaded. Those whose link is no longer in the text are not shown.
const attached = signal<Attached[]>([]); // view state
const maxAttached = 50; // that are remembered
let last = 0; // in flight: the newest id

function change(id: number, fields: Partial<Running> | null): void {
  running.value = running.value.flatMap((r) => (r.id !== id ? [r] : fields ? [{ ...r, ...fields }] : []));
}

// linkName is the name of a file as the text of a link.
function linkName(name: string): string {
  return name.replace(/[[\]]/g, "");
}

// uploadFiles uploads files and puts their links at the cursor.
function uploadFiles(files: Iterable<File>, area: HTMLTextAreaElement): void {
  const limit = Number(peek().realm.max_file_upload_size_mib ?? 0) * 1024 * 1024;
  for (const file of files) {
    if (limit && file.size > limit) {
      notify(t("{name} is larger than {limit} MB.", { name: file.name, limit: formatNumber(limit / 1024 / 1024) }), "error");
      continue;
    }
    start(file, area);
  }
}

// replace changes a placeholder in the text of the compose box, which may be closed by now, or of an editor. Nothing in its
// place takes its line away as well.
function replace(area: HTMLTextAreaElement, placeholder: string, to: string): void {
  const changedText = (s: string): string => (to === "" ? s.replace(placeholder + "\n", "") : s).replace(placeholder, () => to);
  if (area.classList.contains("compose-text")) {
    text.value = changedText(text.peek());
  } else if (area.isConnected) {
    area.value = changedText(area.value);
    changed(area);
  }
}

function start(file: File, area: HTMLTextAreaElement): void {
  const id = ++last;
  const placeholder = `[${t("Uploading {name}…", { name: linkName(file.name) })}](#${id})`;
  const stop = new AbortController();
  running.value = [...running.value, { id, name: file.name, size: file.size, sent: 0, placeholder, stop }];
  insert(area, (/\S$/.test(area.value.slice(0, area.selectionStart)) ? "\n" : "") + placeholder + "\n");
  upload({ file, signal: stop.signal, progress: (sent) => change(id, { sent }) }).then(
    (done) => {
      change(id, null);
      const link = `[${linkName(done.filename)}](${done.url})`;
      replace(area, placeholder, link);
      attached.value = [...attached.value, { name: done.filename, url: done.url, link, picture: file.type.startsWith("image/") }].slice(-maxAttached);
    },
    (err: unknown) => {
      change(id, null);
      replace(area, placeholder, "");
      if (!stop.signal.aborted) notify(t("{name} was not uploaded: {reason}", { name: file.name, reason: errorText(err) }), "error");
    },
  );
}

// isUploading reports whether a text still waits for a file, and says so.
export function isUploading(content: string): boolean {
  const open = running.peek().some((r) => content.includes(r.placeholder));
  if (open) notify(t("Wait until the files are uploaded."), "error");
  return open;
}

// Uploads shows the files of a text as chips: their progress, then a small picture.
export function Uploads({ content = text.value, area }: { content?: string; area?: { current: HTMLTextAreaElement | null } }) {
  const files = attached.value.filter((x) => content.includes(x.link));
  if (running.value.length + files.length === 0) return null;
  const remove = (x: Attached): void => {
    const field = area?.current ?? document.querySelector<HTMLTextAreaElement>(".compose-text");
    if (field) replace(field, x.link, "");
  };
  return (
    <ul class="uploads" aria-label={t("Files")}>
      {files.map((x) => (
        <li key={x.url} class="upload-chip">
          {x.picture ? <img src={x.url} alt="" /> : <Icon name="file" size={18} />}
          <a class="upload-name" href={x.url} target="_blank" rel="noopener">
            {x.name}
          </a>
          <button type="button" class="icon-button small" aria-label={t("Remove {name}", { name: x.name })} onClick={() => remove(x)}>
            <Icon name="close" size={14} />
          </button>
        </li>
      ))}
      {running.value.map((r) => (
        <li key={r.id} class="upload-chip">
          <Icon name="upload" size={15} />
          <span class="upload-name">{r.name}</span>
          <progress aria-label={r.name} max={Math.max(1, r.size)} value={r.sent} />
          <button type="button" class="icon-button small" aria-label={t("Cancel the upload of {name}", { name: r.name })} onClick={() => r.stop.abort()}>
            <Icon name="close" size={14} />
          </button>
        </li>
      ))}
    </ul>
  );
}

function pick(area: HTMLTextAreaElement): void {
  const field = document.createElement("input");
  field.type = "file";
  field.multiple = true;
  field.onchange = () => uploadFiles(field.files ?? [], area);
  field.click();
}

// takeDrops takes files that are dropped beside the compose box: without that, the browser would leave the page for them.
function takeDrops(): void {
  addEventListener("dragover", (e) => {
    if (e.dataTransfer?.types.includes("Files")) e.preventDefault();
  });
  addEventListener("drop", (e) => {
    const files = e.dataTransfer?.files;
    if (e.defaultPrevented || !files?.length) return;
    e.preventDefault();
    const { view, overlay } = routes.peek();
    if (dialogs.peek().length || overlay || !view.terms) return;
    const list = [...files];
    void composeArea().then((area) => area && uploadFiles(list, area));
  });
}

// composeArea opens the compose box, if it is closed, as its bar does.
async function composeArea(): Promise<HTMLTextAreaElement | null> {
  document.querySelector<HTMLElement>(".compose-open")?.click();
  await new Promise(requestAnimationFrame);
  return document.querySelector<HTMLTextAreaElement>(".compose-text");
}

export function installUploads(): void {
  composePanels.push(() => <Uploads />);
  textTools.unshift({ name: "upload", label: () => t("Upload files"), icon: "upload", run: pick }); // first: on phones the others scroll
  dataTakers.push((data, area) => {
    if (data.files.length === 0) return false;
    uploadFiles(data.files, area);
    return true;
  });
  sendChecks.push((_, content) => !isUploading(content));
  takeDrops();
}
