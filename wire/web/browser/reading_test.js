// Reading in the own client: what messages contain, their windows, and ways through long conversations.
import assert from 'node:assert/strict';
import { eventually } from './parley.js';
import { wav } from './media.js';
import { scene } from './scene.js';

const TOPIC = '#narrow/channel/1-general/topic/lunch';
const ANN = 'ann@example.org';
const BO = 'bo@example.org';

async function opened(s, parley, email, address = TOPIC, options = {}) {
  await parley.setPassword(email);
  const p = await s.profile(parley, options);
  await p.logIn(email);
  await p.page.goto(`/${address}`);
  await p.page.locator('.view-header').waitFor();
  return p;
}

const say = (parley, email, content, topic = 'lunch') =>
  parley.call(email, 'POST', 'messages', { type: 'stream', to: 'general', topic, content, read_by_sender: 'true' });

const text = (p, has) => p.page.locator('.message .content', { hasText: has });

async function menu(p, message, item) {
  const row = p.page.locator('.message', { hasText: message }).last();
  await row.hover();
  await row.getByRole('button', { name: 'Message actions' }).click();
  await p.page.getByRole('menuitem', { name: item }).click();
}

// upload sends a file with the profile's session and returns its address.
async function upload(p, name, mimeType, buffer) {
  const token = await p.page.locator('meta[name="csrf-token"]').getAttribute('content');
  const answer = await p.context.request.post('/json/user_uploads', { headers: { 'X-CSRFToken': token,
    referer: p.server.site }, multipart: { file: { name, mimeType, buffer } } });
  const { uri, url } = await answer.json();
  return url ?? uri;
}

// picture returns a PNG of one colour.
async function picture(p, colour) {
  const data = await p.page.evaluate((fill) => {
    const canvas = Object.assign(document.createElement('canvas'), { width: 120, height: 80 });
    const pen = canvas.getContext('2d');
    pen.fillStyle = fill;
    pen.fillRect(0, 0, 120, 80);
    return canvas.toDataURL('image/png').split(',')[1];
  }, colour);
  return Buffer.from(data, 'base64');
}

// film records a second of a moving square.
async function film(p) {
  const data = await p.page.evaluate(async () => {
    const canvas = Object.assign(document.createElement('canvas'), { width: 64, height: 48 });
    const pen = canvas.getContext('2d');
    const recorder = new MediaRecorder(canvas.captureStream(30), { mimeType: 'video/webm' });
    const parts = [];
    recorder.ondataavailable = (e) => parts.push(e.data);
    const ended = new Promise((done) => { recorder.onstop = done; });
    recorder.start();
    const from = performance.now();
    while (performance.now() - from < 1000) {
      pen.fillStyle = `hsl(${performance.now() % 360} 80% 50%)`;
      pen.fillRect(0, 0, 64, 48);
      await new Promise(requestAnimationFrame);
    }
    recorder.stop();
    await ended;
    return [...new Uint8Array(await new Blob(parts).arrayBuffer())];
  });
  return Buffer.from(data);
}

scene('formulas are drawn with the served stylesheet and its fonts', async (s) => {
  const parley = await s.serve();
  await say(parley, BO, 'The root $$\\sqrt{x^2}$$');
  const ann = await opened(s, parley, ANN);
  await ann.page.locator('.content .katex').waitFor();
  await eventually('the stylesheet is used', () => ann.page.evaluate(() =>
    getComputedStyle(document.querySelector('.katex')).fontFamily.includes('KaTeX_Main')));
  await eventually('a font is loaded', () => ann.page.evaluate(() =>
    [...document.fonts].some((f) => f.family.includes('KaTeX') && f.status === 'loaded')));
  await ann.accessible();
});

scene('a spoiler opens and closes by mouse and by keyboard', async (s) => {
  const parley = await s.serve();
  await say(parley, BO, '```spoiler The end\nThe butler did it\n```');
  const ann = await opened(s, parley, ANN);
  const head = ann.page.getByRole('button', { name: 'The end' });
  const body = ann.page.getByText('The butler did it');
  await head.waitFor();
  assert.equal(await body.isVisible(), false);
  await head.click();
  await body.waitFor();
  await ann.accessible();
  await head.press('Enter');
  await body.waitFor({ state: 'hidden' });
  assert.equal(await head.getAttribute('aria-expanded'), 'false');
});

