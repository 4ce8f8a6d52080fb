// A large organization: 10,000 users, 1,000 channels and 1,000,000 messages, of which 5,000 have formatted texts. "make
// browser-big" runs these scenes. They measure, so nothing else should use the machine. PARLEY_BIG_DATA names a data
// directory that is kept, so that another run need not make the organization again.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { eventually } from './parley.js';
import { scene } from './scene.js';

const USERS = 10_000;
const CHANNELS = 1000;
const MESSAGES = 1_000_000;
const FORMATTED = 5000;
const READER = 'u0@crowd.example.org';
const OPEN_MS = 2000; // from the start of the navigation until messages are shown
const FRAME_MS = 50; // between two frames, 95th percentile
const OPENINGS = 5;
const SPEED = 10_000; // pixels a second: a fast turn of a wheel
const STEP = 30_000; // pixels of one gesture

const TOPIC = 'formatted';

// texts are formatted messages: their heights differ, and the list must measure them.
const texts = [
  (i) => `Short answer ${i}.`,
  (i) => `Longer text ${i}: ${'the deploy of the new release is planned for noon, please review it. '.repeat(4)}`,
  (i) => `Look:\n\`\`\`go\nfunc main() {\n\tfmt.Println(${i})\n}\n\`\`\`\nDoes it work?`,
  (i) => `* first of ${i}\n* second, with **bold** and *italic* text\n  * below the second\n* third`,
  (i) => `@_**User ${i % 50}** said:\n> ${'a quotation that needs more than one line of the window. '.repeat(3)}\n\nI agree.`,
  (i) => `| name | value |\n|---|---|\n| one | ${i} |\n| two | ${i * 2} |`,
  (i) => `See https://example.com/issues/${i} and #**crowd 0>topic 1** :tada: :+1:`,
  (i) => `Inline \`code ${i}\`, a [link](https://example.com/${i}):\n\`\`\`spoiler Result\nIt is ${i}.\n\`\`\``,
];

async function served(s) {
  const kept = process.env.PARLEY_BIG_DATA;
  const data = kept ?? path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'parley-big-')), 'data');
  const parley = await s.serve('--data', data, '--demo-crowd',
    `users=${USERS},channels=${CHANNELS},messages=${MESSAGES}`);
  await parley.setPassword(READER);
  await addFormatted(parley);
  return parley;
}

// page returns the parameters of a request for the newest formatted messages.
function page(count) {
  const narrow = JSON.stringify([['channel', 'crowd 0'], ['topic', TOPIC]]);
  return { anchor: 'newest', num_before: count, num_after: 0, narrow };
}

// addFormatted sends the formatted messages to the first channel, which every user reads, unless they exist already.
async function addFormatted(parley) {
  if ((await parley.call(READER, 'GET', 'messages', page(1))).messages.length) return;
  let next = 0;
  const sendAll = async (user) => {
    while (next < FORMATTED) {
      const i = next++;
      await parley.call(user, 'POST', 'messages', { type: 'stream', to: 'crowd 0', topic: TOPIC,
        content: texts[i % texts.length](i) });
    }
  };
  await Promise.all(Array.from({ length: 16 }, (_, i) => sendAll(`u${i + 1}@crowd.example.org`)));
}

function quantile(list, q) {
  const sorted = [...list].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))];
}

// watchOpening notes when the first message was painted, in milliseconds since the start of the navigation.
async function watchOpening(p) {
  await p.context.addInitScript(() => {
    const shown = () => document.querySelector('.message .content, .inbox-entry');
    const look = new MutationObserver(() => {
      if (!shown()) return;
      look.disconnect();
      requestAnimationFrame(() => setTimeout(() => { globalThis.openedAt = performance.now(); }));
    });
    look.observe(document, { childList: true, subtree: true });
  });
}

async function opening(p, address) {
  await p.page.goto('about:blank');
  await p.page.goto(address, { waitUntil: 'commit' });
  return eventually('the first messages are shown', () => p.page.evaluate(() => globalThis.openedAt));
}

