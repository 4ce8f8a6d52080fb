// The search field: words, operators and suggestions.
import assert from 'node:assert/strict';
import { ANN, BO, opened, say, text } from './client.js';
import { eventually } from './parley.js';
import { scene } from './scene.js';

scene('the search field suggests operators and people, and finds messages', async (s) => {
  const parley = await s.serve();
  await parley.setPassword('ann@example.org');
  await parley.call('bo@example.org', 'POST', 'messages', { type: 'stream', to: 'general', topic: 'lunch', content: 'Soup today' });
  const p = await s.profile(parley);
  await p.logIn('ann@example.org');
  await p.page.goto('/#inbox');
  const field = p.page.getByRole('combobox', { name: 'Search' });
  await field.click();
  await p.page.getByRole('option', { name: 'is:unread' }).waitFor();
  await p.accessible();
  await field.fill('sender');
  await p.page.getByRole('option', { name: /^sender:/ }).click();
  await field.pressSequentially('bo');
  await p.page.getByRole('option', { name: 'sender:Bo Park' }).click();
  await p.page.locator('.message .content', { hasText: 'Soup today' }).waitFor();
  await p.page.waitForURL(/#narrow\/sender\//);
  await field.click();
  await field.fill('channel:general soup');
  await p.page.keyboard.press('Enter');
  await p.page.waitForURL(/#narrow\/channel\/1-general\/search\/soup/);
  await p.page.locator('.message .content .highlight', { hasText: 'Soup' }).waitFor();
  await field.click();
  await p.page.getByRole('button', { name: 'Edit the filter channel: general' }).waitFor();
  assert.equal(await field.inputValue(), 'soup');
});

scene('topics are suggested as soon as they are fetched', async (s) => {
  const parley = await s.serve();
  await parley.call('bo@example.org', 'POST', 'messages', { type: 'stream', to: 'general', topic: 'lunch', content: 'Soup today' });
  const p = await s.profile(parley);
  await p.logIn('ann@example.org');
  let answer;
  await p.context.route('**/json/users/me/1/topics*', (r) => { answer = () => r.continue(); });
  await p.page.goto('/#inbox');
  await p.page.getByRole('combobox', { name: 'Search' }).fill('channel:general topic:lu');
  await eventually('the topics are asked for', () => answer);
  answer();
  await p.page.getByRole('option', { name: 'topic:lunch' }).waitFor();
});

scene('one field goes to channels, topics, people, commands and settings: Enter takes the first suggestion', async (s) => {
  const parley = await s.serve();
  for (const topic of ['lunch plans', 'lamp']) await say(parley, BO, 'Text', topic);
  const ann = await opened(s, parley, ANN);
  const { page } = ann;
  const field = page.getByRole('combobox', { name: 'Search' });
  const goes = async (typed, address) => {
    await page.keyboard.press('Control+k');
    await eventually('the field has the cursor', () => field.evaluate((el) => el === document.activeElement));
    await page.keyboard.type(typed);
    const first = page.getByRole('option').first();
    await eventually(`the first suggestion for ${typed} is chosen`, async () =>
      await field.getAttribute('aria-activedescendant') === await first.getAttribute('id'));
    await page.keyboard.press('Enter');
    await page.waitForURL(address);
    assert.equal(await field.inputValue(), '', 'the field is empty again');
  };
  await goes('gene', /#narrow\/channel\/1-general$/);
  await goes('bo', /#narrow\/dm\/\d+-Bo-Park$/);
  await page.keyboard.press('Control+k');
  await page.keyboard.type('lunch');
  await page.getByRole('option', { name: 'lunch plans #general' }).waitFor(); // the topics are fetched
  await ann.accessible();
  await page.keyboard.press('Enter');
  await page.waitForURL(/topic\/lunch.20plans$/);
  await page.locator('.compose-open').click();
  await page.keyboard.press('Control+k'); // also while the cursor is in the text
  await eventually('the last places come first', async () =>
    /Bo Park[^]*general/.test((await page.getByRole('option').allInnerTexts()).slice(0, 2).join()));
  await page.keyboard.press('Escape');
  await page.keyboard.press('Escape');
  await goes('alert', /#settings\/alert-words$/);
  await page.keyboard.press('Escape');
  await page.locator('dialog').waitFor({ state: 'detached' });
  await page.keyboard.press('/');
  await page.keyboard.type('new chan');
  await page.keyboard.press('Enter');
  await page.getByRole('dialog', { name: 'New channel' }).waitFor();
});

scene('filters are pills, which are continued, edited and removed', async (s) => {
  const parley = await s.serve();
  await say(parley, BO, 'Soup with leeks', 'lunch');
  await say(parley, ANN, 'Soup with carrots', 'lunch');
  const ann = await opened(s, parley, ANN);
  const { page } = ann;
  const field = page.getByRole('combobox', { name: 'Search' });
  const pills = () => page.locator('.search-pill').allInnerTexts();
  await field.click();
  await page.keyboard.type('sender:bo');
  await page.getByRole('option', { name: 'sender:Bo Park' }).waitFor();
  await page.keyboard.press('Tab'); // takes the filter, and goes on
  await eventually('the filter is a pill', async () => (await pills()).join() === 'sender: Bo Park');
  await page.keyboard.type('soup');
  await ann.accessible();
  await page.keyboard.press('Enter');
  await text(ann, 'leeks').waitFor();
  assert.equal(await text(ann, 'carrots').count(), 0);
  await page.getByRole('button', { name: 'Edit the filter sender: Bo Park' }).click();
  assert.equal(await field.inputValue(), 'soup sender:"Bo Park"');
  await field.fill('soup sender:ann');
  await page.keyboard.press('Enter');
  await text(ann, 'carrots').waitFor();
  await eventually('the new filter is a pill', async () => (await pills()).join() === 'sender: Ann Lee');
  await page.getByRole('button', { name: 'Remove sender: Ann Lee' }).click();
  await field.press('Enter');
  await text(ann, 'leeks').waitFor();
  await text(ann, 'carrots').waitFor();
  await page.goBack();
  await eventually('the field follows the view', async () => (await pills()).join() === 'sender: Ann Lee');
});
