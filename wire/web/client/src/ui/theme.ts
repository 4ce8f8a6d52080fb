// The look: light, dark or like the system, high contrast, text size. The stylesheet reads the attributes and
// variables that this sets on the root element.
import { effect } from "@preact/signals";
import { ColorScheme } from "../api/types.ts";
import { currentLanguage } from "../i18n/text.ts";
import { read } from "../store/store.ts";
import "./density.ts"; // sets its attribute

const themes = new Map<number, string>([
  [ColorScheme.dark, "dark"],
  [ColorScheme.light, "light"],
]);

const rtl = new Set(["ar", "fa", "he", "ur", "yi"]);

export function startTheme(): void {
  effect(() => {
    const s = read("settings");
    const root = document.documentElement;
    root.dataset.theme = themes.get(s.color_scheme ?? ColorScheme.system) ?? "auto";
    root.dataset.contrast = s.high_contrast_mode ? "high" : "normal";
    root.dataset.width = s.fluid_layout_width ? "fluid" : "fixed";
    root.style.setProperty("--font-size", `${s.web_font_size_px ?? 16}px`);
    root.style.setProperty("--line-height", String((s.web_line_height_percent ?? 140) / 100));
    root.style.setProperty("--media-scale", String((read("realm").realm_media_preview_size ?? 100) / 100));
    const language = String(s.default_language ?? currentLanguage());
    root.lang = currentLanguage(); // of the texts, which screen readers pronounce
    root.dir = rtl.has(language.split("-")[0]!) ? "rtl" : "ltr";
  });
}
