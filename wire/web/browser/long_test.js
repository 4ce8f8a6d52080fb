// Long messages are shortened. The rest is shown by mouse and keyboard, and places stay the same.
import assert from 'node:assert/strict';
import { ANN, BO, opened, say, text } from './client.js';
import { eventually } from './parley.js';
import { scene } from './scene.js';

const TOPIC = '#narrow/channel/1-general/topic/lunch';
const LONG = Array.from({ length: 120 }, (_, i) => `Line ${i} of a very long text about soup and bread and other dishes`)
  .join('\n').concat('\n[the end](https://example.org/end)').slice(0, 10_000);

scene('a long message is shortened, opened and shortened again, and lists keep their place', async (s) => {
  const parley = await s.serve();
  const before = await say(parley, BO, 'Before');
  const { id } = await say(parley, BO, LONG);
  const after = await say(parley, BO, 'After');
  const ids = JSON.stringify([before.id, id, after.id]);
  await parley.call(ANN, 'POST', 'messages/flags', { op: 'add', flag: 'read', messages: ids });
  const ann = await opened(s, parley, ANN, TOPIC);
  const row = ann.page.locator(`[data-message="${id}"]`);
  const more = row.getByRole('button', { name: 'Show more' });
  const less = row.getByRole('button', { name: 'Show less' });
  const height = () => row.evaluate((el) => el.getBoundingClientRect().height);
  // The view is at its end, and the end of the long message is in it.
  await text(ann, 'After').waitFor();
  await more.waitFor();
  const list = await ann.page.locator('.virtual').boundingBox();
  assert.ok(await height() < list.height, 'the message is lower than the list');
  assert.equal(await ann.page.locator('.to-end').count(), 0);
  await more.click();
  await less.waitFor();
  assert.ok(await height() > 2000, 'all of it is shown');
  // "Show less" far below its beginning leads there.
  await less.scrollIntoViewIfNeeded();
  await less.click();
  await more.waitFor();
  await eventually('the beginning is in the window', async () => {
    const top = await row.evaluate((el) => el.getBoundingClientRect().top);
    return top >= list.y - 1 && top < list.y + list.height;
  });
  // The keyboard: the selected message is opened by its key, then collapsed. A link in the hidden part opens it.
  await row.locator('.content').click({ position: { x: 5, y: 5 } });
  await ann.page.keyboard.press('-');
  await less.waitFor();
  await less.press('Enter');
  await more.waitFor();
  await row.getByRole('link', { name: 'the end' }).focus();
  await less.waitFor();
  await less.press('Enter');
  await more.waitFor();
  // A link to the message after it lands there, and what arrives does not move it.
  await ann.page.goto(`/${TOPIC}/near/${after.id}`);
  await ann.page.locator(`[data-message="${after.id}"].selected`).waitFor();
  assert.ok(await ann.page.locator(`[data-message="${after.id}"]`).isVisible());
  // An edit that makes it short takes the button away.
  await parley.call(BO, 'PATCH', `messages/${id}`, { content: 'Short now' });
  await text(ann, 'Short now').waitFor();
  await eventually('there is no button', async () => !await more.isVisible() && !await less.isVisible());
  // Found words in the hidden part are shown.
  const found = await say(parley, BO, `${LONG.replace(/\[the end\].*/, '')}\nzebra`);
  await ann.page.goto('/#narrow/channel/1-general/search/zebra');
  await ann.page.locator(`[data-message="${found.id}"] .highlight`).waitFor();
  await ann.page.locator(`[data-message="${found.id}"]`).getByRole('button', { name: 'Show less' }).waitFor();
  await ann.page.goto('/#narrow/channel/1-general/search/dishes');
  await ann.page.locator(`[data-message="${found.id}"]`).getByRole('button', { name: 'Show less' }).waitFor(); // it stays open
  await ann.page.reload();
  await ann.page.locator(`[data-message="${found.id}"]`).getByRole('button', { name: 'Show more' }).waitFor();
});
