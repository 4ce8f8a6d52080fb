// Icons, drawn on a grid of 24 by 24 in the colour of the text.
import type { Channel } from "../api/types.ts";

const paths = {
  archive: "M4 8h16v12H4zM3 4h18v4H3zM10 12h4",
  at: "M16 12a4 4 0 1 1-4-4 4 4 0 0 1 4 4zm0 0v1.5a2.5 2.5 0 0 0 5 0V12a9 9 0 1 0-4 7.5",
  bell: "M6 16V11a6 6 0 1 1 12 0v5l2 2H4zM10 21h4",
  bold: "M7 5h6a3.5 3.5 0 0 1 0 7H7zM7 12h7a3.5 3.5 0 0 1 0 7H7z",
  bot: "M5 9h14v10H5zM12 9V5M9 13v2M15 13v2M2 13v3M22 13v3",
  calendar: "M4 6h16v14H4zM4 10h16M8 3v4M16 3v4",
  check: "M5 12.5l4.5 4.5L19 7",
  checkCircle: "M12 21a9 9 0 1 1 9-9M8 12l3 3 9-9",
  chevronDown: "M6 9l6 6 6-6",
  chevronRight: "M9 6l6 6-6 6",
  clock: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 7v5l3 2",
  close: "M6 6l12 12M18 6L6 18",
  code: "M9 7l-5 5 5 5M15 7l5 5-5 5",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  dots: "M12 4.7a.8.8 0 1 0 0 1.6.8.8 0 0 0 0-1.6zM12 11.2a.8.8 0 1 0 0 1.600.8.8 0 0 0 0-1.600zM12 17.700a.8.8 0 1 0 0 1.600.8.8 0 0 0 0-1.600z",
  down: "M12 5v14M6 13l6 6 6-6",
  download: "M12 4v12M7 11l5 5 5-5M4 16v4h16v-4",
  edit: "M4 20h4L19 9l-4-4L4 16z",
  eye: "M2 12s4-7 10-7 10 7 10 7-4 7-10 7S2 12 2 12zM12 15a3 3 0 1 0 0-6 3 3 0 0 0 0 6z",
  feed: "M4 6h16M4 12h16M4 18h10",
  expand: "M4 10V4h6M4 4l7 7M20 14v6h-6M20 20l-7-7",
  file: "M6 3h8l4 4v14H6zM14 3v4h4",
  folder: "M3 6h7l2 2h9v11H3z",
  follow: "M6 21V4h12l-2.500 4 2.500 4H6",
  gear: "M12 15a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM19 12l2-1-1-3-2.300.200-1.500-1.500L16.500 4l-3-1-1 2h-1l-1-2-3 1 .3 2.700-1.500 1.500L4 8l-1 3 2 1-2 1 1 3 2.300-.2 1.500 1.500L7.500 20l3 1 1-2h1l1 2 3-1-.3-2.700 1.500-1.500L20 16l1-3z",
  gif: "M3 5h18v14H3zM10 10H8a2 2 0 0 0 0 4h2v-2M13 10v4M16 14v-4h2.500M16 12h2",
  globe: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM3 12h18M12 3c5 6 5 12 0 18M12 3c-5 6-5 12 0 18",
  hash: "M9 4L7 20M17 4l-2 16M4 9h17M3 15h17",
  help: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM9.500 9.500a2.500 2.500 0 1 1 3.500 2.300c-.7.4-1 .9-1 1.700M12 17v.01",
  history: "M4 12a8 8 0 1 1 2.500 5.800M4 18v-4h4M12 8v4l3 2",
  image: "M4 5h16v14H4zM4 16l5-5 4 4 2-2 5 5M15.500 9v.01",
  inbox: "M4 13l3-8h10l3 8v6H4zM4 13h5l1.500 3h3L15 13h5",
  italic: "M10 5h8M6 19h8M14 5l-4 14",
  link: "M10 14a4 4 0 0 0 6 0l3-3a4.200 4.200 0 0 0-6-6l-1.500 1.500M14 10a4 4 0 0 0-6 0l-3 3a4.200 4.200 0 0 0 6 6l1.500-1.500",
  list: "M9 6h11M9 12h11M9 18h11M4 6v.01M4 12v.01M4 18v.01",
  lock: "M6 11h12v9H6zM8 11V8a4 4 0 0 1 8 0v3",
  logout: "M14 4h6v16h-6M10 8l-4 4 4 4M6 12h9",
  menu: "M4 7h16M4 12h16M4 17h16",
  message: "M4 5h16v11H9l-5 4z",
  minus: "M5 12h14",
  moon: "M20 14A8 8 0 0 1 10 4a8 8 0 1 0 10 10z",
  move: "M4 12h14M13 6l6 6-6 6",
  mute: "M6 16V11a6 6 0 0 1 9-5M18 11v5l2 2H8M10 21h4M4 4l16 16",
  numbers: "M10 6h10M10 12h10M10 18h10M4 5l1.500-1v4.500M3.500 13.500c0-2 3-2 3 0 0 1-3 2.500-3 3.500h3M4 20h2",
  math: "M18 7V4H6l6 8-6 8h12v-3",
  palette: "M12 21a9 9 0 1 1 9-9c0 3-2 4-4 4h-2c-2 0-2 2-1 3s0 2-2 2zM7.500 11v.01M10 7.500v.01M14.500 7.500v.01M17 11v.01",
  pause: "M8 5v14M16 5v14",
  people: "M9 11a3.500 3.500 0 1 0 0-7 3.500 3.500 0 0 0 0 7zM2.500 20c0-4 3-6 6.500-6s6.500 2 6.500 6M16 4.500a3.500 3.500 0 0 1 0 6.500M18 14.500c2.500.800 3.500 3 3.500 5.500",
  person: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4.500 21c0-4.500 3.500-7 7.500-7s7.500 2.500 7.500 7",
  pin: "M9 4h6l-1 7 3 3H7l3-3zM12 14v6",
  plus: "M12 5v14M5 12h14",
  poll: "M5 20V10M12 20V4M19 20v-7",
  quote: "M10 7c-4 1-5 4-5 10h5v-5H7M19 7c-4 1-5 4-5 10h5v-5h-3",
  recent: "M12 21a9 9 0 1 0-9-9M3 5v5h5M12 8v4l3 2",
  reply: "M10 6l-6 6 6 6M4 12h9a7 7 0 0 1 7 7",
  search: "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM16 16l5 5",
  send: "M4 12l16-8-6 16-3-7z",
  shield: "M12 3l8 3v6c0 5-3.500 8-8 9-4.500-1-8-4-8-9V6z",
  smile: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM8.500 14a4 4 0 0 0 7 0M9 9.500v.01M15 9.500v.01",
  spoiler: "M3 3l18 18M10 6.200A10 10 0 0 1 12 6c6 0 10 6 10 6a17 17 0 0 1-3 3.400M6.500 7.500A16 16 0 0 0 2 12s4 6 10 6a9 9 0 0 0 4-.9",
  star: "M12 4l2.500 5.200 5.500.800-4 4 1 5.500-5-2.700-5 2.700 1-5.500-4-4 5.500-.800z",
  strike: "M4 12h16M7 8a3.500 3.500 0 0 1 4-3h2a4 4 0 0 1 4 3M7 16a4 4 0 0 0 4 3h2a3.500 3.500 0 0 0 4-4",
  sun: "M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.500 1.500M17.500 17.500L19 19M5 19l1.500-1.500M17.500 6.500L19 5",
  todo: "M4 6l1.500 1.500L8 5M4 13l1.500 1.500L8 12M11 6.500h9M11 13.500h9M11 19.500h9",
  topic: "M5 5v9a3 3 0 0 0 3 3h11M15 13l4 4-4 4",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13M10 11v5M14 11v5",
  unread: "M12 17a5 5 0 1 0 0-10 5 5 0 0 0 0 10z",
  up: "M12 19V5M6 11l6-6 6 6",
  upload: "M12 16V4M7 9l5-5 5 5M4 16v4h16v-4",
  video: "M3 6h12v12H3zM15 11l6-4v10l-6-4",
} as const;

export type IconName = keyof typeof paths;

// channelIcon returns the icon of a channel: private, public on the web, or neither.
export function channelIcon(c: Channel | undefined): IconName {
  if (c?.invite_only) return "lock";
  return c?.is_web_public ? "globe" : "hash";
}

// directed are the icons that point in the direction of the text. Pages from right to left show them mirrored.
const directed = new Set<IconName>(["chevronRight", "feed", "list", "logout", "move", "quote", "reply", "send", "todo", "topic", "numbers"]);

export function Icon({ name, size = 18, filled = false }: { name: IconName; size?: number; filled?: boolean }) {
  return (
    <svg
      class={directed.has(name) ? "icon directed" : "icon"}
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill={filled ? "currentColor" : "none"}
      stroke="currentColor"
      stroke-width="1.75"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      <path d={paths[name]} />
    </svg>
  );
}
