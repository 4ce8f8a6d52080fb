// An emoji as a small picture: characters of the browser, or an image.
import type { EmojiChoice, UserStatus } from "../api/types.ts";
import { read } from "../store/store.ts";

// emojiText returns the characters of a code such as 1f1e9-1f1ea.
export function emojiText(code: string): string {
  const points = code.split("-").map((x) => parseInt(x, 16));
  if (points.some((x) => !(x >= 0 && x <= 0x10ffff))) return "";
  const text = String.fromCodePoint(...points);
  // Without a selector, some of the older symbols are drawn in black and white.
  return points.length === 1 && points[0]! < 0x1f000 ? text + "\uFE0F" : text;
}

// EmojiGlyph shows an emoji of either kind.
export function EmojiGlyph({ emoji }: { emoji: EmojiChoice }) {
  if (emoji.reaction_type === "unicode_emoji") {
    return <span class="emoji-glyph">{emojiText(emoji.emoji_code)}</span>;
  }
  const url = emoji.reaction_type === "realm_emoji" ? read("emoji").get(emoji.emoji_code)?.source_url : undefined;
  const src = url ?? `/static/generated/emoji/images/emoji/unicode/${emoji.emoji_code}.png`;
  return <img class="emoji-glyph" src={src} alt={`:${emoji.emoji_name}:`} />;
}

// emojiOf returns the emoji of a status, null for none.
export function emojiOf(status: UserStatus | undefined): EmojiChoice | null {
  const { emoji_name, emoji_code, reaction_type } = status ?? {};
  return emoji_name && emoji_code && reaction_type ? { emoji_name, emoji_code, reaction_type } : null;
}

export function StatusEmoji({ status }: { status: UserStatus | undefined }) {
  const emoji = emojiOf(status);
  return emoji && <EmojiGlyph emoji={emoji} />;
}
