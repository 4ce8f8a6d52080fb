// The frame of the settings: the list of sections, and the open one.
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { t } from "../i18n/text.ts";
import { closeOverlay, go, type Route } from "../store/router.ts";
import { Dialog } from "../ui/dialogs.tsx";
import { Icon } from "../ui/icons.tsx";
import { Picker } from "../ui/picker.tsx";
import { sections, type Section } from "./registry.ts";

export function SettingsFrame({ route }: { route: Route }) {
  const area = route.name === "organization" ? "organization" : "settings";
  const list = sections.filter((s) => s.area === area);
  const current = list.find((s) => s.name === route.rest[0]) ?? list[0];
  return (
    <Dialog title={area === "settings" ? t("Settings") : t("Organization")} wide class="settings" onClose={closeOverlay}>
      <div class="settings-columns">
        <nav aria-label={t("Sections")}>
          {/* On a phone, instead of the list. */}
          <Picker class="section-choice" label={t("Section")} value={current?.name} options={list.map((s) => ({ value: s.name, label: s.title(), icon: s.icon }))} choose={(name) => go(`#${area}/${name}`)} />
          <ul>
            {list.map((s) => (
              <li key={s.name}>
                <a href={`#${area}/${s.name}`} class={`side-link ${s === current ? "current" : ""}`} aria-current={s === current ? "page" : undefined}>
                  <Icon name={s.icon} size={16} />
                  <span class="grow">{s.title()}</span>
                </a>
              </li>
            ))}
          </ul>
        </nav>
        {/* It can be focused, because sections without a control are scrolled with the keyboard too. */}
        <div class="settings-body" tabIndex={0} role="group" aria-label={current?.title()}>
          {current && <SectionBody key={current.name} section={current} />}
        </div>
      </div>
    </Dialog>
  );
}

const loaded = new Map<Section, ComponentType>(); // cache: drawn at once when they are opened again

function SectionBody({ section }: { section: Section }) {
  const [state, setState] = useState<"waiting" | "loaded" | "failed">("waiting");
  const Draw = loaded.get(section);
  useEffect(() => {
    if (Draw) return;
    section.load().then(
      (d) => {
        loaded.set(section, d);
        setState("loaded");
      },
      () => setState("failed"),
    );
  }, []);
  return (
    <>
      <h3 class="settings-title">{section.title()}</h3>
      {Draw ? <Draw /> : state === "failed" ? <p role="alert">{t("This part could not be loaded. Check the network and try again.")}</p> : <p aria-busy="true" />}
    </>
  );
}
