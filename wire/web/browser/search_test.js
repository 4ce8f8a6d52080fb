// The search field: words, operators and suggestions.
import assert from 'node:assert/strict';
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
  await field.pressSequentially('send');
  await p.page.keyboard.press('ArrowDown');
  await p.page.keyboard.press('ArrowDown');
  const active = await field.getAttribute('aria-activedescendant');
  assert.match(await p.page.locator(`#${active}`).innerText(), /^sender:/);
  await p.page.keyboard.press('Enter');
  await field.pressSequentially('bo');
  await p.page.getByRole('option', { name: 'sender:Bo+Park' }).click();
  await p.page.locator('.message .content', { hasText: 'Soup today' }).waitFor();
  await p.page.waitForURL(/#narrow\/sender\//);
  await field.click();
  await field.fill('channel:general soup');
  await p.page.keyboard.press('Enter');
  await p.page.waitForURL(/#narrow\/channel\/1-general\/search\/soup/);
  await p.page.locator('.message .content .highlight', { hasText: 'Soup' }).waitFor();
  await field.click();
  assert.equal(await field.inputValue(), 'channel:general soup ');
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
