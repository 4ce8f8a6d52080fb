// The page of a call. It is a program of its own, so that the client does not load the library for calls.
//
// The texts of the page come from the server in the page. Pictures and sounds go through the LiveKit server; the token
// for it is asked for when the user joins, because it expires.
import { ConnectionState, DisconnectReason, LogLevel, Room, RoomEvent, setLogLevel, Track } from "livekit-client";
import type { Participant, TrackPublication } from "livekit-client";
import type { Success } from "../api/schema.ts";

const main = element("#call");
const key = main.dataset.key!;

function element<T extends HTMLElement = HTMLElement>(selector: string): T {
  return document.querySelector<T>(selector)!;
}

// ask sends a request about the call to the server.
async function ask<T extends Success>(method: "GET" | "POST", path: string): Promise<T> {
  const headers = { "X-CSRFToken": main.dataset.csrf! };
  const answer = await fetch(`/json/calls/livekit/${key}${path}`, { method, headers });
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.msg);
  return body;
}

interface Present extends Success {
  present: { user_id: number; full_name: string }[];
}

interface Token extends Success {
  url: string;
  token: string;
}

const pause = 4000; // milliseconds between two looks at who is there, before the user joins

// Part is one of the parts of the page; the others are hidden.
type Part = "before" | "inside" | "after";

function show(part: Part): void {
  for (const name of ["before", "inside", "after"]) element(`[data-part="${name}"]`).hidden = name !== part;
}

function fail(text: string): void {
  const line = element(".wrong");
  line.textContent = text;
  line.hidden = text === "";
}

// showPresent shows who is in the call, until the user joins or the call ends.
async function showPresent(): Promise<void> {
  for (;;) {
    if (element('[data-part="before"]').hidden) return;
    try {
      const { present } = await ask<Present>("GET", "");
      const names = present.map((p) => p.full_name).join(", ");
      element("[data-present]").textContent = names;
      element("[data-present-label]").hidden = names === "";
      fail("");
    } catch (error) {
      fail((error as Error).message);
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

// The page says what went wrong. The library reports as errors that its channels close when the server removes a user.
setLogLevel(LogLevel.silent);
const room = new Room({ adaptiveStream: true, dynacast: true });

// tile returns the tile of a person, and makes it if there is none.
function tile(p: Participant): HTMLElement {
  const tiles = element("[data-tiles]");
  let box = tiles.querySelector<HTMLElement>(`[data-who="${CSS.escape(p.identity)}"]`);
  if (!box) {
    box = document.createElement("figure");
    box.dataset.who = p.identity;
    const name = document.createElement("figcaption");
    name.textContent = p.name || p.identity;
    box.append(name);
    tiles.append(box);
  }
  return box;
}

function addTrack(publication: TrackPublication, p: Participant): void {
  const track = publication.track;
  if (!track || (track.kind === Track.Kind.Audio && p.isLocal)) return;
  const media = track.attach();
  media.dataset.kind = track.kind;
  tile(p).prepend(media);
}

function removeTrack(publication: TrackPublication): void {
  for (const media of publication.track?.detach() ?? []) media.remove();
}

function showButtons(): void {
  const me = room.localParticipant;
  element("[data-do=camera]").setAttribute("aria-pressed", String(me.isCameraEnabled));
  element("[data-do=microphone]").setAttribute("aria-pressed", String(me.isMicrophoneEnabled));
}

room
  .on(RoomEvent.ParticipantConnected, (p) => tile(p))
  .on(RoomEvent.ParticipantDisconnected, (p) => tile(p).remove())
  .on(RoomEvent.TrackSubscribed, (_, publication, p) => addTrack(publication, p))
  .on(RoomEvent.TrackUnsubscribed, (track) => track.detach().forEach((media) => media.remove()))
  .on(RoomEvent.LocalTrackPublished, (publication, p) => addTrack(publication, p))
  .on(RoomEvent.LocalTrackUnpublished, removeTrack)
  .on(RoomEvent.ActiveSpeakersChanged, (speakers) => {
    const loud = new Set(speakers.map((p) => p.identity));
    for (const box of document.querySelectorAll<HTMLElement>("[data-who]")) {
      box.classList.toggle("speaks", loud.has(box.dataset.who!));
    }
  })
  .on(RoomEvent.Disconnected, (reason) => {
    element("[data-tiles]").replaceChildren();
    element("[data-removed]").hidden =
      reason !== DisconnectReason.PARTICIPANT_REMOVED && reason !== DisconnectReason.ROOM_DELETED;
    show("after");
  });

async function join(): Promise<void> {
  fail("");
  try {
    const { url, token } = await ask<Token>("POST", "/token");
    await room.connect(url, token);
  } catch (error) {
    fail((error as Error).message);
    return;
  }
  show("inside");
  tile(room.localParticipant);
  for (const p of room.remoteParticipants.values()) tile(p);
  // A user without a camera or a microphone, or who does not allow them, still hears and sees the others.
  for (const start of [
    () => room.localParticipant.setMicrophoneEnabled(true),
    () => room.localParticipant.setCameraEnabled(true),
  ]) {
    await start().catch(() => (element("[data-no-device]").hidden = false));
  }
  showButtons();
}

document.addEventListener("click", async (event) => {
  const button = (event.target as Element).closest<HTMLButtonElement>("button[data-do]");
  if (!button) return;
  button.disabled = true;
  const me = room.localParticipant;
  try {
    switch (button.dataset.do) {
      case "join":
        await join();
        break;
      case "camera":
        await me.setCameraEnabled(!me.isCameraEnabled);
        break;
      case "microphone":
        await me.setMicrophoneEnabled(!me.isMicrophoneEnabled);
        break;
      case "leave":
        await room.disconnect();
        break;
    }
  } catch {
    element("[data-no-device]").hidden = false;
  }
  button.disabled = false;
  if (room.state === ConnectionState.Connected) showButtons();
});

addEventListener("pagehide", () => void room.disconnect());
show("before");
void showPresent();
