// Notifications and the number on the icon. Notifications of the browser are recorded.
import assert from 'node:assert/strict';
import { eventually } from './parley.js';
import { scene } from './scene.js';

const TOPIC = '/#narrow/channel/1-general/topic/lunch';

// RECORD replaces the notifications of the browser with a record of them: no window system is here.
function RECORD(permission) {
  globalThis.shown = [];
  globalThis.sounds = [];
  globalThis.addEventListener('parley-sound', (e) => globalThis.sounds.push(e.detail));
  globalThis.Notification = class {
    static permission = permission;
    static async requestPermission() { return (this.permission = 'granted'); }
    constructor(title, options) {
      Object.assign(this, { title, body: options.body, open: true });
      globalThis.shown.push(this);
    }
    close() {
      this.open = false;
      this.onclose?.();
    }
  };
}

// enter opens the chat of a user with recorded notifications. The user has used the page, so that sounds are played.
async function enter(s, parley, name, address, permission = 'granted') {
  await parley.setPassword(`${name}@example.org`);
  const p = await s.profile(parley);
  await p.context.addInitScript(RECORD, permission);
  await p.logIn(`${name}@example.org`);
  await p.page.goto(address);
  await p.page.locator(address.includes('settings') ? '.settings-title' : '.view-header').click({ position: { x: 2, y: 2 } });
  return p;
}

const idOf = async (parley, email) => (await parley.call(email, 'GET', 'users/me')).user_id;

const toChannel = (parley, content, topic = 'lunch') => parley.call('bo@example.org', 'POST', 'messages',
  { type: 'channel', to: 'general', topic, content });
const toAnn = async (parley, content) => parley.call('bo@example.org', 'POST', 'messages',
  { type: 'direct', to: `[${await idOf(parley, 'ann@example.org')}]`, content });
const change = (parley, settings) => parley.call('ann@example.org', 'PATCH', 'settings', settings);

// shown returns the texts of the notifications so far, once the last one is there.
async function shown(p, last) {
  const all = () => p.page.evaluate(() => globalThis.shown.map((n) => n.body));
  await eventually(`a notification "${last}"`, async () => (await all()).at(-1) === last).catch(async (err) => {
    err.message += `, but there are ${JSON.stringify(await all())}`;
    throw err;
  });
  return all();
}

scene('a direct message and a mention notify, another message of a channel does not', async (s) => {
  const parley = await s.serve();
  const ann = await enter(s, parley, 'ann', '/#inbox');
  await toChannel(parley, 'not for anyone');
  await toChannel(parley, 'hello @**Ann Lee**');
  await toAnn(parley, 'only **for** you');
  const [mention, direct, ...more] = await shown(ann, 'only for you');
  assert.match(mention, /^hello @Ann/);
  assert.equal(direct, 'only for you');
  assert.deepEqual(more, []);
  const titles = await ann.page.evaluate(() => globalThis.shown.map((n) => n.title));
  assert.deepEqual(titles, ['Bo Park (#general > lunch)', 'Bo Park']);
});

scene('notifications follow the settings of the user, the channel and the topic', async (s) => {
  const parley = await s.serve();
  const ann = await enter(s, parley, 'ann', '/#inbox');
  await change(parley, { enable_desktop_notifications: 'false' });
  await toAnn(parley, 'silent');
  await change(parley, { enable_stream_desktop_notifications: 'true' });
  await toChannel(parley, 'every message of channels');
  assert.deepEqual(await shown(ann, 'every message of channels'), ['every message of channels']);
  await parley.call('ann@example.org', 'POST', 'user_topics', { stream_id: 1, topic: 'noise', visibility_policy: 1 });
  await toChannel(parley, 'muted', 'noise');
  await toChannel(parley, 'heard');
  assert.deepEqual(await shown(ann, 'heard'), ['every message of channels', 'heard']);
});

