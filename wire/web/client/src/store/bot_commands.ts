// The commands of bots in a channel, which are completed after a slash. No event says that they have changed, so they are
// fetched again when a user types a slash a minute later, or in another channel.
import { type BotCommand, getBotCommands } from "../api/administration.ts";

const maxAge = 60_000; // milliseconds

let list: BotCommand[] = []; // cache
let place = 0; // cache: the channel of the list
let fetched = -maxAge; // cache: time of the last answer

export function botCommands(channel: number): BotCommand[] {
  return channel === place ? list : [];
}

export function botCommandsAreOld(channel: number): boolean {
  return channel !== place || performance.now() - fetched >= maxAge;
}

export async function loadBotCommands(channel: number): Promise<void> {
  if (channel !== place) list = [];
  fetched = performance.now(); // also if it fails: the next slash must not ask again at once
  place = channel;
  const answer = await getBotCommands(channel);
  if (channel === place) list = answer.commands;
}

// forget makes the next slash fetch the commands again.
export function forgetBotCommands(): void {
  fetched = -maxAge;
}
