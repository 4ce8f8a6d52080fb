// Parts of the client that other code does not depend on. Each has a function that registers what it adds: views and
// overlays (ui/registry.ts), sections of the settings (settings/registry.ts), tools of text fields
// (editor/tools.tsx), items of menus, and shortcuts (ui/keys.ts). It runs once, before the page is first drawn.
import { installChannels } from "./channels/install.ts";
import { installBanners } from "./compose/banners.tsx";
import { installCalls } from "./compose/calls.ts";
import { installConfirmation } from "./forms/confirmation.tsx";
import { installPaste } from "./editor/paste.ts";
import { installInsert } from "./compose/insert_tools.ts";
import { installTypeahead } from "./compose/typeahead.tsx";
import { installUploads } from "./compose/uploads.tsx";
import { installHelp } from "./help/install.ts";
import { installSaved } from "./saved/install.tsx";
import { installNotifications } from "./notify/install.ts";
import { installPeople } from "./people/install.ts";
import { installSettings } from "./settings/registry.ts";
import { installWidgets } from "./widgets/draw.tsx";

export const modules: (() => void)[] = [
  installSettings,
  installTypeahead,
  installInsert,
  installBanners,
  installUploads,
  installPaste,
  installCalls,
  installChannels,
  installSaved,
  installWidgets,
  installNotifications,
  installPeople,
  installHelp,
  installConfirmation,
];
