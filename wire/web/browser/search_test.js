// The search field: words, operators and suggestions.
import assert from 'node:assert/strict';
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
  assert.match(p.page.url(), /#narrow\/sender\//);
  await field.click();
  await field.fill('channel:general soup');
  await p.page.keyboard.press('Enter');
  await p.page.locator('.message .content', { hasText: 'Soup today' }).waitFor();
  assert.match(p.page.url(), /#narrow\/channel\/1-general\/search\/soup/);
  await field.click();
  assert.equal(await field.inputValue(), 'channel:general soup ');
});
