// Addresses that others have written, and the address of the page.

// parseAddress returns an address in its parts, or null if it is none. It never throws: one bad link in a message must
// not hide the other messages.
export function parseAddress(text: string, base: string): URL | null {
  try {
    return new URL(text, base);
  } catch {
    return null;
  }
}

// withoutNames removes the names of people from a fragment such as #narrow/dm/10-Bo-Park. The user IDs are enough to open
// it. The page to log in has such a fragment, and everyone who uses the computer can read it there.
export function withoutNames(fragment: string): string {
  return fragment.replace(/\/(-?(?:dm|dm-including|pm-with|group-pm-with|sender|from)\/\d+(?:,\d+)*)-[^/]*/g, "/$1");
}
