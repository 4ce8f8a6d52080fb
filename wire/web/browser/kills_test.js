// Servers that are killed and networks that fail while people type and read. KILLS and OFFLINE_SECONDS make the scenes
// longer; "make browser-kills" runs them in the long form.
import assert from 'node:assert/strict';
import { eventually, sleep } from './parley.js';
import { scene } from './scene.js';

const TOPIC = '/#narrow/channel/1-general/topic/lunch';
const ANN = 'ann@example.org';
const BO = 'bo@example.org';
const KILLS = Number(process.env.KILLS ?? 10);
const OFFLINE_MS = Number(process.env.OFFLINE_SECONDS ?? 13) * 1000; // the client tells the user after 12 seconds
const LOST = [/ERR_(EMPTY_RESPONSE|CONNECTION_RESET|CONNECTION_REFUSED|SOCKET_NOT_CONNECTED|INTERNET_DISCONNECTED)/];

// opened shows the topic to a user and counts how often the page is loaded from then on, and which banners it shows.
async function opened(s, parley, email) {
  const p = await s.profile(parley);
  p.expect(...LOST);
  await p.logIn(email);
  await p.page.goto(TOPIC);
  await p.page.locator('.view-header').waitFor();
  p.loads = 0;
  p.page.on('load', () => { p.loads += 1; });
  await p.page.evaluate(() => {
    globalThis.banners = [];
    new MutationObserver(() => {
      const shown = document.querySelector('.banner')?.textContent ?? '';
      if (shown !== (globalThis.banners.at(-1)?.shown ?? '')) globalThis.banners.push({ shown, at: Date.now() });
    }).observe(document.body, { childList: true, subtree: true });
  });
  return p;
}

const banners = (p) => p.page.evaluate(() => globalThis.banners);
const outgoing = (p) => p.page.locator('.outgoing').count();

async function box(p) {
  const field = p.page.getByRole('textbox', { name: 'Message', exact: true });
  if (!await field.isVisible()) await p.page.locator('.compose-open').click();
  return field;
}

// stored returns the topic's messages that the server has, the oldest first.
async function stored(parley) {
  const { messages } = await parley.call(ANN, 'GET', 'messages', { anchor: 'newest', num_before: 1000, num_after: 0,
    apply_markdown: 'false', narrow: JSON.stringify([['channel', 'general'], ['topic', 'lunch']]) });
  return messages;
}

// shown returns the texts of the messages in the document: only those near the window are drawn.
const shown = (p) => p.page.locator('.message .content').allInnerTexts().then((all) => all.map((x) => x.trim()));

// showsEnd waits until the last messages on the page are the expected ones, each once.
async function showsEnd(p, expected) {
  let got;
  await eventually('the newest messages are shown', async () => {
    got = await shown(p);
    return JSON.stringify(got.slice(-expected.length)) === JSON.stringify(expected) && new Set(got).size === got.length;
  }).catch((err) => { throw new Error(`${err.message}\nshown: ${got}\nexpected: ${expected}`); });
}

