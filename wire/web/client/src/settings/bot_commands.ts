// The commands of a bot as text, one in each line: "/name words: what it does".
import type { BotCommand } from "../api/administration.ts";

export function linesOf(list: BotCommand[]): string {
  return list.map((c) => `/${c.name}${c.usage && ` ${c.usage}`}${c.description && `: ${c.description}`}`).join("\n");
}

export function commandsOf(text: string): Omit<BotCommand, "bot_id">[] {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return lines.map((line) => {
    const [, name, usage, description] = /^\s*\/?([^\s:]*)([^:]*):?(.*)$/.exec(line)!;
    return { name: name!, usage: usage!.trim(), description: description!.trim() };
  });
}
