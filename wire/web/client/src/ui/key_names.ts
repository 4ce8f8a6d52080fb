// The names of pressed keys, by which shortcuts are found.

// latin returns the letter of a key. Keyboards without Latin letters have the shortcuts at the places of an English one.
// Caps Lock changes nothing.
function latin(e: Pressed): string {
  if (e.key.length !== 1 || (e.key >= " " && e.key <= "~")) return /^[A-Z]$/i.test(e.key) ? e.key.toLowerCase() : e.key;
  const letter = /^Key([A-Z])$/.exec(e.code)?.[1];
  return letter ? letter.toLowerCase() : e.key;
}

type Pressed = Pick<KeyboardEvent, "key" | "code" | "ctrlKey" | "metaKey" | "altKey" | "shiftKey">;

// nameOf returns the name of a pressed key as in Shortcut.keys.
export function nameOf(e: Pressed): string {
  const key = latin(e);
  let out = "";
  if (e.ctrlKey || e.metaKey) out += "Ctrl+";
  if (e.altKey) out += "Alt+";
  // Other printable characters already contain the effect of Shift.
  const letter = /^[a-z]$/.test(key);
  if (e.shiftKey && (key.length > 1 || key === " " || letter)) out += "Shift+";
  return out + (e.shiftKey && letter ? key.toUpperCase() : key);
}
