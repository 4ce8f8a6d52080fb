// The rules of notifications: which messages cause a notification, and of which kinds. Pure functions, tested in Node.
import { TopicPolicy, type Message } from "../api/types.ts";
import { isTopicMuted, topicPolicy } from "../store/narrow.ts";
import type { State } from "../store/state.ts";

// NotificationKinds are the kinds of notifications that a message causes.
interface NotificationKinds {
  desktop: boolean;
  sound: boolean;
}

const none: NotificationKinds = { desktop: false, sound: false };

// notificationKinds returns the kinds of notifications for a new message. Own, read and muted messages cause none. A
// message that mentions the user by name does, also in a muted topic or channel.
export function notificationKinds(s: State, m: Message): NotificationKinds {
  if (m.sender_id === s.me.user_id || m.flags.includes("read") || s.mutedUsers.has(m.sender_id)) return none;
  const personal = m.flags.includes("mentioned");
  if (m.type === "stream" && !personal && isTopicMuted(s, m.stream_id!, m.subject)) return none;
  const direct = isPersonal(s, m);
  return {
    desktop: ofChannel(s, m, "desktop") || (direct && s.settings.enable_desktop_notifications === true),
    sound: ofChannel(s, m, "audible") || (direct && s.settings.enable_sounds === true),
  };
}

// isPersonal reports whether a message is direct, mentions the user or has one of the user's alert words.
function isPersonal(s: State, m: Message): boolean {
  if (m.type === "private") return true;
  if (m.flags.includes("mentioned") || m.flags.includes("has_alert_word")) return true;
  if (!m.flags.some((f) => f === "stream_wildcard_mentioned" || f === "topic_wildcard_mentioned")) return false;
  if (isFollowed(s, m) && s.settings.enable_followed_topic_wildcard_mentions_notify === true) return true;
  return s.subscriptions.get(m.stream_id!)?.wildcard_mentions_notify ?? s.settings.wildcard_mentions_notify === true;
}

// ofChannel reports whether the settings of the channel or of followed topics ask for a way.
function ofChannel(s: State, m: Message, way: "desktop" | "audible"): boolean {
  if (m.type !== "stream") return false;
  const sub = s.subscriptions.get(m.stream_id!);
  if (sub && (sub[`${way}_notifications`] ?? s.settings[`enable_stream_${way}_notifications`] === true)) return true;
  return isFollowed(s, m) && s.settings[`enable_followed_topic_${way}_notifications`] === true;
}

function isFollowed(s: State, m: Message): boolean {
  return topicPolicy(s, m.stream_id!, m.subject) === TopicPolicy.followed;
}

// BadgeCount are the values of the setting desktop_icon_count_display.
const BadgeCount = { all: 1, personalAndFollowed: 2, personal: 3, none: 4 } as const;

// badgeCount returns the number on the icon of the page.
export function badgeCount(s: State): number {
  const setting = s.settings.desktop_icon_count_display ?? BadgeCount.all;
  if (setting === BadgeCount.none) return 0;
  const counted = new Set<number>();
  for (const ids of s.unread.direct.values()) for (const id of ids) counted.add(id);
  for (const [channel, topics] of s.unread.topics) {
    for (const [topic, ids] of topics) {
      const muted = isTopicMuted(s, channel, topic);
      const whole =
        (setting === BadgeCount.all && !muted) ||
        (setting === BadgeCount.personalAndFollowed && topicPolicy(s, channel, topic) === TopicPolicy.followed);
      for (const id of ids) if (whole || (s.unread.mentions.has(id) && setting !== BadgeCount.all)) counted.add(id);
    }
  }
  return counted.size;
}
