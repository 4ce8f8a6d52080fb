// Polls and todo lists of two people at once.
import { scene } from './scene.js';

const TOPIC = '/#narrow/channel/1-general/topic/lunch';

scene('two people vote in a poll and share a todo list', async (s) => {
  const parley = await s.serve();
  await parley.setPassword('ann@example.org', 'bo@example.org');
  const [ann, bo] = [await s.profile(parley), await s.profile(parley)];
  for (const [p, name] of [[ann, 'ann'], [bo, 'bo']]) {
    await p.logIn(`${name}@example.org`);
    await p.page.goto(TOPIC);
  }
  await ann.page.locator('.compose-open').click();
  const field = ann.page.getByRole('textbox', { name: 'Message', exact: true });
  await field.fill('/poll What to eat?\nSoup\nBread');
  await field.press('Control+Enter');
  await bo.page.getByRole('button', { name: /^Soup 0 vote/ }).click();
  await ann.page.getByRole('button', { name: /^Soup 1 vote/ }).click();
  await bo.page.getByRole('button', { name: /^Soup 2 vote/ }).click();
  await ann.page.getByRole('button', { name: /^Soup 1 vote/ }).waitFor();
  await bo.page.getByRole('textbox', { name: 'New option' }).fill('Rice');
  await bo.page.keyboard.press('Enter');
  await ann.page.getByRole('button', { name: /^Rice 0 vote/ }).click();
  await bo.page.getByRole('button', { name: /^Rice 1 vote/ }).waitFor();
  await field.fill('/todo Shopping\nLeeks: two');
  await field.press('Control+Enter');
  await bo.page.getByRole('checkbox', { name: 'Leeks' }).click();
  await ann.page.locator('.widget s', { hasText: 'Leeks' }).waitFor();
  await bo.page.getByRole('textbox', { name: 'New task' }).fill('Salt');
  await bo.page.keyboard.press('Enter');
  await ann.page.getByRole('checkbox', { name: 'Salt' }).click();
  await bo.page.locator('.widget s', { hasText: 'Salt' }).waitFor();
  await ann.accessible();
});
