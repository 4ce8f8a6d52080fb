// The editor in the place of a message's text.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ApiError, errorText } from "../api/client.ts";
import { editMessage, getSource, renderMarkdown } from "../api/endpoints.ts";
import type { Message } from "../api/types.ts";
import { t } from "../i18n/text.ts";
import { canEdit } from "../store/permissions.ts";
import { continueList } from "../editor/text_field.ts";
import { runShortcut, TextTools } from "../editor/tools.tsx";
import { useCompletion } from "../editor/completion.tsx";
import { dataTakers } from "../editor/extras.ts";
import { fitHeight } from "../editor/fit_height.ts";
import { isUploading, Uploads } from "../compose/uploads.tsx";
import { Icon } from "../ui/icons.tsx";
import { Content } from "../content/content.tsx";
import { saveUnsaved, unsavedOf, stopEdit } from "./edit.ts";

async function sha256(text: string): Promise<string | undefined> {
  if (!globalThis.crypto?.subtle) return undefined; // pages without TLS
  const sum = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return [...new Uint8Array(sum)].map((b) => b.toString(16).padStart(2, "0")).join("");
}

export function Editor({ message: m }: { message: Message }) {
  const kept = unsavedOf(m.id);
  const [source, setSource] = useState<string | null>(kept?.source ?? null);
  const [text, setText] = useState(kept?.text ?? "");
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const [preview, setPreview] = useState<string | null>(null);
  const area = useRef<HTMLTextAreaElement>(null);
  const previewArea = useRef<HTMLDivElement>(null);
  const editable = canEdit(m);
  const completion = useCompletion(area);
  useEffect(() => {
    if (source !== null) return;
    getSource(m.id).then(
      (raw) => {
        setSource(raw);
        setText(raw);
      },
      (err: unknown) => setError(errorText(err)),
    );
  }, [m.id]);
  // Before the next input: a cursor that moves later would put the first letters at the wrong place.
  useLayoutEffect(() => {
    const el = area.current;
    if (!el || source === null) return;
    fitHeight(el);
    el.focus();
    el.setSelectionRange(el.value.length, el.value.length);
  }, [source]);
  // The preview hides the text, which would lose the focus.
  const previewed = useRef(false);
  useLayoutEffect(() => {
    if (preview !== null) previewArea.current?.focus();
    else if (previewed.current) area.current?.focus();
    previewed.current = preview !== null;
  }, [preview !== null]);
  const save = async (): Promise<void> => {
    if (source === null || busy) return;
    if (text.trim() === source.trim()) return stopEdit();
    if (isUploading(text)) return;
    setBusy(true);
    try {
      await editMessage(m.id, { content: text, prev_content_sha256: await sha256(source) });
      stopEdit();
    } catch (err) {
      const conflict = err instanceof ApiError && err.code === "EXPECTATION_MISMATCH";
      setError(conflict ? t("Someone else has changed the message. Copy your text and edit again.") : errorText(err));
      setBusy(false);
    }
  };
  const keys = (e: KeyboardEvent): void => {
    if (completion.keys(e)) return;
    if (area.current && runShortcut(e, area.current)) e.preventDefault();
    if (e.key === "Tab" && !e.shiftKey && editable) {
      e.preventDefault();
      area.current!.closest(".editor")!.querySelector<HTMLElement>(".editor-foot .button")!.focus();
    }
    if (e.key === "Escape") {
      e.preventDefault();
      e.stopPropagation();
      stopEdit();
    }
    if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) {
      e.preventDefault();
      void save();
    } else if (e.key === "Enter" && !e.shiftKey && !e.isComposing && continueList(area.current!)) e.preventDefault();
  };
  const togglePreview = (): void => {
    if (preview !== null) {
      setPreview(null);
      return;
    }
    renderMarkdown(text).then(
      (a) => setPreview(a.rendered),
      (err: unknown) => setError(errorText(err)),
    );
  };
  const previewKey = (e: KeyboardEvent): void => {
    if (!editable || !e.altKey || e.code !== "KeyP") return;
    e.preventDefault();
    e.stopPropagation();
    togglePreview();
  };
  const take = (e: Event, data: DataTransfer | null): void => {
    if (editable && data && dataTakers.some((taker) => taker(data, area.current!))) e.preventDefault();
  };
  return (
    <div class="editor" onKeyDown={previewKey} onDragOver={(e) => e.preventDefault()} onDrop={(e) => take(e, e.dataTransfer)}>
      <Uploads content={text} area={area} />
      {completion.list}
      {preview !== null && (
        <div class="editor-preview" ref={previewArea} tabIndex={0} role="region" aria-label={t("Preview")}>
          <Content html={preview} />
        </div>
      )}
      <textarea
        ref={area}
        class="input"
        hidden={preview !== null}
        aria-label={t("Text of the message")}
        value={text}
        readOnly={!editable || source === null}
        onInput={(e) => {
          setText(e.currentTarget.value);
          if (source !== null) saveUnsaved(m, source, e.currentTarget.value);
          fitHeight(e.currentTarget);
          completion.update();
        }}
        {...completion.aria}
        onBlur={() => completion.close()}
        onPaste={(e) => take(e, e.clipboardData)}
        onKeyDown={keys}
      />
      {error && (
        <p class="send-error" role="alert">
          {error}
        </p>
      )}
      {editable && (
        <div class="compose-tools" role="toolbar" aria-label={t("Formatting")}>
          <TextTools area={area} disabled={preview !== null || source === null} />
          <button type="button" class={`icon-button ${preview !== null ? "pressed" : ""}`} aria-pressed={preview !== null} aria-label={t("Preview")} title={t("Preview")} onClick={togglePreview}>
            <Icon name="eye" size={17} />
          </button>
        </div>
      )}
      <div class="editor-foot">
        {editable && (
          <button type="button" class="button" disabled={busy || source === null} onClick={() => void save()}>
            {t("Save")}
          </button>
        )}
        <button type="button" class="button quiet" onClick={stopEdit}>
          {editable ? t("Cancel") : t("Close")}
        </button>
      </div>
    </div>
  );
}