scene('the text of a code block is copied', async (s) => {
  const parley = await s.serve();
  await say(parley, BO, '```go\nfunc main() {}\n```');
  const ann = await opened(s, parley, ANN, TOPIC, { permissions: ['clipboard-read', 'clipboard-write'] });
  const block = ann.page.locator('.codehilite');
  await block.hover();
  await block.getByRole('button', { name: 'Copy' }).click();
  await block.getByRole('button', { name: 'Copied' }).waitFor();
  assert.equal((await ann.page.evaluate(() => navigator.clipboard.readText())).trim(), 'func main() {}');
});

scene('images stand in a grid, and the viewer goes through them', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, ANN);
  const links = [];
  for (const colour of ['red', 'green']) {
    links.push(`[${colour}.png](${await upload(ann, `${colour}.png`, 'image/png', await picture(ann, colour))})`);
  }
  await say(parley, ANN, links.join('\n'));
  await eventually('both are in one grid', async () => await ann.page.locator('.image-grid .message_inline_image img').count() === 2);
  await ann.page.locator('.image-grid .message_inline_image a').first().click();
  const viewer = ann.page.getByRole('dialog', { name: 'red.png' });
  await viewer.waitFor();
  await ann.accessible();
  await ann.page.locator('.lightbox-stage').press('ArrowRight');
  await ann.page.getByRole('dialog', { name: 'green.png' }).waitFor();
  assert.equal(await ann.page.getByRole('button', { name: 'Next image' }).isDisabled(), true);
  await ann.page.keyboard.press('Escape');
  await eventually('the viewer is closed', async () => await ann.page.getByRole('dialog').count() === 0);
});

scene('sounds and videos are played with the keyboard, and keep their position', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, ANN);
  const sound = await upload(ann, 'bell.wav', 'audio/wav', wav(30));
  const { id } = await say(parley, ANN, `[bell.wav](${sound})`);
  const audio = ann.page.locator('.content audio');
  await audio.waitFor();
  await eventually('the sound can be played', () => audio.evaluate((x) => x.duration > 29));
  const at = () => audio.evaluate((x) => x.currentTime);
  // The keys of the player are not those of the list.
  await audio.focus();
  await ann.page.keyboard.press('Space');
  await eventually('it plays', () => audio.evaluate((x) => !x.paused && x.currentTime > 0));
  await ann.page.keyboard.press('Space');
  await eventually('it is paused', () => audio.evaluate((x) => x.paused));
  await audio.evaluate((x) => { x.currentTime = 12; });
  await eventually('it is at the place', async () => Math.abs(await at() - 12) < 0.5);
  // An edit draws the message again; another view and the way back too.
  await parley.call(ANN, 'PATCH', `messages/${id}`, { content: `Listen: [bell.wav](${sound})` });
  await text(ann, 'Listen').waitFor();
  await eventually('the new player is at the same place', async () => Math.abs(await at() - 12) < 0.5);
  await ann.page.goto('/#inbox');
  await ann.page.goto(`/${TOPIC}`);
  await eventually('also after another view', async () => Math.abs(await at() - 12) < 0.5);
  const video = await upload(ann, 'film.webm', 'video/webm', await film(ann));
  await say(parley, ANN, `[film.webm](${video})`);
  await ann.page.locator('.message_inline_video a').click();
  const player = ann.page.getByRole('dialog').locator('video[controls]');
  await eventually('the video can be played', () => player.evaluate((x) => x.readyState > 1));
  await player.focus();
  await ann.page.keyboard.press('Space');
  await eventually('it plays', () => player.evaluate((x) => x.currentTime > 0.2));
  await player.evaluate((x) => x.pause());
  const paused = await player.evaluate((x) => x.currentTime);
  await ann.accessible();
  await ann.page.keyboard.press('Escape');
  await ann.page.locator('.message_inline_video a').click();
  await eventually('it goes on there', () => player.evaluate((x, from) => Math.abs(x.currentTime - from) < 0.2, paused));
});

