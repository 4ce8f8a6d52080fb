// Looks: rows, counts, marks, pictures.
import assert from 'node:assert/strict';
import { ADA, ANN, BO, opened, pick, say, text, userID } from './client.js';
import { eventually } from './parley.js';
import { scene } from './scene.js';

scene('rows are compact on a desktop, and a browser can have comfortable ones', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, ANN, '#settings/preferences');
  const { page } = ann;
  const height = () => page.locator('.left .side-link').first().evaluate((el) => el.getBoundingClientRect().height);
  assert.equal(await height(), 28);
  await pick(page.getByLabel('Density in this browser'), 'Comfortable');
  await eventually('the rows are higher', async () => await height() === 34);
  await page.reload();
  await page.locator('.left .side-link').first().waitFor();
  assert.equal(await height(), 34);
});

scene('counts stay at the edge under the buttons of a row; mentions and direct messages have the accent colour', async (s) => {
  const parley = await s.serve();
  await say(parley, BO, 'Soup', 'lunch');
  await say(parley, BO, 'Dear @**Ann Lee**', 'asked');
  await parley.call(BO, 'POST', 'messages', { type: 'direct', to: JSON.stringify([await userID(parley, ANN)]), content: 'Hello' });
  const ann = await opened(s, parley, ANN, '#topics/channel/1-general');
  const { page } = ann;
  const channel = page.locator('.left .side-row', { hasText: 'general' }).first();
  const count = channel.locator('.count');
  const before = await count.boundingBox();
  const link = await channel.locator('.side-link').boundingBox();
  assert.ok(link.x + link.width - before.x - before.width <= 8, 'the count is at the edge');
  await channel.hover();
  await channel.getByRole('button', { name: 'Actions of general' }).waitFor();
  assert.deepEqual(await count.boundingBox(), before, 'the buttons do not move it');
  const colour = (where) => where.evaluate((el) => getComputedStyle(el).backgroundColor);
  await page.goto('/#inbox');
  const direct = page.locator('.left a', { hasText: 'Bo Park' }).locator('.count');
  const quiet = page.locator('.inbox-row', { hasText: 'lunch' }).locator('.count');
  const mention = page.locator('.inbox-row', { hasText: 'asked' }).locator('.count');
  assert.equal(await colour(direct), await colour(mention));
  assert.notEqual(await colour(quiet), await colour(mention));
  await page.goto('/#narrow/channel/1-general');
  const weight = (name) => page.locator('.topics .side-link', { hasText: name }).evaluate((el) => Number(getComputedStyle(el).fontWeight));
  await text(ann, 'Dear').waitFor();
  const tint = (has) => page.locator('.message', { hasText: has }).evaluate((el) => getComputedStyle(el).backgroundColor);
  assert.notEqual(await tint('Dear'), await tint('Soup'), 'the row of a mention is tinted');
  await eventually('topics without unread messages are not bold', async () => await weight('lunch') < 600);
  await page.goto('/#narrow/channel/1-general/topic/asked');
  await say(parley, BO, 'More', 'lunch');
  await eventually('a topic with unread messages is bold', async () => await weight('lunch') >= 600);
  await ann.accessible();
});

scene('users without a picture have their initials, the own message is selected, and End marks all as read', async (s) => {
  const parley = await s.serve();
  for (let i = 1; i <= 150; i++) await say(parley, BO, `Line ${i}`, 'long');
  const ann = await opened(s, parley, ANN, '#narrow/channel/1-general/topic/long');
  const { page } = ann;
  const avatar = page.locator('.message .avatar').first();
  assert.equal(await avatar.getAttribute('data-initials'), 'BP');
  assert.equal(await page.locator('img[src*=generated]').count(), 0);
  await page.locator('body').press('End');
  await text(ann, /^Line 150$/).waitFor();
  await eventually('the server has all of them as read', async () => {
    const { messages } = await parley.call(ANN, 'GET', 'messages', { anchor: 'oldest', num_before: '0', num_after: '10',
      narrow: JSON.stringify([['channel', 'general'], ['topic', 'long'], ['is', 'unread']]) });
    return messages.length === 0;
  });
  await page.locator('.compose-open').click();
  const box = page.getByRole('textbox', { name: 'Message', exact: true });
  await box.fill('The last word');
  await box.press('Control+Enter');
  await page.locator('.message.selected', { hasText: 'The last word' }).waitFor();
  assert.ok(await userID(parley, ADA));
});

scene('guests are marked, unless the organization does not want that', async (s) => {
  const parley = await s.serve();
  const bo = await userID(parley, BO);
  await parley.call(ADA, 'PATCH', `users/${bo}`, { role: '600' });
  await say(parley, BO, 'Soup', 'lunch');
  const ann = await opened(s, parley, ANN, '#narrow/channel/1-general/topic/lunch');
  const { page } = ann;
  await page.locator('.message', { hasText: 'Soup' }).getByText('guest', { exact: true }).waitFor();
  await ann.accessible();
  await page.goto(`/#narrow/dm/${bo}`);
  await page.locator('.compose-open').click();
  await page.locator('.compose-notes', { hasText: 'Bo Park is a guest in this organization.' }).waitFor();
  await parley.call(ADA, 'PATCH', 'realm', { enable_guest_user_indicator: 'false', enable_guest_user_dm_warning: 'false' });
  await page.locator('.compose-notes').waitFor({ state: 'detached' });
  await page.goto('/#narrow/channel/1-general/topic/lunch');
  await text(ann, 'Soup').waitFor();
  await page.locator('.message').getByText('guest', { exact: true }).waitFor({ state: 'detached' });
});