scene('a large organization opens in less than two seconds', async (s) => {
  const parley = await served(s);
  const session = await s.profile(parley);
  await session.logIn(READER);
  const cookies = await session.context.cookies();
  for (const address of ['/', '/#feed', '/#narrow/channel/1-crowd-0']) {
    const cold = [];
    const warm = [];
    for (let i = 0; i < OPENINGS; i++) {
      const p = await s.profile(parley); // an empty cache
      await p.context.addCookies(cookies);
      await watchOpening(p);
      cold.push(await opening(p, address));
      warm.push(await opening(p, address));
      await p.context.close();
    }
    const text = (x) => `median ${Math.round(quantile(x, 0.5))} ms, longest ${Math.round(Math.max(...x))} ms`;
    console.log(`${address}: empty cache ${text(cold)}; cached ${text(warm)}`);
    assert.ok(Math.max(...cold, ...warm) < OPEN_MS, `${address}: ${cold} ${warm}`);
  }
}, 600_000);

// watchFrames collects the times between frames until it is stopped.
async function watchFrames(p, work) {
  await p.page.evaluate(() => {
    globalThis.frames = [];
    let last = 0;
    const frame = (now) => {
      if (!globalThis.frames) return;
      if (last) globalThis.frames.push(now - last);
      last = now;
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });
  await work();
  return p.page.evaluate(() => {
    const { frames } = globalThis;
    globalThis.frames = null;
    return frames;
  });
}

// inWindow returns the ids of the messages in the window.
function inWindow(p) {
  return p.page.evaluate(() => [...document.querySelectorAll('.message[data-message]')].filter((el) => {
    const { top, bottom } = el.getBoundingClientRect();
    return bottom > 100 && top < innerHeight - 100;
  }).map((el) => Number(el.dataset.message)));
}

// report prints the times of frames and returns their 95th percentile.
function report(name, frames) {
  const over = frames.filter((x) => x > FRAME_MS).length;
  const p95 = quantile(frames, 0.95);
  console.log(`${name}: ${frames.length} frames, median ${quantile(frames, 0.5).toFixed(1)} ms, ` +
    `p95 ${p95.toFixed(1)} ms, p99 ${quantile(frames, 0.99).toFixed(1)} ms, longest ${Math.max(...frames).toFixed(0)} ms, ` +
    `${over} over ${FRAME_MS} ms`);
  return p95;
}

// drawn returns the times between the frames of a DevTools trace.
function drawn(trace) {
  const { traceEvents: events } = JSON.parse(fs.readFileSync(trace));
  const times = events.filter((e) => e.name === 'DrawFrame').map((e) => e.ts / 1000).sort((a, b) => a - b);
  return times.slice(1).map((x, i) => x - times[i]);
}

scene('scrolling through 5,000 messages is smooth', async (s) => {
  const parley = await served(s);
  const p = await s.profile(parley);
  await p.logIn(READER);
  const { messages } = await parley.call(READER, 'GET', 'messages', { ...page(FORMATTED), apply_markdown: 'false' });
  const ids = messages.map((m) => m.id);
  const place = new Map(ids.map((id, i) => [id, i]));
  await p.page.goto(`/#narrow/channel/1-crowd-0/topic/${TOPIC}/near/${ids.at(-1)}`);
  await p.page.locator('.message').first().waitFor();
  const cdp = await p.context.newCDPSession(p.page);
  const gesture = (distance) => cdp.send('Input.synthesizeScrollGesture', { x: 640, y: 360, yDistance: distance,
    speed: SPEED, gestureSourceType: 'mouse', preventFling: true });
  const scroll = async (direction, stop) => {
    for (let i = 0; i < 60; i++) {
      await gesture(direction * STEP);
      if (stop((await inWindow(p)).map((id) => place.get(id)))) return;
    }
    throw new Error('the end was not reached');
  };
  const trace = path.join(process.env.PARLEY_TRACE ?? os.tmpdir(), `parley-trace-${process.pid}.json`);
  const categories = ['-*', 'devtools.timeline', 'devtools.timeline.frame',
    'disabled-by-default-devtools.timeline.frame'];
  for (const [name, direction, stop] of [
    ['up, while older messages are fetched', 1, (shown) => shown.includes(0)],
    ['down again', -1, (shown) => shown.includes(FORMATTED - 1)]]) {
    await p.page.context().browser().startTracing(p.page, { path: trace, categories });
    const frames = await watchFrames(p, () => scroll(direction, stop));
    await p.page.context().browser().stopTracing();
    assert.ok(report(`${name}, requestAnimationFrame`, frames) < FRAME_MS);
    assert.ok(report(`${name}, DevTools trace`, drawn(trace)) < FRAME_MS);
    if (!process.env.PARLEY_TRACE) fs.rmSync(trace);
  }
}, 600_000);
