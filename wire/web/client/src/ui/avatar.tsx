// The picture of a user: the one that they have uploaded, else their initials on a colour.
import type { User } from "../api/types.ts";
import { avatarOf } from "../store/queries.ts";
import { read } from "../store/store.ts";

const hues = 12; // colours of initials, as angles of the same distance

// initials returns the first letters of the first and the last word of a name.
function initials(name: string): string {
  const words = name.replace(/[^\p{L}\p{N}\s]/gu, " ").trim().split(/\s+/).filter(Boolean);
  const ends = words.length > 1 ? [words[0]!, words.at(-1)!] : words;
  return ends.map((w) => [...w][0]!.toUpperCase()).join("") || "?";
}

// isGenerated reports whether the picture of a user is one that the server has drawn.
function isGenerated(u: User): boolean {
  return (u.avatar_url ?? "").includes("/generated/");
}

// Avatar shows a user with a size in pixels. The stylesheet draws the initials: they are a picture, and no text for screen
// readers. It has no text of its own unless it is labelled: the name is beside it.
export function Avatar({ id, size, label = "", class: more = "", onClick }: { id: number; size: number; label?: string; class?: string; onClick?: (e: MouseEvent) => void }) {
  const u = read("users").get(id);
  const box = { width: `${size}px`, height: `${size}px` };
  if (u && isGenerated(u)) {
    return (
      <span class={`avatar initials ${more}`} style={{ ...box, "--hue": ((id % hues) * 360) / hues, fontSize: `${Math.round(size * 0.4)}px` }} role={label ? "img" : undefined} aria-label={label || undefined} aria-hidden={label ? undefined : true} title={label || undefined} onClick={onClick} data-initials={initials(u.full_name)} />
    );
  }
  return <img class={`avatar ${more}`} src={avatarOf(u, size > 40)} alt={label} title={label || undefined} width={size} height={size} style={box} loading="lazy" onClick={onClick} />;
}
