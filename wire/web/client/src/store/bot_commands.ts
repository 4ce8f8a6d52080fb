// The commands of bots, which are completed after a slash. No event says that they have changed, so they are fetched again
// when a user types a slash a minute later.
import { type BotCommand, getBotCommands } from "../api/administration.ts";

const maxAge = 60_000; // milliseconds

let list: BotCommand[] = []; // cache
let fetched = -maxAge; // cache: time of the last answer

export function botCommands(): BotCommand[] {
  return list;
}

export function botCommandsAreOld(): boolean {
  return performance.now() - fetched >= maxAge;
}

export async function loadBotCommands(): Promise<void> {
  fetched = performance.now(); // also if it fails: the next slash must not ask again at once
  list = (await getBotCommands()).commands;
}

// forget makes the next slash fetch the commands again.
export function forgetBotCommands(): void {
  fetched = -maxAge;
}
