// Whether the user follows or has muted a topic.
import { setTopicPolicy } from "../api/endpoints.ts";
import { TopicPolicy } from "../api/types.ts";
import { t } from "../i18n/text.ts";
import { attempt } from "../store/actions.ts";
import { topicPolicy } from "../store/narrow.ts";
import { peek, read } from "../store/store.ts";
import { Menu, openPopover } from "../ui/dialogs.tsx";
import { Icon, type IconName } from "../ui/icons.tsx";

// policyNames are the ways to follow a topic, in the order of the menu.
export function policyNames(): { policy: number; label: string; icon: IconName }[] {
  return [
    { policy: TopicPolicy.muted, label: t("Muted"), icon: "mute" },
    { policy: TopicPolicy.inherit, label: t("Default"), icon: "bell" },
    { policy: TopicPolicy.unmuted, label: t("Unmuted"), icon: "bell" },
    { policy: TopicPolicy.followed, label: t("Followed"), icon: "follow" },
  ];
}

// PolicyMark shows that the user follows, has muted or has unmuted a topic.
export function PolicyMark({ channel, topic }: { channel: number; topic: string }) {
  void read("topicPolicies");
  const now = topicPolicy(peek(), channel, topic);
  const current = policyNames().find((p) => p.policy === now)!;
  if (now === TopicPolicy.inherit) return null;
  return (
    <span class="view-icon" role="img" aria-label={current.label} title={current.label}>
      <Icon name={current.icon} size={14} filled={now === TopicPolicy.followed} />
    </span>
  );
}

// TopicPolicyButton shows whether the user follows or has muted a topic, and opens the menu that changes it.
export function TopicPolicyButton({ channel, topic }: { channel: number; topic: string }) {
  void read("topicPolicies");
  const now = topicPolicy(peek(), channel, topic);
  const current = policyNames().find((p) => p.policy === now)!;
  const items = policyNames().map((p) => ({
    label: p.label,
    icon: p.policy === now ? ("check" as const) : p.icon,
    run: () => attempt(setTopicPolicy(channel, topic, p.policy)),
  }));
  const label = t("Notifications of this topic: {state}", { state: current.label });
  return (
    <button
      type="button"
      class={`icon-button topic-policy ${now === TopicPolicy.inherit ? "" : "chosen"}`}
      aria-haspopup="menu"
      title={label}
      aria-label={label}
      onClick={(e) => openPopover(e.currentTarget, <Menu label={t("Notifications of this topic")} items={items} />)}
    >
      <Icon name={current.icon} filled={now === TopicPolicy.followed} />
    </button>
  );
}