scene(`the server is killed ${KILLS} times while one user types and another reads`, async (s) => {
  const parley = await s.serve();
  await parley.setPassword(ANN, BO);
  const [ann, bo] = await Promise.all([ANN, BO].map((email) => opened(s, parley, email)));
  const field = await box(ann);
  const own = []; // Ann's messages in the order in which they were written
  const others = [];
  let inBox = '';
  const type = async (text) => {
    await field.pressSequentially(text);
    inBox += text;
    assert.equal(await field.inputValue(), inBox, 'the text in the box');
  };
  for (let i = 0; i < KILLS; i++) {
    await type(`the server is up in round ${i}, `);
    if (i % 2) { // the answer to this message may be lost, or the message
      own.push(inBox.trim());
      await field.press('Control+Enter');
      inBox = '';
    }
    await parley.kill();
    await type(`and down, ${i}`);
    if (i % 3) {
      own.push(inBox.trim());
      await field.press('Control+Enter');
      inBox = '';
    }
    others.push(`Bo writes too, ${i}`);
    await (await box(bo)).fill(others.at(-1));
    await (await box(bo)).press('Control+Enter');
    const restarted = parley.start();
    await type(`typed while it starts, ${i}. `);
    await restarted;
    for (const p of [ann, bo]) await eventually('all messages are stored', async () => await outgoing(p) === 0);
  }
  assert.equal(await field.inputValue(), inBox, 'the text that was not sent is still in the box');
  assert.notEqual(inBox, '');
  const messages = await stored(parley);
  const by = (name) => messages.filter((m) => m.sender_full_name === name).map((m) => m.content);
  assert.deepEqual(by('Ann Lee'), own, "Ann's messages are stored once, in her order");
  assert.deepEqual(by('Bo Park'), others, "Bo's messages are stored once, in his order");
  const end = messages.slice(-5).map((m) => m.content);
  for (const p of [ann, bo]) await showsEnd(p, end);
  await field.press('Control+Enter');
  await showsEnd(bo, [inBox.trim()]);
  await eventually('Bo has read all', async () => await bo.page.locator('.message.unread').count() === 0);
  await eventually('the server knows that Bo has read all', async () => {
    const types = '["message", "update_message_flags"]';
    const { unread_msgs: unread } = await parley.call(BO, 'POST', 'register', { fetch_event_types: types });
    return unread.streams.every((x) => x.topic !== 'lunch');
  });
  for (const p of [ann, bo]) {
    assert.equal(p.loads, 0, 'the page was loaded again');
    assert.deepEqual(await banners(p), [], 'the server was never away long enough for a banner');
  }
}, 90_000 + KILLS * 10_000);

scene(`${OFFLINE_MS / 1000} seconds without a network: what was written is kept and delivered once`, async (s) => {
  const parley = await s.serve();
  await parley.setPassword(ANN, BO);
  const [ann, bo] = await Promise.all([ANN, BO].map((email) => opened(s, parley, email)));
  const field = await box(ann);
  const write = async (p, text) => {
    await (await box(p)).fill(text);
    await (await box(p)).press('Control+Enter');
  };
  await write(ann, 'before');
  await showsEnd(bo, ['before']);
  await ann.context.setOffline(true);
  const from = Date.now();
  for (const text of ['one', 'two', 'three']) await write(ann, text);
  await write(bo, 'from the other side');
  await eventually('it is sent', async () => await outgoing(bo) === 0);
  const edited = (await stored(parley)).find((m) => m.content === 'before');
  await parley.call(ANN, 'PATCH', `messages/${edited.id}`, { content: 'before, edited elsewhere' });
  await parley.call(BO, 'POST', `messages/${edited.id}/reactions`, { emoji_name: 'tada' });
  await field.fill('not yet finished');
  await ann.page.locator('.banner', { hasText: 'No connection' }).waitFor();
  assert.equal(await outgoing(ann), 3, 'the messages are shown while they wait');
  await ann.accessible();
  await sleep(Math.max(0, from + OFFLINE_MS - Date.now()));
  assert.deepEqual((await stored(parley)).map((m) => m.content), ['before, edited elsewhere', 'from the other side']);
  await ann.context.setOffline(false);
  const all = ['before, edited elsewhere', 'from the other side', 'one', 'two', 'three'];
  for (const p of [ann, bo]) await showsEnd(p, all);
  await ann.page.locator('.reaction[title*="Bo Park"]').waitFor();
  await eventually('the banner is gone', async () => await ann.page.locator('.banner').count() === 0);
  assert.deepEqual((await stored(parley)).map((m) => m.content), all, 'each message is stored once');
  assert.equal(await field.inputValue(), 'not yet finished');
  assert.equal(ann.loads + bo.loads, 0, 'a page was loaded again');
  const shownBanners = await banners(ann);
  assert.equal(shownBanners.length, 2, 'one banner appears and disappears');
  assert.ok(shownBanners[0].at - from > 10_000, 'a short failure shows no banner');
  assert.deepEqual(await banners(bo), []);
}, 90_000 + OFFLINE_MS);
