// Notes above the text of the compose box: about who will not see the message, and who will.
import { useEffect } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { addSubscribers, subscribe } from "../api/channels.ts";
import { type Channel, Role } from "../api/types.ts";
import { plural, t } from "../i18n/text.ts";
import { attempt } from "../store/actions.ts";
import { loadMembers } from "../store/members.ts";
import { isShort } from "../store/people.ts";
import { resolvedMark } from "../store/narrow.ts";
import { canResolve } from "../store/permissions.ts";
import { mayInChannel, userName } from "../store/queries.ts";
import { toggleResolved } from "../store/resolve.ts";
import { peek, read } from "../store/store.ts";
import { composePanels } from "./extras.ts";
import { compose, text } from "./state.ts";

const maxNotes = 3; // mentioned users that are not subscribed
const many = 15; // subscribers: as in the question before the message is sent

interface Note {
  key: string;
  text: string;
  button?: string;
  run?: () => unknown;
}

function Banners() {
  const { direct, people, channel: id, topic } = compose.value;
  const channel = direct || id === null ? undefined : read("channels").get(id);
  const mentioned = channel ? mentionedUsers(text.value) : [];
  const members = channel && read("members").get(channel.stream_id);
  const ask = !!channel && mentioned.length > 0 && !members?.complete && !isShort();
  useEffect(() => {
    if (ask) void loadMembers(channel.stream_id).catch(() => {}); // without them there is no note
  }, [ask, channel?.stream_id]);
  const notes: Note[] = channel ? [...notesOfChannel(channel, topic), ...notSubscribed(channel, mentioned), ...wildcard(channel)] : direct ? guests(people) : [];
  if (notes.length === 0) return null;
  return (
    <div class="compose-notes" role="status">
      {notes.map((n) => (
        <NoteRow key={n.key} note={n}>
          {n.text}
        </NoteRow>
      ))}
    </div>
  );
}

function NoteRow({ note: n, children }: { note: Note; children: ComponentChildren }) {
  return (
    <p class="compose-note">
      <span class="grow">{children}</span>
      {n.button && (
        <button type="button" class="button small quiet" onClick={() => void n.run?.()}>
          {n.button}
        </button>
      )}
    </p>
  );
}

function notesOfChannel(c: Channel, topic: string): Note[] {
  const out: Note[] = [];
  if (!read("subscriptions").has(c.stream_id)) {
    const run = (): unknown => attempt(subscribe(c.name));
    out.push({ key: "self", text: t("You are not subscribed to {channel}: you will not see answers.", { channel: `#${c.name}` }), button: t("Subscribe"), run });
  }
  if (topic.startsWith(resolvedMark)) {
    const may = canResolve(c);
    out.push({ key: "resolved", text: t("This topic is resolved. You can still write to it, or begin a new topic."), button: may ? t("Mark as unresolved") : undefined, run: () => unresolve(c.stream_id, topic) });
  }
  return out;
}

async function unresolve(channel: number, topic: string): Promise<void> {
  const to = await toggleResolved(channel, topic);
  if (to !== undefined) compose.value = { ...compose.peek(), topic: to };
}

// mentionedUsers returns the users that a text mentions and notifies.
function mentionedUsers(content: string): number[] {
  const s = peek();
  const out = new Set<number>();
  for (const [, name, id] of content.matchAll(/@\*\*([^*|\n]+)(?:\|(\d+))?\*\*/g)) {
    if (id) out.add(Number(id));
    else for (const u of s.users.values()) if (u.is_active && u.full_name === name) out.add(u.user_id);
  }
  return [...out];
}

function notSubscribed(c: Channel, mentioned: number[]): Note[] {
  const members = read("members").get(c.stream_id);
  if (!members?.complete) return [];
  const may = read("me").is_admin || mayInChannel(c, "can_add_subscribers_group") || mayInChannel(c, "can_administer_channel_group") || (!c.invite_only && read("subscriptions").has(c.stream_id));
  return mentioned
    .filter((id) => !members.ids.has(id) && !read("users").get(id)?.is_bot)
    .slice(0, maxNotes)
    .map((id) => ({
      key: `user ${id}`,
      text: t("{name} is not subscribed to {channel}.", { name: userName(id), channel: `#${c.name}` }),
      button: may ? t("Subscribe {name}", { name: userName(id) }) : undefined,
      run: () => attempt(addSubscribers(c.name, [id])),
    }));
}

function wildcard(c: Channel): Note[] {
  const count = c.subscriber_count ?? 0;
  if (count <= many || !/@\*\*(all|everyone|channel|stream)\*\*/.test(text.value)) return [];
  return [{ key: "all", text: plural(count, "{count} person is notified.", "{count} people are notified.") }];
}

// guests says who in a direct conversation is a guest, if the organization wants that.
function guests(people: number[]): Note[] {
  if (!read("realm").realm_enable_guest_user_dm_warning) return [];
  const names = people.filter((id) => read("users").get(id)?.role === Role.guest).map(userName);
  if (names.length === 0) return [];
  return [{ key: "guests", text: plural(names.length, "{names} is a guest in this organization.", "{names} are guests in this organization.", { names: names.join(", ") }) }];
}

export function installBanners(): void {
  composePanels.push(Banners);
}
