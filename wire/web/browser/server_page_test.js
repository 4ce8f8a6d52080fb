// The page about the server: its figures are live, only owners and operators see it.
import assert from 'node:assert/strict';
import { eventually, freePort } from './parley.js';
import { LOST, scene } from './scene.js';

const OWNER = 'olive@example.org';
const CHARTS = ['Send requests', 'Deliveries', 'Requests', 'Delivery lag', 'Event queues', 'Parked polls'];

const say = (parley, content) => parley.call('ann@example.org', 'POST', 'messages', { type: 'stream', to: 'general',
  topic: 'lunch', content });

// row returns the value and the growth that the table shows under a name.
async function row(p, name) {
  const head = p.page.getByRole('rowheader', { name, exact: true });
  const cells = p.page.getByRole('row').filter({ has: head }).getByRole('cell');
  return (await cells.allInnerTexts()).map(Number);
}

// points returns the points of a chart.
async function points(p, name) {
  const caption = p.page.locator('figcaption', { hasText: new RegExp(`^${name} `) });
  const chart = p.page.locator('figure').filter({ has: caption });
  const text = await chart.locator('polyline').getAttribute('points');
  return text ? text.split(' ').map((x) => x.split(',').map(Number)) : [];
}

// live checks that the figures follow what happens on the server, without loading the page again.
async function live(parley, p) {
  let loads = 0;
  p.page.on('load', () => { loads += 1; });
  assert.equal(await p.heading(), 'Server');
  assert.equal(await p.page.locator('[data-field="health"]').innerText(), 'ok');
  await p.page.locator('figure').first().waitFor();
  const captions = await p.page.locator('figcaption').allInnerTexts();
  assert.deepEqual(captions.map((x) => x.replace(/ [\d.]+.*$/, '')), CHARTS);
  const [before] = await row(p, 'Send requests');
  for (let i = 0; i < 5; i++) await say(parley, `message ${i}`);
  await eventually('the messages are counted', async () => (await row(p, 'Send requests'))[0] >= before + 5);
  await eventually('the chart has a peak', async () => {
    const drawn = await points(p, 'Send requests');
    return drawn.length > 1 && new Set(drawn.map(([, y]) => y)).size > 1;
  });
  const turns = await p.page.locator('[data-rows="turns"] tr').allInnerTexts();
  assert.ok(turns.some((x) => x.startsWith('POST /messages')));
  assert.ok(await p.page.locator('[data-rows="bounds"] tr').count() > 20, 'the bounds are listed');
  assert.equal(loads, 0, 'the page was loaded again');
}

scene("an owner sees the server's figures change, also after the server was killed", async (s) => {
  const parley = await s.serve();
  await parley.setPassword(OWNER);
  const olive = await s.profile(parley);
  await olive.logIn(OWNER);
  await olive.visit('/admin/server');
  await live(parley, olive);
  await olive.accessible();
  olive.expect(LOST);
  const stopped = olive.page.getByRole('alert').filter({ hasText: 'The numbers are not updated' });
  await parley.kill();
  await stopped.waitFor();
  await olive.accessible();
  await parley.start();
  await stopped.waitFor({ state: 'hidden' });
  const [before] = await row(olive, 'Send requests');
  await say(parley, 'after the restart');
  await eventually('the message is counted', async () => (await row(olive, 'Send requests'))[0] > before);
});

scene('the page about the server refuses everybody else, also an owner who stops being one', async (s) => {
  const parley = await s.serve();
  const [ann, ada] = ['ann@example.org', 'ada@example.org'];
  await parley.setPassword(OWNER, ann, ada);
  const visitor = await s.profile(parley);
  await visitor.visit('/admin/server');
  assert.equal(visitor.path(), '/login/?next=%2Fadmin%2Fserver');
  assert.equal((await visitor.request('GET', '/admin/server.json')).status, 401);
  const refused = /Only owners of the server's main organization/;
  for (const email of [ann, ada]) {
    const p = await s.profile(parley);
    await p.logIn(email);
    await p.visit('/admin/server', 403);
    assert.match(await p.alert(), refused);
    assert.equal(await p.page.getByRole('table').count(), 0);
    await p.accessible();
    const { status, json, text } = await p.request('GET', '/admin/server.json');
    assert.equal(status, 403);
    assert.equal(json.code, 'PERMISSION_DENIED');
    assert.doesNotMatch(text, /parley_|bounds/);
  }
  await parley.call(OWNER, 'PATCH', `users/${(await parley.call(ada, 'GET', 'users/me')).user_id}`, { role: '100' });
  const olive = await s.profile(parley);
  await olive.logIn(OWNER);
  await olive.visit('/admin/server');
  await olive.page.locator('figure').first().waitFor();
  olive.expect(/Failed to load resource: .* status of 403 /);
  await parley.call(ada, 'PATCH', `users/${(await parley.call(OWNER, 'GET', 'users/me')).user_id}`, { role: '200' });
  await olive.page.getByRole('alert').filter({ hasText: refused }).waitFor();
  assert.equal(await olive.page.getByRole('table').count(), 0);
});

scene('an operator sees the page about the server without a login', async (s) => {
  const debug = await freePort();
  const parley = await s.serve('--debug-listen', `127.0.0.1:${debug}`);
  const p = await s.profile({ ...parley, site: `http://127.0.0.1:${debug}` });
  await p.visit('/admin/server');
  await live(parley, p);
  await p.accessible();
  await p.visit('/accounts/sessions/', 404);
});
