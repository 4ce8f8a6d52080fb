// The stylesheet of formulas is loaded when the first one is shown.
let loading: Promise<void> | null = null; // in flight

export function loadStyles(): Promise<void> {
  loading ??= new Promise((resolve) => {
    const href = document.querySelector<HTMLMetaElement>('meta[name="katex-style"]')?.content;
    if (!href) return resolve();
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.href = href;
    link.onload = () => {
      document.documentElement.classList.add("with-formulas");
      resolve();
    };
    document.head.append(link);
  });
  return loading;
}