scene('the text of direct messages is hidden where the user wants that', async (s) => {
  const parley = await s.serve();
  const ann = await enter(s, parley, 'ann', '/#inbox');
  await change(parley, { pm_content_in_desktop_notifications: 'false' });
  await toAnn(parley, 'a secret');
  assert.deepEqual(await shown(ann, 'New direct message'), ['New direct message']);
});

scene('a notification is closed when its message is read elsewhere, and a click opens the message', async (s) => {
  const parley = await s.serve();
  const ann = await enter(s, parley, 'ann', '/#inbox');
  const { id } = await toAnn(parley, 'one');
  await shown(ann, 'one');
  await parley.call('ann@example.org', 'POST', 'messages/flags', { messages: `[${id}]`, op: 'add', flag: 'read' });
  await eventually('the notification is closed', () => ann.page.evaluate(() => !globalThis.shown[0].open));
  await toAnn(parley, 'two');
  await shown(ann, 'two');
  await ann.page.evaluate(() => globalThis.shown.at(-1).onclick());
  await ann.page.locator('.message').filter({ hasText: 'two' }).waitFor();
  assert.match(new URL(ann.page.url()).hash, /dm/);
  await eventually('it is closed', () => ann.page.evaluate(() => !globalThis.shown.at(-1).open));
});

scene('a message of the conversation on the screen does not notify', async (s) => {
  const parley = await s.serve();
  const ann = await enter(s, parley, 'ann', TOPIC);
  await toChannel(parley, 'seen @**Ann Lee**');
  await ann.page.locator('.message').filter({ hasText: 'seen' }).waitFor();
  await toAnn(parley, 'after it');
  assert.deepEqual(await shown(ann, 'after it'), ['after it']);
});

scene('a sound is played for direct messages, and none if sounds are off', async (s) => {
  const parley = await s.serve();
  const ann = await enter(s, parley, 'ann', '/#inbox');
  await change(parley, { enable_sounds: 'false' });
  await toAnn(parley, 'silent');
  await shown(ann, 'silent');
  await change(parley, { enable_sounds: 'true', notification_sound: 'ding' });
  await toAnn(parley, 'with sound');
  await shown(ann, 'with sound');
  await eventually('a sound was played', () => ann.page.evaluate(() => globalThis.sounds.length > 0));
  assert.deepEqual(await ann.page.evaluate(() => globalThis.sounds), ['ding']);
});

scene('the number on the icon follows the unread messages and its setting', async (s) => {
  const parley = await s.serve();
  const ann = await enter(s, parley, 'ann', '/#inbox');
  const icon = ann.page.locator('link[rel=icon]');
  const count = async () => await icon.getAttribute('data-count') ?? '0';
  await toChannel(parley, 'one');
  await toAnn(parley, 'two');
  await shown(ann, 'two');
  const before = Number(await eventually('a number is on the icon', async () => Number(await count()) >= 2 && count()));
  assert.match(await icon.getAttribute('href'), /^data:image\/png/);
  assert.match(await ann.page.title(), new RegExp(`^\\(${before}\\) `));
  await change(parley, { desktop_icon_count_display: '3' });
  await eventually('only direct messages and mentions count', async () => Number(await count()) < before);
  await change(parley, { desktop_icon_count_display: '4' });
  await eventually('the icon is plain', async () => /\.svg$/.test(await icon.getAttribute('href')));
  assert.doesNotMatch(await ann.page.title(), /^\(/);
});

scene('the user allows notifications in the settings', async (s) => {
  const parley = await s.serve();
  const ann = await enter(s, parley, 'ann', '/#settings/notifications', 'default');
  await toAnn(parley, 'too early');
  await ann.page.getByRole('button', { name: 'Allow notifications' }).click();
  await ann.page.getByText('This browser shows notifications.').waitFor();
  await toAnn(parley, 'now');
  assert.equal((await shown(ann, 'now')).at(-1), 'now');
  await ann.accessible();
});

scene('a browser that blocks notifications says so', async (s) => {
  const parley = await s.serve();
  const ann = await enter(s, parley, 'ann', '/#settings/notifications', 'denied');
  await ann.page.getByText('This browser blocks notifications.').waitFor();
});
