// The clock of a computer is wrong, or is set while the page is open: the client goes by the server's clock.
import assert from 'node:assert/strict';
import { ANN, BO, OLIVE, messageMenu, registered, say, text, userID } from './client.js';
import { eventually } from './parley.js';
import { scene } from './scene.js';

const HOUR = 3_600_000;
const TOPIC = '#narrow/channel/1-general/topic/lunch';

// wrongClock makes the clock of the page differ by milliseconds, which window.clockOff can change.
const wrongClock = (off) => `{
  const Real = Date;
  window.clockOff = ${off};
  window.Date = class extends Real {
    constructor(...x) { if (x.length) super(...x); else super(Real.now() + window.clockOff); }
    static now() { return Real.now() + window.clockOff; }
  };
}`;

const set = (p, off) => p.page.evaluate((x) => { window.clockOff = x; }, off);

scene('a clock that is wrong, or is set, changes neither times nor presence nor sending', async (s) => {
  const parley = await s.serve();
  await parley.call(OLIVE, 'PATCH', 'realm', { message_content_edit_limit_seconds: '600' });
  const [ann, bo] = [await s.profile(parley), await s.profile(parley)];
  // Ann's clock is a day and an hour ahead, that of Bo an hour behind.
  for (const [p, email, off] of [[ann, ANN, 25 * HOUR], [bo, BO, -HOUR]]) {
    await parley.setPassword(email);
    await p.page.addInitScript(wrongClock(off));
    await p.logIn(email);
    await p.page.goto(`/${TOPIC}`);
    await p.page.locator('.view-header').waitFor();
  }
  const write = async (p, content) => {
    if (await p.page.locator('.compose-open').count()) await p.page.locator('.compose-open').click();
    const field = p.page.getByRole('textbox', { name: 'Message', exact: true });
    await field.fill(content);
    await field.press('Control+Enter');
    await text(p, content).waitFor();
  };
  const days = async (p) => (await p.page.locator('.day-row').allInnerTexts()).map((x) => x.trim());
  const present = (p, name) => p.page.locator('.right .person', { hasText: name }).locator('.presence.active').waitFor();
  await write(ann, 'One');
  await text(bo, 'One').waitFor();
  await write(bo, 'Two');
  await text(ann, 'Two').waitFor();
  for (const p of [ann, bo]) {
    await p.page.locator('.day-row').last().waitFor();
    assert.equal((await days(p)).at(-1), 'Today');
    await present(p, p === ann ? 'Bo Park' : 'Ann Lee');
  }
  // The message is younger than the limit of edits, although Ann's clock says otherwise.
  await messageMenu(ann, 'One', 'Edit');
  await ann.page.getByRole('textbox', { name: 'Text of the message' }).fill('One and a half');
  await ann.page.getByRole('button', { name: 'Save', exact: true }).click();
  await text(bo, 'One and a half').waitFor();
  // Both clocks are set while the pages are open: Bo's far ahead, Ann's back.
  await set(bo, 30 * HOUR);
  await set(ann, -2 * HOUR);
  await bo.page.getByRole('textbox', { name: 'Message', exact: true }).pressSequentially('I think');
  await ann.page.locator('.typing', { hasText: 'Bo Park is typing' }).waitFor();
  await say(parley, OLIVE, 'Three');
  for (const p of [ann, bo]) {
    await text(p, 'Three').waitFor();
    assert.equal((await days(p)).at(-1), 'Today');
    await present(p, p === ann ? 'Bo Park' : 'Ann Lee');
  }
  // "In one hour" is one hour from now on the server, for a message and for a reminder.
  const from = Date.now();
  await write(ann, 'Four');
  await ann.page.getByRole('textbox', { name: 'Message', exact: true }).fill('Later');
  await ann.page.getByRole('button', { name: 'More ways to send' }).click();
  await ann.page.getByRole('menuitem', { name: 'Send later' }).click();
  await ann.page.getByRole('button', { name: 'In one hour' }).click();
  await ann.page.getByRole('button', { name: 'Schedule', exact: true }).click();
  await messageMenu(ann, 'Three', 'Remind me');
  await ann.page.getByRole('button', { name: 'In one hour' }).click();
  await ann.page.getByRole('dialog').getByRole('button', { name: 'Remind me' }).click();
  const stored = await eventually('both are stored', async () => {
    const { scheduled_messages: later, reminders } = await registered(parley, ANN, 'scheduled_messages', 'reminders');
    return later.length === 1 && reminders.length === 1 ? [...later, ...reminders] : null;
  });
  for (const x of stored) {
    const off = x.scheduled_delivery_timestamp * 1000 - from - HOUR;
    assert.ok(Math.abs(off) < 90_000, `it is sent ${off / 1000} seconds late`);
  }
});

scene('a computer that slept for an hour goes on with its queue at once', async (s) => {
  const parley = await s.serve();
  const ann = await s.profile(parley);
  await parley.setPassword(ANN);
  await ann.page.clock.install();
  await ann.logIn(ANN);
  await ann.page.goto(`/${TOPIC}`);
  await ann.page.locator('.compose-open').waitFor();
  const registrations = [];
  ann.page.on('request', (r) => { if (r.url().endsWith('/json/register')) registrations.push(r.url()); });
  ann.expect(/net::ERR_INTERNET_DISCONNECTED/);
  await ann.context.setOffline(true); // the network is away while it sleeps
  await say(parley, BO, 'While you slept');
  await ann.page.clock.fastForward(HOUR);
  await ann.context.setOffline(false);
  await text(ann, 'While you slept').waitFor();
  await ann.page.clock.runFor(61_000); // presence is told again
  await eventually('Ann is present', async () => {
    const { presence } = await parley.call(BO, 'GET', `users/${await userID(parley, ANN)}/presence`);
    return presence.aggregated.status === 'active';
  });
  await ann.page.locator('.compose-open').click();
  const field = ann.page.getByRole('textbox', { name: 'Message', exact: true });
  await field.fill('Good morning');
  await field.press('Control+Enter');
  await ann.page.clock.runFor(1000);
  await text(ann, 'Good morning').waitFor();
  assert.deepEqual(registrations, []);
});
