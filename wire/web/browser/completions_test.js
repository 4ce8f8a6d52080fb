// Words that no completer knows: the page goes on.
import assert from 'node:assert/strict';
import { opened } from './client.js';
import { scene } from './scene.js';

const TOPIC = '#narrow/channel/1-general/topic/lunch';

scene('a word after a colon that no emoji has does not stop the page', async (s) => {
  const p = await opened(s, await s.serve(), 'ann@example.org', TOPIC);
  await p.page.locator('.compose-open').click();
  const field = p.page.getByRole('textbox', { name: 'Message', exact: true });
  let text = '';
  for (const word of [':xs', ' :qq', ' :xss', ' #**general>nothing', ' @nobody', '\n```nolanguage', 's', ` :${'x'.repeat(1000)}`]) {
    text += word;
    if (word.length < 100) await field.pressSequentially(word);
    else await field.evaluate((el, w) => { el.setRangeText(w, el.value.length, el.value.length, 'end'); el.dispatchEvent(new Event('input', { bubbles: true })); }, word);
    // An answer of the page after its microtasks: a loop of promises never gets here.
    await p.page.evaluate(() => new Promise(requestAnimationFrame));
    assert.equal(await field.inputValue(), text);
  }
  await field.fill(':tad');
  await p.page.locator('.completions [role=option]', { hasText: ':tada:' }).first().waitFor();
});
