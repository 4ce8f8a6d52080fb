// The destination of the compose box when the view changes: a message goes to the people that its writer sees.
import assert from 'node:assert/strict';
import { ANN, opened, say, userID } from './client.js';
import { eventually } from './parley.js';
import { scene } from './scene.js';

const topic = (name) => `#narrow/channel/1-general/topic/${name}`;

// go changes the address, as a link or the back button does.
const go = (p, address) => p.page.evaluate((a) => { location.hash = a; }, address);

// topicOf returns the topic of the message that the server has with a content.
async function topicOf(parley, content) {
  const all = await parley.call(ANN, 'GET', 'messages', { anchor: 'newest', num_before: 50, num_after: 0, narrow: '[]', apply_markdown: 'false' });
  return all.messages.find((m) => m.content === content)?.subject;
}

scene('an empty compose box follows the view, and a filled one keeps its conversation', async (s) => {
  const parley = await s.serve();
  for (const name of ['lunch', 'dinner', 'supper']) await say(parley, ANN, `about ${name}`, name);
  const p = await opened(s, parley, ANN, topic('lunch'));
  const field = p.page.getByRole('textbox', { name: 'Message', exact: true });
  const to = p.page.locator('.compose-topic');
  const banner = p.page.locator('.compose-elsewhere');
  const sendsTo = (name) => eventually(`the topic is ${name}`, async () => await to.inputValue() === name);
  await p.page.locator('.compose-open').click();
  await sendsTo('lunch');
  await field.fill('  '); // a blank text is none
  await go(p, topic('dinner'));
  await sendsTo('dinner');
  await field.fill('for dinner');
  await field.press('Control+Enter');
  await eventually('the message is in the topic of the view', async () => await topicOf(parley, 'for dinner') === 'dinner');

  await field.fill('kept for dinner');
  assert.equal(await banner.count(), 0);
  await go(p, topic('supper'));
  await banner.filter({ hasText: '#general › dinner' }).waitFor();
  await sendsTo('dinner');
  await p.page.locator('.message.elsewhere', { hasText: 'about supper' }).waitFor();
  await banner.getByRole('button', { name: 'Go to conversation' }).click();
  await banner.waitFor({ state: 'detached' });
  assert.match(p.page.url(), /topic\/dinner/);
  assert.equal(await field.inputValue(), 'kept for dinner');
  await p.page.locator('.message:not(.elsewhere)', { hasText: 'for dinner' }).first().waitFor();
  await field.press('Control+Enter');
  await eventually('the message is in its topic', async () => await topicOf(parley, 'kept for dinner') === 'dinner');

  await field.fill('moved to supper');
  await go(p, topic('supper'));
  await banner.getByRole('button', { name: 'Send here instead' }).click();
  await banner.waitFor({ state: 'detached' });
  await sendsTo('supper');
  assert.equal(await p.page.locator('.message.elsewhere').count(), 0);
  await field.press('Control+Enter');
  await eventually('the message is in the topic of the view', async () => await topicOf(parley, 'moved to supper') === 'supper');

  await field.fill('still here');
  await go(p, '#feed'); // a view of all conversations offers no other destination
  await p.page.locator('.message.elsewhere', { hasText: 'about lunch' }).waitFor();
  assert.equal(await banner.count(), 0);
  await go(p, `#narrow/dm/${await userID(parley, ANN)}`);
  await banner.waitFor();
  await banner.getByRole('button', { name: 'Send here instead' }).click();
  await field.press('Control+Enter');
  await p.page.locator('.message[data-message]', { hasText: 'still here' }).waitFor();
  assert.equal(await topicOf(parley, 'still here'), '', 'a direct message has no topic');
});
