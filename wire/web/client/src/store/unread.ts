// The unread messages: the place of each message, and the messages of each place.

// Place is the topic of a channel or the direct conversation that a message belongs to.
export type Place = { channel: number; topic: string } | { people: string };

const none: ReadonlySet<number> = new Set();

export class Unread {
  readonly places = new Map<number, Place>();
  readonly mentions = new Set<number>();
  // topics has the unread messages by channel and by topic in lower case.
  readonly topics = new Map<number, Map<string, Set<number>>>();
  readonly direct = new Map<string, Set<number>>();

  add(id: number, place: Place, mentioned: boolean): void {
    this.remove(id);
    this.places.set(id, place);
    if (mentioned) this.mentions.add(id);
    if ("people" in place) {
      getOrInsert(this.direct, place.people, () => new Set<number>()).add(id);
    } else {
      const topics = getOrInsert(this.topics, place.channel, () => new Map<string, Set<number>>());
      getOrInsert(topics, place.topic.toLowerCase(), () => new Set<number>()).add(id);
    }
  }

  remove(id: number): void {
    const place = this.places.get(id);
    if (!place) return;
    this.places.delete(id);
    this.mentions.delete(id);
    if ("people" in place) {
      removeFrom(this.direct, place.people, id);
      return;
    }
    const topics = this.topics.get(place.channel);
    if (!topics) return;
    removeFrom(topics, place.topic.toLowerCase(), id);
    if (topics.size === 0) this.topics.delete(place.channel);
  }

  clear(): void {
    this.places.clear();
    this.mentions.clear();
    this.topics.clear();
    this.direct.clear();
  }

  inTopic(channel: number, topic: string): ReadonlySet<number> {
    return this.topics.get(channel)?.get(topic.toLowerCase()) ?? none;
  }

  withPeople(people: string): ReadonlySet<number> {
    return this.direct.get(people) ?? none;
  }

  // dropChannel removes all of a channel.
  dropChannel(channel: number): void {
    for (const ids of this.topics.get(channel)?.values() ?? []) {
      for (const id of ids) {
        this.places.delete(id);
        this.mentions.delete(id);
      }
    }
    this.topics.delete(channel);
  }
}

// getOrInsert returns the value of a key. If there is none, it stores the value that make returns.
export function getOrInsert<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let v = map.get(key);
  if (v === undefined) {
    v = make();
    map.set(key, v);
  }
  return v;
}

function removeFrom<K>(map: Map<K, Set<number>>, key: K, id: number): void {
  const set = map.get(key);
  set?.delete(id);
  if (set?.size === 0) map.delete(key);
}
