// The own client at the width of a phone, with touch: each way through it.
import assert from 'node:assert/strict';
import { ANN, BO, opened, say, text } from './client.js';
import { eventually } from './parley.js';
import { scene } from './scene.js';

const PHONE = { viewport: { width: 375, height: 700 }, hasTouch: true, isMobile: true };
const TOPIC = '#narrow/channel/1-general/topic/lunch';

// fits fails if the page is wider than the screen.
async function fits(p) {
  assert.ok(await p.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `too wide: ${p.page.url()}`);
}

scene('on a phone a user goes from the inbox to a topic, writes, and opens columns', async (s) => {
  const parley = await s.serve();
  await say(parley, BO, 'Soup today?');
  const ann = await opened(s, parley, ANN, '#inbox', PHONE);
  await ann.page.locator('.inbox-entry', { hasText: 'lunch' }).tap();
  await text(ann, 'Soup today?').waitFor();
  await fits(ann);
  assert.equal(await ann.page.locator('.view-header').evaluate((el) => el.getBoundingClientRect().top), 0, 'the column takes no room');
  await ann.page.locator('.compose-open').tap();
  await ann.page.getByRole('textbox', { name: 'Message', exact: true }).fill('Yes, at noon');
  await ann.page.getByRole('button', { name: 'Send', exact: true }).tap();
  await text(ann, 'Yes, at noon').waitFor();
  await ann.page.getByRole('button', { name: 'Close', exact: true }).last().tap();
  await ann.page.getByRole('button', { name: 'Channels', exact: true }).tap();
  await ann.page.getByRole('link', { name: 'Combined feed' }).tap();
  await ann.page.locator('h1', { hasText: 'Combined feed' }).waitFor();
  await eventually('the column is closed', async () => !await ann.page.locator('.left').isVisible());
  await ann.page.getByRole('button', { name: 'People', exact: true }).tap();
  await ann.page.locator('.right .person', { hasText: 'Bo Park' }).waitFor();
  await fits(ann);
  // With a keyboard, Escape leads back to the button, although the column has covered it.
  await ann.page.keyboard.press('Escape');
  await ann.page.locator('.right').waitFor({ state: 'detached' });
  await ann.page.locator('[data-people]:focus').waitFor();
});

scene('on a phone a message is reacted to, edited and searched', async (s) => {
  const parley = await s.serve();
  await say(parley, ANN, 'Bread');
  const ann = await opened(s, parley, ANN, TOPIC, PHONE);
  const row = ann.page.locator('.message', { hasText: 'Bread' });
  await text(ann, 'Bread').tap();
  await row.getByRole('button', { name: 'Add a reaction' }).last().tap();
  await ann.page.locator('.emoji-picker [role=option], .emoji-grid button').first().tap();
  await row.locator('.reaction.mine').waitFor();
  await row.getByRole('button', { name: 'Message actions' }).tap();
  await ann.page.getByRole('menuitem', { name: 'Edit' }).tap();
  await ann.page.getByRole('textbox', { name: 'Text of the message' }).fill('Fresh bread');
  await ann.page.getByRole('button', { name: 'Save', exact: true }).tap();
  await text(ann, 'Fresh bread').waitFor();
  await ann.page.locator('.search').tap();
  await ann.page.getByRole('combobox', { name: 'Search' }).fill('fresh');
  await ann.page.keyboard.press('Enter');
  await ann.page.locator('.highlight', { hasText: /fresh/i }).waitFor();
  await fits(ann);
});
