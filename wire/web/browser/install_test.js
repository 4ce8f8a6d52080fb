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
