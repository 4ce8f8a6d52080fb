// Reading in the own client: what messages contain, their windows, and ways through long conversations.
import assert from 'node:assert/strict';
import { eventually } from './parley.js';
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

// sound returns a WAV file with silence.
function sound() {
  const out = Buffer.alloc(44 + 800);
  out.write('RIFF', 0); out.writeUInt32LE(836, 4); out.write('WAVEfmt ', 8); out.writeUInt32LE(16, 16);
  out.writeUInt16LE(1, 20); out.writeUInt16LE(1, 22); out.writeUInt32LE(8000, 24); out.writeUInt32LE(8000, 28);
  out.writeUInt16LE(1, 32); out.writeUInt16LE(8, 34); out.write('data', 36); out.writeUInt32LE(800, 40);
  return out.fill(128, 44);
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

scene('sounds and videos have players', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, ANN);
  const wav = await upload(ann, 'bell.wav', 'audio/wav', sound());
  await say(parley, ANN, `[bell.wav](${wav})`);
  const audio = ann.page.locator('.content audio');
  await audio.waitFor();
  await eventually('the sound can be played', () => audio.evaluate((x) => x.duration > 0));
  const film = await upload(ann, 'film.webm', 'video/webm', Buffer.from('1a45dfa3', 'hex'));
  await say(parley, ANN, `[film.webm](${film})`);
  await ann.page.locator('.message_inline_video a').click();
  await ann.page.getByRole('dialog').locator('video[controls]').waitFor();
  await ann.accessible();
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

scene('read receipts name the other readers', async (s) => {
  const parley = await s.serve();
  await say(parley, BO, 'Who sees this?');
  const ann = await opened(s, parley, ANN);
  await text(ann, 'Who sees this?').waitFor();
  await eventually('Ann has read it', async () => await ann.page.locator('.message.unread').count() === 0);
  const bo = await opened(s, parley, BO);
  const named = async () => {
    await menu(bo, 'Who sees this?', 'Read by');
    const seen = bo.page.getByRole('dialog', { name: 'Read by' });
    await seen.locator('p').waitFor();
    if (await seen.getByText('Ann Lee').count()) return true;
    await bo.page.keyboard.press('Escape');
    return false;
  };
  await eventually('the window names Ann', named);
  await bo.accessible();
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
