// Bad addresses in messages, and the address bar after a logout.
import assert from 'node:assert/strict';
import { ANN, BO, mainMenu, opened, say, text, userID } from './client.js';
import { scene } from './scene.js';

scene('a message with a bad address leaves the other messages readable', async (s) => {
  const parley = await s.serve();
  await say(parley, BO, 'the first of three');
  const links = ['java\tscript:x', 'http://[', 'http://a%zz', 'https://example.org:99999999', '//'];
  await say(parley, BO, `the bad one ${links.map((x, i) => `[a${i}](${x})`).join(' ')}`);
  await say(parley, BO, 'the last of three');
  const p = await opened(s, parley, ANN, '#narrow/channel/1-general/topic/lunch');
  for (const content of ['the first of three', 'the bad one', 'the last of three']) await text(p, content).waitFor();
  const hrefs = await text(p, 'the bad one').locator('a').evaluateAll((all) => all.map((a) => a.protocol));
  assert.ok(!hrefs.includes('javascript:'), hrefs.join());
});

scene('after a logout the address bar names no person', async (s) => {
  const parley = await s.serve();
  const id = await userID(parley, BO);
  const p = await opened(s, parley, ANN, `#narrow/dm/${id}-Bo-Park`);
  const other = await p.context.newPage(); // it learns of the end of the session from its next request
  await other.goto(`/#narrow/dm/${id}-Bo-Park`);
  await other.locator('.view-header').first().waitFor();
  p.expect(/Failed to load resource: .* status of 401 /);
  await mainMenu(p, 'Log out');
  for (const page of [p.page, other]) {
    await page.waitForURL(/login/);
    assert.doesNotMatch(page.url(), /Bo/);
  }
});
