// All subscribers of a channel: the registration names only some of them, and after leaving a channel none are known.
import { getSubscribers } from "../api/channels.ts";
import { change, peek } from "./store.ts";

const attempts = 3;

// loadMembers fetches the subscribers of a channel unless all are known. Events may change them meanwhile: then the
// answer can be older than the state, and is fetched again.
export async function loadMembers(channel: number): Promise<void> {
  for (let i = 0; i < attempts; i++) {
    const before = peek().members.get(channel);
    const count = peek().channels.get(channel)?.subscriber_count;
    if (before?.complete) return;
    const { subscribers } = await getSubscribers(channel);
    const now = peek().channels.get(channel);
    if (!now) return;
    if (i + 1 < attempts && (peek().members.get(channel) !== before || now.subscriber_count !== count)) continue;
    change((c) => {
      c.state.members.set(channel, { ids: new Set(subscribers), complete: true });
      c.touch("members");
    });
    return;
  }
}
