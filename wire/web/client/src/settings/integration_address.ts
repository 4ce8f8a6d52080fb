// The addresses that services call, as plain functions.
// externalAddress returns the address of an integration. Without events it takes all kinds.
export function externalAddress(
  site: string,
  integration: string,
  key: string,
  options: Record<string, string>,
  events: string[],
): string {
  const query = new URLSearchParams({ api_key: key, ...options });
  if (events.length) query.set("only_events", JSON.stringify(events));
  // Services show addresses more readably with %20 than with +.
  return `${site}/api/v1/external/${integration}?${query.toString().replaceAll("+", "%20")}`;
}

// shortName returns the part of a bot's address before "-bot", made from its name. It ends in a part that differs for
// each bot, since two bots may have the same name.
export function shortName(name: string, random = Math.random()): string {
  const plain = name
    .normalize("NFKD")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 40);
  const rest = Math.floor(random * 36 ** 5).toString(36).padStart(5, "0");
  return `${plain || "bot"}-${rest}`;
}