scene('the edit history shows the versions of a message', async (s) => {
  const parley = await s.serve();
  const { id } = await say(parley, BO, 'Soup at noon');
  const ann = await opened(s, parley, ANN);
  await text(ann, 'Soup at noon').waitFor();
  await parley.call(BO, 'PATCH', `messages/${id}`, { content: 'Soup at one' });
  await ann.page.getByRole('button', { name: 'edited' }).click();
  const history = ann.page.getByRole('dialog', { name: 'Edit history' });
  await eventually('two versions', async () => await history.locator('section').count() === 2);
  await history.getByText('noon').first().waitFor();
  await ann.accessible();
});

scene('read receipts name the readers, as they read', async (s) => {
  const parley = await s.serve();
  const { id } = await say(parley, BO, 'Who sees this?');
  const ann = await opened(s, parley, ANN);
  await text(ann, 'Who sees this?').waitFor();
  await eventually('Ann has read it', async () => await ann.page.locator('.message.unread').count() === 0);
  const bo = await opened(s, parley, BO);
  const seen = bo.page.getByRole('dialog', { name: 'Read by' });
  const names = async (...wanted) => {
    await menu(bo, 'Who sees this?', 'Read by');
    await seen.locator('p').waitFor();
    const found = await seen.locator('li').allInnerTexts();
    if (found.length === wanted.length && wanted.every((x, i) => found[i].includes(x))) return true;
    await bo.page.keyboard.press('Escape');
    return false;
  };
  await eventually('the window names Ann', () => names('Ann Lee'));
  await bo.accessible();
  await bo.page.keyboard.press('Escape');
  await parley.call('olive@example.org', 'POST', 'messages/flags', { op: 'add', flag: 'read', messages: `[${id}]` });
  await eventually('the window names both', () => names('Ann Lee', 'Olive Owner'));
  await seen.getByRole('button', { name: 'Olive Owner' }).click();
  await seen.getByRole('dialog', { name: 'Olive Owner' }).waitFor(); // the card is in front of the window
  await bo.accessible();
  await bo.page.keyboard.press('Escape');
  await seen.getByRole('button', { name: 'Olive Owner' }).click();
  await seen.getByRole('button', { name: 'Direct message' }).click();
  await seen.waitFor({ state: 'detached' });
  assert.match(bo.page.url(), /#narrow\/dm\/.*Olive/);
});

scene('a long topic opens at the first unread message, and buttons lead to the newest and back', async (s) => {
  const parley = await s.serve();
  await parley.call(ANN, 'PATCH', 'settings', { web_mark_read_on_scroll_policy: '3' }); // only by hand
  const ids = [];
  for (let i = 0; i < 50; i++) ids.push((await say(parley, BO, `line ${i}\n\nand more of it`)).id);
  await parley.call(ANN, 'POST', 'messages/flags', { op: 'add', flag: 'read', messages: JSON.stringify(ids.slice(0, 20)) });
  const ann = await opened(s, parley, ANN);
  const inWindow = async (what) => {
    const box = await text(ann, `line ${what}\n`).or(ann.page.locator('.message .content', { hasText: new RegExp(`^line ${what}\\s`) })).first().boundingBox().catch(() => null);
    return box !== null && box.y >= 0 && box.y < ann.page.viewportSize().height;
  };
  await eventually('the first unread one is shown', () => inWindow(20));
  await ann.page.locator('.to-end').click();
  await eventually('the newest is shown', () => inWindow(49));
  await eventually('the button is gone', async () => await ann.page.locator('.to-end').count() === 0);
  await ann.page.getByRole('button', { name: 'Actions of this view' }).click();
  await ann.page.getByRole('menuitem', { name: 'First unread message' }).click();
  await eventually('the first unread one is shown again', () => inWindow(20));
  await ann.page.getByRole('button', { name: 'Actions of this view' }).click();
  await ann.page.getByRole('menuitem', { name: 'Mark all as read' }).click();
  await eventually('all is read', async () => await ann.page.locator('.message.unread').count() === 0);
  await ann.page.getByRole('button', { name: 'Actions of this view' }).click();
  await ann.page.getByRole('menuitem', { name: 'First unread message' }).click();
  await ann.page.getByText('All messages are read.').waitFor();
});

scene('a new message below the window is announced by the button', async (s) => {
  const parley = await s.serve();
  for (let i = 0; i < 30; i++) await say(parley, ANN, `line ${i}\n\nand more of it`);
  const ann = await opened(s, parley, ANN);
  await text(ann, 'line 29').waitFor();
  await ann.page.locator('.message').last().click();
  await ann.page.keyboard.press('Home');
  await ann.page.locator('.to-end', { hasText: 'Newest messages' }).waitFor();
  await say(parley, BO, 'the very newest');
  await ann.page.locator('.to-end', { hasText: '1 new message' }).click();
  await text(ann, 'the very newest').waitFor();
});

scene('a link to a message opens the conversation there', async (s) => {
  const parley = await s.serve();
  const { id } = await say(parley, BO, 'the one that matters');
  for (let i = 0; i < 40; i++) await say(parley, BO, `later ${i}`);
  const ann = await opened(s, parley, ANN, `${TOPIC}/near/${id}`, { permissions: ['clipboard-read', 'clipboard-write'] });
  const row = ann.page.locator('.message.selected', { hasText: 'the one that matters' });
  await row.waitFor();
  await menu(ann, 'the one that matters', 'Copy link');
  await ann.page.getByText('Link copied.').waitFor();
  assert.match(await ann.page.evaluate(() => navigator.clipboard.readText()), new RegExp(`lunch/near/${id}$`));
});

scene('a message is quoted, and the quotation links to it', async (s) => {
  const parley = await s.serve();
  await say(parley, BO, 'Bread or rice?');
  const ann = await opened(s, parley, ANN);
  await menu(ann, 'Bread or rice?', 'Quote and reply');
  const field = ann.page.getByRole('textbox', { name: 'Message', exact: true });
  await eventually('the quotation is in the box', async () => (await field.inputValue()).includes('Bread or rice?'));
  await field.press('Control+Enter');
  await ann.page.locator('.content blockquote', { hasText: 'Bread or rice?' }).waitFor();
});

scene('a custom status and the role are on the card of a user', async (s) => {
  const parley = await s.serve();
  await parley.call(BO, 'POST', 'users/me/status', { status_text: 'On a boat' });
  await say(parley, BO, 'Ahoy');
  const ann = await opened(s, parley, ANN);
  await ann.page.getByRole('button', { name: 'About Bo Park' }).click();
  const card = ann.page.getByRole('dialog', { name: 'Bo Park' });
  await card.getByText('On a boat').waitFor();
  await ann.accessible();
  await parley.call(BO, 'POST', 'users/me/status', { status_text: 'On land' });
  await card.getByText('On land').waitFor();
});

scene('a muted user disappears from views and comes back', async (s) => {
  const parley = await s.serve();
  await say(parley, BO, 'Can you hear me?');
  const ann = await opened(s, parley, ANN);
  await text(ann, 'Can you hear me?').waitFor();
  const { user_id: id } = await parley.call(BO, 'GET', 'users/me');
  await ann.page.goto(`/#user/${id}`);
  await ann.page.getByRole('button', { name: 'Mute user' }).click();
  await eventually('the message is hidden', async () => await text(ann, 'Can you hear me?').count() === 0);
  await ann.page.getByRole('button', { name: 'Unmute user' }).click();
  await text(ann, 'Can you hear me?').waitFor();
});

scene('the keyboard moves through messages, and the list follows', async (s) => {
  const parley = await s.serve();
  for (let i = 0; i < 30; i++) await say(parley, ANN, `line ${i}\n\nand more of it`);
  const ann = await opened(s, parley, ANN);
  const chosen = (what) => ann.page.locator('.message.selected', { hasText: new RegExp(`line ${what}\\b`) }).waitFor();
  await chosen(29);
  await ann.page.keyboard.press('Home');
  await chosen(0);
  await ann.page.keyboard.press('j');
  await ann.page.keyboard.press('ArrowDown');
  await chosen(2);
  await ann.page.keyboard.press('k');
  await chosen(1);
  await ann.page.keyboard.press('End');
  await chosen(29);
  await eventually('the end is shown', async () => await ann.page.locator('.to-end').count() === 0);
});
