// The list of messages keeps its place: whatever changes outside the window, the messages in it do not move.
import assert from 'node:assert/strict';
import { eventually } from './parley.js';
import { scene } from './scene.js';

const TOPIC = '/#narrow/channel/1-general/topic/lunch';
const ANN = 'ann@example.org';
const BO = 'bo@example.org';
const LINES = 260; // more than the client fetches at once

const say = (parley, email, content) => parley.call(email, 'POST', 'messages', { type: 'stream', to: 'general',
  topic: 'lunch', content, read_by_sender: 'true' });

// topOf returns where a message begins in the window, in pixels.
const topOf = (p, id) => p.page.locator(`[data-message="${id}"]`).evaluate((el) => el.getBoundingClientRect().top);

scene('messages in the window stay in their place while others arrive, change and are fetched', async (s) => {
  const parley = await s.serve();
  await parley.setPassword(ANN);
  const ids = [];
  for (let i = 0; i < LINES; i++) {
    ids.push((await say(parley, BO, `line ${i}${'\n\nand more of it'.repeat(i % 4)}`)).id);
  }
  await parley.call(ANN, 'POST', 'messages/flags', { op: 'add', flag: 'read', messages: JSON.stringify(ids) });
  const ann = await s.profile(parley);
  await ann.logIn(ANN);
  const watched = ids[LINES / 2];
  await ann.page.goto(`${TOPIC}/near/${watched}`);
  await ann.page.locator(`[data-message="${watched}"].selected`).waitFor();
  let place = await topOf(ann, watched);
  await eventually('the list is at rest', async () => {
    const now = await topOf(ann, watched);
    const rests = now === place;
    place = now;
    return rests;
  });
  const stays = async (what) => {
    await ann.page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
    const moved = Math.abs(await topOf(ann, watched) - place);
    assert.ok(moved <= 2, `${what}: the message moved by ${moved} pixels`);
  };
  const above = ids[LINES / 2 - 12];
  const drawn = ann.page.locator(`[data-message="${above}"]`);
  await drawn.waitFor({ state: 'attached' }); // outside the window, but near enough to be drawn
  assert.ok(await topOf(ann, above) < 0, 'it is above the window');
  await parley.call(BO, 'PATCH', `messages/${above}`, { content: `longer${'\n\nthan before'.repeat(20)}` });
  await drawn.getByText('than before').first().waitFor({ state: 'attached' });
  await stays('a message above became longer');
  await parley.call(BO, 'POST', `messages/${above}/reactions`, { emoji_name: 'tada' });
  await drawn.locator('.reaction[title*="tada"]').waitFor({ state: 'attached' });
  await stays('a message above got a reaction');
  await parley.call('olive@example.org', 'DELETE', `messages/${above}`);
  await drawn.waitFor({ state: 'detached' });
  await stays('a message above was deleted');
  const { id: newest } = await say(parley, BO, 'a new one');
  await ann.page.locator('.to-end').waitFor();
  await stays(`message ${newest} arrived`);
  // The first page ends 60 messages above. Scrolling there fetches older ones, which are put above the window.
  const fetched = ann.page.waitForResponse((r) => /json\/messages\?/.test(r.url()) && /num_before=100/.test(r.url()));
  const list = ann.page.locator('.virtual');
  await list.hover();
  for (let asked = false; !asked;) {
    await ann.page.mouse.wheel(0, -600);
    asked = await Promise.race([fetched.then(() => true),
      ann.page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => done(false)); }))]);
  }
  const inWindow = () => ann.page.evaluate(() => {
    const el = [...document.querySelectorAll('[data-message]')].find((x) => x.getBoundingClientRect().top > 150);
    return { id: Number(el.dataset.message), top: el.getBoundingClientRect().top };
  });
  let before = await inWindow();
  await eventually('the list is at rest', async () => {
    const now = await inWindow();
    const rests = now.id === before.id && Math.abs(now.top - before.top) < 2;
    before = now;
    return rests;
  });
  assert.ok(before.id > ids[20] && before.id < watched, `the window is at message ${before.id}, not at the top`);
});
