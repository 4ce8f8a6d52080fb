// The topics of a channel are fetched when they are first needed. Events then keep them current; after a move or
// a deletion they are fetched again.
import { getTopics } from "../api/endpoints.ts";
import { change, peek } from "./store.ts";

const loading = new Map<number, Promise<void>>(); // in flight

export function loadTopics(channel: number): Promise<void> {
  if (peek().topics.has(channel)) return Promise.resolve();
  const running = loading.get(channel);
  if (running) return running;
  const work = getTopics(channel)
    .then((a) => {
      change((c) => {
        c.state.topics.set(channel, new Map(a.topics.map((x) => [x.name.toLowerCase(), x])));
        c.touch("topics");
      });
    })
    .catch(() => {})
    .finally(() => loading.delete(channel));
  loading.set(channel, work);
  return work;
}
