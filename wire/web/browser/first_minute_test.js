// The first minute: hints for new users, what the owner of a new organization does first, and the demo organization.
import assert from 'node:assert/strict';
import { PASSWORD } from './parley.js';
import { scene } from './scene.js';

const hint = (p) => p.page.locator('.first-hint');

scene('a new user sees five keys until they dismiss them, on every device', async (s) => {
  const parley = await s.serveNew();
  const [bo, other] = [await s.profile(parley), await s.profile(parley)];
  for (const p of [bo, other]) {
    await p.visit('/login/?next=/');
    await p.page.getByRole('button', { name: 'Bo Park Member', exact: true }).click();
    await hint(p).waitFor();
  }
  assert.equal(await hint(bo).locator('kbd').count(), 5);
  await bo.accessible();
  await hint(bo).getByRole('button', { name: 'Do not show this again' }).click();
  await hint(bo).waitFor({ state: 'detached' });
  await hint(other).waitFor({ state: 'detached' }); // by the event, without loading the page
  await other.page.reload();
  await other.page.locator('.view-header').first().waitFor();
  assert.equal(await hint(other).count(), 0);
});

scene('the owner of a new organization is told what to do first', async (s) => {
  const parley = await s.serveNew('--open-organizations', '--url', 'http://chat.localhost:PORT');
  const boss = await s.profile(parley);
  await boss.visit('/new/');
  await boss.fill({ 'Email address': 'boss@example.net', 'Name of the organization': 'The Garden',
    'Name in the address of the organization': 'garden' });
  await boss.press('Continue');
  await boss.visit(await parley.link('boss@example.net', '/accounts/new_organization/'));
  await boss.fill({ 'Full name': 'The Boss', Password: PASSWORD });
  await boss.press('Create the organization');
  await hint(boss).waitFor();
  assert.equal(await hint(boss).getAttribute('aria-label'), 'Start your organization');
  await boss.accessible();
  await hint(boss).getByRole('button', { name: 'Connect a phone' }).click();
  await boss.page.getByRole('dialog').getByText(`http://garden.chat.localhost:${parley.port}`).waitFor();
  await boss.accessible();
  await boss.page.keyboard.press('Escape');
  await hint(boss).getByRole('link', { name: 'Create a channel' }).click();
  await boss.page.getByRole('dialog', { name: 'New channel' }).waitFor();
  await boss.page.keyboard.press('Escape');
  await hint(boss).getByRole('button', { name: 'Do not show this again' }).click();
  await boss.page.getByRole('region', { name: 'Five keys to begin with' }).waitFor();
});

scene('the demo organization shows each kind of content', async (s) => {
  const parley = await s.serveNew('--demo-content');
  const ann = await s.profile(parley);
  await ann.visit('/login/?next=/');
  assert.equal(await ann.page.locator('.demo img').count(), 10);
  await ann.accessible();
  await ann.page.getByRole('button', { name: 'Ann Lee Member', exact: true }).click();
  await ann.page.getByText('release 1.9').first().waitFor();
  await ann.page.goto('/#narrow/channel/2-engineering/topic/.E2.9C.94.20map.20tiles');
  for (const part of ['.codehilite', '.katex-display', 'table']) {
    await ann.page.locator(`.content ${part}`).first().waitFor();
  }
  await ann.page.goto('/#narrow/channel/1-general/topic/where.20do.20we.20meet.3F');
  await ann.page.getByText('7 people have voted.').waitFor();
  await ann.page.goto('/#narrow/channel/5-design/topic/route.20card');
  await ann.page.locator('.content img').first().waitFor();
  await ann.accessible();
});
