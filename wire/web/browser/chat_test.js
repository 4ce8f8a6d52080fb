// The chat in the browser: two people at once, lost connections, the keyboard, and how it looks.
import assert from 'node:assert/strict';
import { eventually, sleep } from './parley.js';
import { LOST, scene } from './scene.js';

const TOPIC = '/#narrow/channel/1-general/topic/lunch';

// enter opens the chat at an address.
async function enter(s, parley, name, address) {
  const p = await s.profile(parley);
  await p.logIn(`${name}@example.org`);
  await p.page.goto(address);
  await p.page.locator('.view-header').waitFor();
  return p;
}

// texts returns the messages that a page shows, with those that are being sent.
function texts(p) {
  return p.page.locator('.message .content').allInnerTexts().then((all) => all.map((x) => x.trim()));
}

async function write(p, text) {
  const field = p.page.getByRole('textbox', { name: 'Message', exact: true });
  if (!await field.isVisible()) await p.page.locator('.compose-open').click();
  await field.fill(text);
  await field.press('Control+Enter');
}

async function shows(p, ...expected) {
  let shown;
  await eventually(`the page shows ${expected}`, async () => {
    shown = await texts(p);
    return JSON.stringify(shown) === JSON.stringify(expected);
  }).catch((err) => {
    err.message += `, but it shows ${shown}`;
    throw err;
  });
}

async function people(s, ...names) {
  const parley = await s.serve();
  await parley.setPassword(...names.map((n) => `${n}@example.org`));
  return [parley, ...await Promise.all(names.map((n) => enter(s, parley, n, TOPIC)))];
}

scene('two people talk in a topic, react, edit and delete', async (s) => {
  const [, ann, bo] = await people(s, 'ann', 'bo');
  await write(ann, 'What is for **lunch**?');
  await shows(bo, 'What is for lunch?');
  await write(bo, 'Soup.');
  await shows(ann, 'What is for lunch?', 'Soup.');
  await ann.page.locator('.message').last().hover();
  await ann.page.locator('.message').last().getByRole('button', { name: 'Add a reaction' }).first().click();
  await ann.page.getByRole('searchbox', { name: 'Search emoji' }).fill('tada');
  await ann.page.locator('.emoji-grid .current[title*="tada"]').waitFor();
  await ann.page.keyboard.press('Enter');
  await bo.page.locator('.reaction[title*="tada"]').waitFor();
  // A mouse that rests above the emoji does not choose another one than the first that is found.
  await ann.page.locator('.message').first().hover();
  await ann.page.locator('.message').first().getByRole('button', { name: 'Add a reaction' }).first().click();
  await ann.page.locator('.emoji-grid [role=option]').nth(3).hover();
  await ann.page.getByRole('searchbox', { name: 'Search emoji' }).fill('heart');
  await eventually('the grid has what was found', async () =>
    (await ann.page.locator('.emoji-grid [role=option]').nth(3).getAttribute('title')).includes('heart'));
  await ann.page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
  const found = await ann.page.locator('.emoji-grid [role=option]').first().getAttribute('title');
  await ann.page.keyboard.press('Enter');
  await bo.page.locator(`.reaction[title$="${found}"]`).waitFor();
  await bo.page.locator('.reaction[title*="tada"]').click();
  await ann.page.locator('.reaction[title*="Bo Park"]').waitFor();
  await bo.page.locator('.message').last().click();
  await bo.page.keyboard.press('e');
  const editor = bo.page.getByRole('textbox', { name: 'Text of the message' });
  await editor.fill('Soup and bread.');
  await editor.press('Control+Enter');
  await shows(ann, 'What is for lunch?', 'Soup and bread.');
  await ann.page.getByRole('button', { name: 'edited' }).waitFor();
});

scene('messages that are sent while the server is killed arrive once', async (s) => {
  const [parley, ann, bo] = await people(s, 'ann', 'bo');
  for (const p of [ann, bo]) p.expect(LOST);
  let loads = 0;
  ann.page.on('load', () => { loads += 1; });
  const sent = [];
  for (let i = 0; i < 5; i++) {
    await write(ann, `before ${i}`);
    await parley.kill();
    await write(ann, `while it is away ${i}`);
    sent.push(`before ${i}`, `while it is away ${i}`);
    await parley.start();
    await shows(ann, ...sent);
    await shows(bo, ...sent);
  }
  await eventually('nothing is being sent', async () => await ann.page.locator('.outgoing').count() === 0);
  assert.equal(loads, 0, 'the page was loaded again');
});

scene('messages that are written faster than they are sent keep their order', async (s) => {
  const [, ann, bo] = await people(s, 'ann', 'bo');
  let delay = 400; // of the first message; later ones are delayed less, so that they would overtake it
  await ann.context.route('**/json/messages', async (route) => {
    const wait = route.request().method() === 'POST' ? delay : 0;
    delay = Math.max(0, delay - 200);
    await sleep(wait);
    await route.continue();
  });
  for (const text of ['one', 'two', 'three']) await write(ann, text);
  await shows(bo, 'one', 'two', 'three');
  await shows(ann, 'one', 'two', 'three');
});

