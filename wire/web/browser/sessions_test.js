// Browser sessions: the page that lists them, their ends, and a server that is killed while pages are open.
import assert from 'node:assert/strict';
import { PASSWORD, eventually, sleep } from './parley.js';
import { LOST, scene } from './scene.js';

const REVOKED_MS = 5000; // a parked poll that nothing ends lasts ten times longer
const FIREFOX = { userAgent: 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0' };

// park opens an event queue in a document of the profile and polls it as clients do: an answer without events is
// followed by the next poll. The promise "poll" of the result has the status of the last answer, 0 for none, and the
// time at which the document had it.
async function park(profile) {
  await profile.visit('/json/users/me'); // an answer without a policy, so that the scene's scripts can send requests
  const token = (await profile.cookie('csrftoken')).value;
  const { json } = await profile.fetch('/json/register', { method: 'POST', headers: { 'X-CSRFToken': token },
    body: new URLSearchParams({ event_types: '["drafts"]' }) });
  assert.equal(json?.result, 'success');
  const poll = profile.page.evaluate(async (queue) => {
    let status = 200;
    while (status === 200) {
      try {
        status = (await fetch(`/json/events?queue_id=${queue}&last_event_id=-1`)).status;
      } catch {
        status = 0; // the connection ended
      }
    }
    return { status, at: Date.now() };
  }, json.queue_id);
  await sleep(300); // until the poll waits in the server
  return { poll };
}

// pending reports whether a poll has no answer yet.
function pending({ poll }) {
  return Promise.race([poll.then(() => false), sleep(50).then(() => true)]);
}

scene('of two profiles one is ended: its parked poll ends at once, the other one goes on', async (s) => {
  const parley = await s.serveNew();
  await parley.setPassword('ann@example.org');
  const [ann, lost, kept] = [await s.profile(parley), await s.profile(parley, FIREFOX), await s.profile(parley)];
  for (const p of [ann, lost, kept]) await p.logIn('ann@example.org');
  lost.expect(/status of 401/);
  const [ending, waiting] = [await park(lost), await park(kept)];
  await ann.page.reload();
  await ann.accessible();
  const items = ann.page.getByRole('listitem');
  assert.equal(await items.count(), 3);
  assert.equal(await items.filter({ hasText: '(this browser)' }).count(), 1);
  const item = items.filter({ hasText: 'Firefox on Linux' });
  assert.match(await item.innerText(), /Address: 127\.0\.0\.1/);
  let ended; // the first answer to the form shows that the session has ended
  ann.page.once('response', () => { ended = Date.now(); });
  await item.getByRole('button', { name: 'End session' }).click();
  const { status, at } = await ending.poll;
  assert.equal(status, 401);
  await eventually('the form has an answer', () => ended);
  assert.ok(at - ended < REVOKED_MS, `the poll ended ${at - ended} ms after the session`);
  await eventually('the list is shorter', async () => await items.count() === 2);
  assert.ok(await pending(waiting), 'the poll of the other session ended');
  assert.deepEqual([await ann.user(), await lost.user(), await kept.user()], ['ann@example.org', null, 'ann@example.org']);
  await lost.visit('/accounts/sessions/');
  assert.equal(lost.path(), '/login/?next=%2Faccounts%2Fsessions%2F');
  kept.expect(/status of 401/);
  await ann.press('End all other sessions');
  assert.equal((await waiting.poll).status, 401);
  assert.equal(await items.count(), 1);
  assert.equal(await ann.page.getByRole('button', { name: 'End all other sessions' }).count(), 0);
  await ann.press('End session'); // its own
  assert.equal(ann.path(), '/login/?next=%2Faccounts%2Fsessions%2F');
});

scene('the operator and a new password end sessions', async (s) => {
  const parley = await s.serveNew();
  await parley.setPassword('ann@example.org');
  const [ann, other] = [await s.profile(parley), await s.profile(parley)];
  for (const p of [ann, other]) await p.logIn('ann@example.org');
  const [own, lost] = [await park(ann), await park(other)];
  other.expect(/status of 401/);
  ann.expect(/status of 401/); // the poll that follows may be sent before the browser has its new cookie
  const before = await ann.cookie('sessionid');
  const { json } = await ann.fetch('/json/settings', { method: 'PATCH',
    headers: { 'X-CSRFToken': (await ann.cookie('csrftoken')).value },
    body: new URLSearchParams({ old_password: PASSWORD, new_password: 'green walrus 77 tent' }) });
  assert.equal(json.result, 'success', JSON.stringify(json));
  assert.equal((await lost.poll).status, 401);
  assert.notEqual((await ann.cookie('sessionid')).value, before.value);
  assert.deepEqual([await ann.user(), await other.user()], ['ann@example.org', null]);
  await other.logIn('ann@example.org', 'green walrus 77 tent');
  assert.match(await parley.operate('user', 'sessions', '--email', 'ann@example.org'), /id=/);
  await parley.operate('user', 'sessions', '--email', 'ann@example.org', '--end', 'all');
  assert.equal((await own.poll).status, 401);
  assert.deepEqual([await ann.user(), await other.user()], [null, null]);
});

scene('pages that are open during kill -9 go on after the restart', async (s) => {
  const parley = await s.serveNew();
  await parley.setPassword('ann@example.org', 'olive@example.org');
  const [ann, gone, visitor, waiting] = [await s.profile(parley), await s.profile(parley), await s.profile(parley),
    await s.profile(parley)];
  for (const p of [ann, gone, waiting]) await p.logIn('ann@example.org');
  const stolen = await gone.context.cookies();
  await gone.logOut();
  await ann.page.reload();
  await visitor.visit('/login/');
  await visitor.fill({ 'Email address': 'olive@example.org', Password: PASSWORD });
  waiting.expect(LOST);
  const parked = await park(waiting);
  await parley.kill();
  assert.equal((await parked.poll).status, 0);
  await parley.start();
  await visitor.press('Log in'); // the form that was open
  assert.equal(await visitor.user(), 'olive@example.org');
  await ann.press('End all other sessions'); // likewise
  assert.equal(await ann.page.getByRole('listitem').count(), 1);
  assert.deepEqual([await ann.user(), await waiting.user()], ['ann@example.org', null]);
  await gone.context.addCookies(stolen);
  assert.equal(await gone.user(), null, 'a session that had ended goes on after the crash');
});

scene('an event that was sent before kill -9 reaches the poll after it', async (s) => {
  const parley = await s.serveNew();
  await parley.setPassword('ann@example.org');
  const ann = await s.profile(parley);
  await ann.logIn('ann@example.org');
  await ann.visit('/json/users/me');
  const call = (method, path, form) => ann.cookie('csrftoken').then((c) => ann.fetch(`/json/${path}`, { method,
    headers: { 'X-CSRFToken': c.value }, body: new URLSearchParams(form) }));
  const { json: { queue_id: queue } } = await call('POST', 'register', { event_types: '["drafts"]' });
  const draft = '[{"type":"stream","to":[1],"topic":"t","content":"tea"}]';
  assert.equal((await call('POST', 'drafts', { drafts: draft })).json.result, 'success');
  await parley.kill();
  await parley.start();
  const { json } = await ann.fetch(`/json/events?queue_id=${queue}&last_event_id=-1`);
  assert.deepEqual(json.events.map((e) => [e.type, e.op]), [['drafts', 'add']]);
});
