// The sounds of notifications. They are made from tones when they are played, so that no file is loaded.

// Tone is one part of a sound: frequencies in Hz at its start and end, its start and length in seconds.
type Tone = { from: number; to: number; at: number; length: number; wave?: OscillatorType };

const line = (step: number, length: number, wave: OscillatorType, ...notes: number[]): Tone[] =>
  notes.map((n, i) => ({ from: n, to: n, at: i * step, length, wave }));

// tones has a sound for each name that the server offers.
const tones: Record<string, Tone[]> = {
  ascend: line(0.1, 0.16, "sine", 523, 659, 784),
  beep_boop: line(0.14, 0.12, "square", 880, 440),
  bink: [{ from: 1400, to: 1800, at: 0, length: 0.09 }],
  bright: line(0.08, 0.3, "triangle", 1047, 1319, 1568),
  brlip: line(0.045, 0.06, "triangle", 700, 900, 700, 1000),
  chime: line(0.16, 0.5, "sine", 988, 784),
  "deep tom": [{ from: 170, to: 60, at: 0, length: 0.4 }],
  ding: line(0, 0.6, "sine", 1175),
  "double tap": line(0.12, 0.06, "triangle", 900, 900),
  down: line(0.1, 0.16, "sine", 784, 659, 523),
  "dry bongos": line(0.09, 0.09, "triangle", 280, 280, 210),
  dutdut: line(0.1, 0.07, "square", 520, 520),
  "fast ascend": line(0.05, 0.1, "sine", 523, 659, 784, 1047),
  flute: line(0.18, 0.3, "sine", 880, 988),
  friendly: line(0.12, 0.22, "triangle", 659, 523, 784),
  "kick roll": line(0.07, 0.1, "sine", 110, 110, 110, 90),
  "loud tintong": line(0.2, 0.5, "square", 1047, 784),
  "metallic snare": line(0.03, 0.12, "square", 1860, 1310, 2210),
  pan: line(0.05, 0.4, "triangle", 622, 932),
  shaker: line(0.06, 0.04, "square", 3100, 2800, 3100),
  simple: line(0, 0.25, "sine", 740),
  stairs: line(0.11, 0.12, "triangle", 440, 494, 554, 587),
  subtle: line(0, 0.15, "sine", 494),
  swish: [{ from: 2200, to: 300, at: 0, length: 0.25 }],
  tintong: line(0.2, 0.5, "triangle", 1047, 784),
  up: [{ from: 400, to: 900, at: 0, length: 0.2 }],
  "wood block": [{ from: 950, to: 700, at: 0, length: 0.07, wave: "triangle" }],
  zaping: [{ from: 1800, to: 200, at: 0, length: 0.18, wave: "sawtooth" }],
  zing: [{ from: 900, to: 2600, at: 0, length: 0.3 }],
  zulip: line(0.12, 0.3, "sine", 587, 880),
};

const volume = 0.15; // of 1
const minGap = 1000; // milliseconds between two sounds, so that a burst of messages sounds once

export const soundNames = Object.keys(tones);

let context: AudioContext | null = null; // cache
let lastAt = -minGap; // in flight

// playSound plays a sound, "none" is silent. Browsers play nothing before the user has used the page.
export function playSound(name: string, now = performance.now()): void {
  if (name === "none" || now - lastAt < minGap || typeof AudioContext === "undefined") return;
  if (navigator.userActivation && !navigator.userActivation.hasBeenActive) return;
  lastAt = now;
  context ??= new AudioContext();
  const c = context;
  void c.resume().catch(() => {});
  for (const x of tones[name] ?? tones.zulip!) {
    const start = c.currentTime + x.at;
    const end = start + x.length;
    const source = c.createOscillator();
    const gain = c.createGain();
    source.type = x.wave ?? "sine";
    source.frequency.setValueAtTime(x.from, start);
    source.frequency.exponentialRampToValueAtTime(x.to, end);
    gain.gain.setValueAtTime(volume, start);
    gain.gain.exponentialRampToValueAtTime(0.001, end);
    source.connect(gain).connect(c.destination);
    source.start(start);
    source.stop(end);
  }
  dispatchEvent(new CustomEvent("parley-sound", { detail: name }));
}
