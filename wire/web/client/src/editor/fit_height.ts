// fitHeight fits a text field to its text, up to the height that its style allows.
export function fitHeight(el: HTMLTextAreaElement): void {
  el.style.height = "auto";
  el.style.height = `${el.scrollHeight + 2}px`;
}
