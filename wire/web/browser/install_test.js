// The installed client: manifest, service worker, and the page for times without a connection.
import assert from 'node:assert/strict';
import { eventually } from './parley.js';
import { scene } from './scene.js';

// installed opens the chat in a profile with service workers, and waits until the worker controls the page.
async function installed(s, parley) {
  await parley.setPassword('ann@example.org');
  const ann = await s.profile(parley, { serviceWorkers: 'allow' });
  await ann.logIn('ann@example.org');
  await ann.page.goto('/#inbox');
  await ann.page.locator('.view-header').waitFor();
  await eventually('the worker controls the page', () => ann.page.evaluate(() => navigator.serviceWorker.controller !== null));
  return ann;
}

scene('the client can be installed: manifest, icon and service worker', async (s) => {
  const parley = await s.serve();
  const ann = await installed(s, parley);
  const address = await ann.page.locator('link[rel=manifest]').getAttribute('href');
  const { json, headers } = await ann.request('GET', address);
  assert.match(headers['content-type'], /^application\/manifest\+json/);
  assert.equal(json.display, 'standalone');
  assert.ok(json.name);
  assert.equal((await ann.request('GET', json.icons[0].src)).status, 200);
  const cdp = await ann.context.newCDPSession(ann.page);
  const { errors } = await cdp.send('Page.getAppManifest');
  assert.deepEqual(errors, []);
});

scene('the service worker stores files of the first screen, nothing of the user', async (s) => {
  const parley = await s.serve();
  const ann = await installed(s, parley);
  const stored = await ann.page.evaluate(async () => {
    const out = [];
    for (const name of await caches.keys()) {
      for (const r of await (await caches.open(name)).keys()) out.push(new URL(r.url).pathname);
    }
    return out;
  });
  assert.ok(stored.includes('/offline'), String(stored));
  assert.ok(stored.some((x) => /\/app-.*\.js$/.test(x)), String(stored));
  assert.deepEqual(stored.filter((x) => x !== '/offline' && !x.startsWith('/static/parley/')), []);
});

scene('without a connection the page says so, and comes back with it', async (s) => {
  const parley = await s.serve();
  const ann = await installed(s, parley);
  ann.expect(/ERR_|Failed to fetch/);
  await parley.kill();
  await ann.page.goto('/?offline');
  assert.equal(await ann.heading(), 'No connection');
  await ann.accessible();
  await parley.start();
  await ann.page.getByRole('link', { name: 'Try again' }).click();
  await ann.page.locator('.view-header').waitFor();
});

// BROWSER_SUBSCRIPTION stands for the subscription that the push service of the browser's maker gives: it cannot be
// reached here. The keys are those of RFC 8291.
function BROWSER_SUBSCRIPTION() {
  let current = null;
  const subscription = {
    endpoint: 'https://push.example.com/send/1',
    toJSON: () => ({ endpoint: 'https://push.example.com/send/1', keys: { auth: 'BTBZMqHH6r4Tts7J_aSIgg',
      p256dh: 'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4' } }),
    unsubscribe: async () => { current = null; return true; },
  };
  PushManager.prototype.getSubscription = async () => current;
  PushManager.prototype.subscribe = async (options) => {
    globalThis.subscribedWith = options;
    return (current = subscription);
  };
}

scene('notifications while no page is open: the browser subscribes, and shows one until it is read', async (s) => {
  const parley = await s.serve();
  await parley.setPassword('ann@example.org');
  const ann = await s.profile(parley, { serviceWorkers: 'allow', permissions: ['notifications'] });
  await ann.context.addInitScript(BROWSER_SUBSCRIPTION);
  await ann.logIn('ann@example.org');
  await ann.page.goto('/#settings/notifications');
  const box = ann.page.getByLabel('Also while no page is open, in this browser');
  await box.check();
  const { application_server_key: key } = await parley.call('ann@example.org', 'GET', 'users/me/web_push');
  const used = await eventually('the browser is subscribed', () => ann.page.evaluate(() => globalThis.subscribedWith));
  assert.deepEqual(used, { userVisibleOnly: true, applicationServerKey: key });

  const cdp = await ann.context.newCDPSession(ann.page);
  const registered = new Promise((resolve) => {
    cdp.on('ServiceWorker.workerRegistrationUpdated', ({ registrations }) => registrations[0] && resolve(registrations[0]));
  });
  await cdp.send('ServiceWorker.enable');
  const { registrationId } = await registered;
  const { id } = await parley.call('bo@example.org', 'POST', 'messages', { type: 'channel', to: 'general',
    topic: 'push', content: 'soup is ready' });
  const data = JSON.stringify({ type: 'test', title: 'Bo Park', body: 'soup is ready', tag: `message ${id}`, hash: `#narrow/id/${id}` });
  await cdp.send('ServiceWorker.deliverPushMessage', { origin: parley.site, registrationId, data });
  const shown = () => ann.page.evaluate(async () => (await (await navigator.serviceWorker.ready).getNotifications())
    .map((n) => ({ title: n.title, body: n.body, hash: n.data.hash })));
  assert.deepEqual(await eventually('the notification', async () => (await shown())[0]),
    { title: 'Bo Park', body: 'soup is ready', hash: `#narrow/id/${id}` });
  // Reading the message closes it.
  await parley.call('ann@example.org', 'POST', 'messages/flags', { op: 'add', flag: 'read', messages: `[${id}]` });
  await eventually('the notification is closed', async () => (await shown()).length === 0);

  ann.expect(/status of 400/);
  await box.uncheck();
  await eventually('the server has removed the subscription', async () => {
    const again = await ann.fetch('/json/users/me/web_push', { method: 'DELETE',
      headers: { 'x-csrftoken': (await ann.cookie('csrftoken')).value },
      body: new URLSearchParams({ endpoint: 'https://push.example.com/send/1' }) });
    return again.json.msg === 'Token does not exist';
  });
});
