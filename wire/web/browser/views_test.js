// Views of messages: the mark of new messages, the way to the end, and notices about writing.
import assert from 'node:assert/strict';
import { ANN, BO, opened, say, text, userID } from './client.js';
import { eventually } from './parley.js';
import { scene } from './scene.js';

scene('a short conversation shows the mark of new messages, and no button to its end', async (s) => {
  const parley = await s.serve();
  const ann = await userID(parley, ANN);
  for (const content of ['One', 'Two', 'Three']) {
    await parley.call(BO, 'POST', 'messages', { type: 'direct', to: JSON.stringify([ann]), content });
  }
  const p = await opened(s, parley, ANN, `#narrow/dm/${await userID(parley, BO)}`);
  await text(p, 'Three').waitFor();
  await p.page.locator('.unread-row').waitFor();
  const [mark, header] = [await p.page.locator('.unread-row').boundingBox(), await p.page.locator('.view-header').boundingBox()];
  assert.ok(mark.y >= header.y + header.height, 'the mark is below the header');
  await eventually('there is no button', async () => await p.page.locator('.to-end').count() === 0);
});

scene('users do not see themselves writing in another window', async (s) => {
  const parley = await s.serve();
  const [ann, bo] = [await userID(parley, ANN), await userID(parley, BO)];
  const one = await opened(s, parley, ANN, `#narrow/dm/${bo}`);
  const two = await opened(s, parley, ANN, `#narrow/dm/${bo}`);
  const other = await opened(s, parley, BO, `#narrow/dm/${ann}`);
  await parley.call(BO, 'POST', 'messages', { type: 'direct', to: JSON.stringify([ann]), content: 'Hello' });
  await text(two, 'Hello').waitFor();
  await text(other, 'Hello').waitFor();
  await one.page.locator('.compose-open').click();
  await one.page.getByRole('textbox', { name: 'Message', exact: true }).pressSequentially('I think');
  await other.page.locator('.typing', { hasText: 'Ann Lee is typing' }).waitFor();
  assert.equal((await two.page.locator('.typing').innerText()).trim(), '');
});

scene('searches combine operators, and a minus excludes', async (s) => {
  const parley = await s.serve();
  await say(parley, BO, 'Soup with leeks', 'lunch');
  await say(parley, ANN, 'Soup with carrots', 'dinner');
  await say(parley, BO, 'See https://example.org/soup', 'links');
  const ann = await opened(s, parley, ANN);
  const field = ann.page.getByRole('combobox', { name: 'Search' });
  const search = async (query, found, missing) => {
    const clear = ann.page.getByRole('button', { name: 'Clear the search' });
    if (await clear.count()) await clear.click(); // else the filters of the last search go on
    await field.click();
    await field.fill(query);
    await ann.page.keyboard.press('Enter');
    for (const x of found) await text(ann, x).waitFor();
    for (const x of missing) assert.equal(await text(ann, x).count(), 0, `${query} finds ${x}`);
  };
  await search('soup sender:me', ['carrots'], ['leeks']);
  await search('channel:general -topic:dinner soup', ['leeks'], ['carrots']);
  await search('has:link', ['example.org/soup'], ['leeks', 'carrots']);
  await search('"with leeks"', ['leeks'], ['carrots']);
  await field.click();
  await field.fill('topic:');
  await field.fill('channel:general topic:lu');
  await ann.page.getByRole('option', { name: 'topic:lunch' }).click();
  await text(ann, 'leeks').waitFor();
});