scene('after time without a network, the chat goes on where it was', async (s) => {
  const [, ann, bo] = await people(s, 'ann', 'bo');
  ann.expect(/ERR_INTERNET_DISCONNECTED/);
  await write(bo, 'one');
  await shows(ann, 'one');
  await ann.context.setOffline(true);
  await write(bo, 'two');
  await eventually('the server has the message', async () => await bo.page.locator('.outgoing').count() === 0);
  await write(ann, 'three');
  await ann.page.getByRole('alert').filter({ hasText: 'No connection' }).waitFor();
  await ann.context.setOffline(false);
  await shows(ann, 'one', 'two', 'three');
  await shows(bo, 'one', 'two', 'three');
  await eventually('the banner is gone', async () => await ann.page.locator('.banner').count() === 0);
});

scene('messages are read by looking at them, and unread ones are counted', async (s) => {
  const [parley, ann, bo] = await people(s, 'ann', 'bo');
  await ann.page.goto('/#recent');
  await ann.page.locator('h1', { hasText: 'Recent' }).waitFor(); // else the topic is still shown, and reads the message
  await write(bo, 'new');
  await ann.page.locator('.side-link', { hasText: 'general' }).locator('.count').waitFor();
  assert.match(await ann.page.title(), /^\(\d+\) /);
  await ann.page.goto(TOPIC);
  await shows(ann, 'new');
  await eventually('the message is read', async () => await ann.page.locator('.message.unread').count() === 0);
  await ann.page.locator('.message').last().click();
  await ann.page.keyboard.press('Shift+U');
  await ann.page.locator('.message.unread').waitFor();
  // A later message does not mark it as read again, as long as the user stays here.
  await write(bo, 'newer');
  await shows(ann, 'new', 'newer');
  const { messages } = await parley.call('ann@example.org', 'GET', 'messages', { anchor: 'newest', num_before: '2',
    num_after: '0', narrow: '[["channel","general"],["topic","lunch"]]' });
  assert.deepEqual(messages.map((m) => m.flags.includes('read')), [false, false]);
  await ann.page.getByRole('note').getByRole('button', { name: 'Mark as read' }).click();
  await eventually('both are read', async () => await ann.page.locator('.message.unread').count() === 0);
});

scene('messages that are marked as unread stay so in all sessions until the user comes back to them', async (s) => {
  const [parley, ann, phone, bo] = await people(s, 'ann', 'ann', 'bo');
  const unread = (p) => p.page.locator('.message.unread').count();
  const note = (p) => p.page.getByRole('note').filter({ hasText: 'does not mark messages as read' });
  const unreadOnServer = async () => {
    const { messages } = await parley.call('ann@example.org', 'GET', 'messages', { anchor: 'newest', num_before: '9',
      num_after: '0', narrow: '[["channel","general"],["topic","lunch"],["is","unread"]]', apply_markdown: 'false' });
    return messages.map((m) => m.content);
  };
  const areUnread = async (...contents) => assert.deepEqual(await unreadOnServer(), contents);
  for (const text of ['one', 'two']) await write(bo, text);
  for (const p of [ann, phone]) {
    await shows(p, 'one', 'two');
    await eventually('they are read', async () => await unread(p) === 0);
  }
  await eventually('the server knows that', async () => (await unreadOnServer()).length === 0);
  await phone.page.reload(); // it has nothing more to tell the server
  await shows(phone, 'one', 'two');
  await ann.page.locator('.message', { hasText: 'two' }).click();
  await ann.page.keyboard.press('Shift+U');
  for (const p of [ann, phone]) {
    await note(p).waitFor();
    assert.equal(await unread(p), 1);
  }
  await areUnread('two');
  await ann.page.reload();
  await shows(ann, 'one', 'two');
  await note(ann).waitFor();
  await areUnread('two');
  await ann.page.goto('/#inbox');
  await ann.page.locator('.inbox-entry', { hasText: 'lunch' }).locator('.count', { hasText: /^1$/ }).waitFor();
  await ann.page.reload();
  await ann.page.locator('.inbox-entry', { hasText: 'lunch' }).locator('.count', { hasText: /^1$/ }).waitFor();
  await areUnread('two');
  await ann.page.locator('.inbox-entry', { hasText: 'lunch' }).click();
  for (const p of [ann, phone]) await eventually('they are read again', async () => await unread(p) === 0);
  await note(phone).waitFor({ state: 'detached' });
  await write(bo, 'three');
  await shows(ann, 'one', 'two', 'three');
  for (const p of [ann, phone]) await eventually('the new one is read', async () => await unread(p) === 0);
});

scene('direct messages, stars and mentions have their views', async (s) => {
  const [, ann, bo] = await people(s, 'ann', 'bo');
  const id = await bo.page.evaluate(async () => {
    const { user_id } = await (await fetch('/json/users/ann@example.org')).json().then((x) => x.user);
    return user_id;
  });
  await bo.page.goto(`/#narrow/dm/${id}`);
  await write(bo, 'Hello @**Ann Lee**');
  await ann.page.goto('/#inbox');
  await ann.page.locator('.inbox-entry', { hasText: 'Bo Park' }).click();
  await shows(ann, 'Hello @Ann Lee');
  await ann.page.locator('.message').click();
  await ann.page.keyboard.press('Control+s');
  await ann.page.goto('/#narrow/is/starred');
  await shows(ann, 'Hello @Ann Lee');
  await ann.page.goto('/#narrow/is/mentioned');
  await shows(ann, 'Hello @Ann Lee');
});
