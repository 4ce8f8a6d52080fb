// Players of sounds and videos keep their position when they are drawn again: after the message was edited, was outside
// of the window, or in the viewer.
const positions = new Map<string, number>(); // view state: seconds, by the address of the file

const maxPositions = 200; // files that were begun; the oldest is forgotten

// keepPosition lets a player go on where the last player of its file was.
export function keepPosition(player: HTMLMediaElement): void {
  const src = player.getAttribute("src");
  if (!src) return;
  const note = (): void => {
    const from = positions.get(src);
    positions.delete(src);
    // A player that was taken out of the page starts at 0 again: that is not a position of the user.
    const at = player.ended ? 0 : player.isConnected ? player.currentTime : from;
    if (at) positions.set(src, at);
    if (positions.size > maxPositions) positions.delete(positions.keys().next().value!);
  };
  player.addEventListener("loadedmetadata", () => {
    const at = positions.get(src);
    if (at && at < player.duration) player.currentTime = at;
    for (const type of ["timeupdate", "seeked", "pause", "ended"]) player.addEventListener(type, note);
  });
}
