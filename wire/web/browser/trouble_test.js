// What goes wrong while people read and write: topics, messages, channels and sessions that disappear, and servers that
// refuse.
import assert from 'node:assert/strict';
import { ADA, ANN, BO, OLIVE, opened, say, text, userID } from './client.js';
import { PASSWORD, eventually } from './parley.js';
import { scene } from './scene.js';

const TOPIC = '#narrow/channel/1-general/topic/lunch';
const box = (p) => p.page.getByRole('textbox', { name: 'Message', exact: true });
const editor = (p) => p.page.getByRole('textbox', { name: 'Text of the message' });
const hashIs = (p, hash) => eventually(`the address is ${hash}`, () => new URL(p.page.url()).hash === hash);
const notice = (p, has) => p.page.locator('.notice', { hasText: has });

const move = (parley, id, fields) => parley.call(OLIVE, 'PATCH', `messages/${id}`, { propagate_mode: 'change_all',
  send_notification_to_old_thread: 'false', send_notification_to_new_thread: 'false', ...fields });

// edit opens the editor of a message and writes a text.
async function edit(p, message, content) {
  await p.page.locator('.message', { hasText: message }).first().click();
  await p.page.keyboard.press('e');
  await eventually('the editor has the message', async () => (await editor(p).inputValue()) === message);
  await editor(p).fill(content);
}

scene('the view and the compose box follow a renamed topic, and old links lead there', async (s) => {
  const parley = await s.serve();
  const { id } = await say(parley, BO, 'Soup?');
  const ann = await opened(s, parley, ANN, TOPIC);
  await text(ann, 'Soup?').waitFor();
  await ann.page.locator('.compose-open').click();
  await box(ann).fill('half a sentence');
  await move(parley, id, { topic: 'dinner' });
  await hashIs(ann, '#narrow/channel/1-general/topic/dinner');
  await text(ann, 'Soup?').waitFor();
  assert.equal(await ann.page.getByLabel('Topic', { exact: true }).inputValue(), 'dinner');
  await box(ann).press('Control+Enter');
  await text(ann, 'half a sentence').waitFor();
  await ann.page.goto(`/${TOPIC}/near/${id}`);
  await hashIs(ann, `#narrow/channel/1-general/topic/dinner/near/${id}`);
  await text(ann, 'Soup?').waitFor();
  ann.expect(/status of 400/);
  await ann.page.goto(`/${TOPIC}/near/999999`);
  await notice(ann, 'This message does not exist').waitFor();
});

scene('the text of an edited message outlives its move, and becomes a draft when it is deleted', async (s) => {
  const parley = await s.serve();
  const { id } = await say(parley, ANN, 'Mine');
  await say(parley, ANN, 'Other');
  const ann = await opened(s, parley, ANN, TOPIC);
  await edit(ann, 'Mine', 'Mine, much longer');
  await move(parley, id, { topic: 'dinner', propagate_mode: 'change_one' });
  await notice(ann, 'moved to #general › dinner').waitFor();
  await ann.page.goto('/#narrow/channel/1-general/topic/dinner');
  await eventually('the text is still there', async () => (await editor(ann).inputValue()) === 'Mine, much longer');
  await parley.call(OLIVE, 'DELETE', `messages/${id}`);
  await notice(ann, 'Your text is in the drafts').waitFor();
  const { drafts } = await parley.call(ANN, 'GET', 'drafts');
  assert.deepEqual(drafts.map((d) => d.content), ['Mine, much longer']);
});

scene('lost and archived channels say so', async (s) => {
  const parley = await s.serve();
  const [ann, olive] = [await userID(parley, ANN), await userID(parley, OLIVE)];
  await parley.call(OLIVE, 'POST', 'users/me/subscriptions', { invite_only: 'true',
    subscriptions: JSON.stringify([{ name: 'secret' }]), principals: JSON.stringify([ann, olive]) });
  const { stream_id: secret } = await parley.call(OLIVE, 'GET', 'get_stream_id', { stream: 'secret' });
  await parley.call(OLIVE, 'POST', 'messages', { type: 'stream', to: 'secret', topic: 'x', content: 'psst' });
  const p = await opened(s, parley, ANN, `#narrow/channel/${secret}-secret/topic/x`);
  await text(p, 'psst').waitFor();
  await parley.call(OLIVE, 'POST', 'users/me/subscriptions', { method: 'DELETE',
    subscriptions: '["secret"]', principals: JSON.stringify([ann]) });
  await p.page.getByText('There is no such channel, or you cannot see it.').waitFor();
  assert.equal(await text(p, 'psst').count(), 0);
  assert.equal(await p.page.locator('.compose-open').count(), 0);
  await p.accessible();
  await p.page.goto(`/${TOPIC}`);
  await p.page.locator('.compose-open').waitFor();
  await parley.call(OLIVE, 'DELETE', 'streams/1');
  await p.page.locator('.compose', { hasText: 'The channel is archived.' }).waitFor();
});

scene('a logout in another tab keeps the unsent text and the place', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, ANN, TOPIC);
  ann.expect(/status of 401/);
  await ann.page.locator('.compose-open').click();
  await box(ann).fill('unsent text');
  await ann.page.reload();
  await eventually('the text is there again', async () => (await box(ann).inputValue()) === 'unsent text');
  const other = await ann.context.newPage();
  await other.goto('/#inbox');
  await other.getByRole('button', { name: 'Main menu' }).click();
  await other.getByRole('menuitem', { name: 'Log out' }).click();
  await ann.page.waitForURL(/\/login\//);
  await ann.page.getByLabel('Email address', { exact: true }).fill(ANN);
  await ann.page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await ann.page.getByRole('button', { name: 'Log in', exact: true }).click();
  await eventually('the text is there', async () => (await box(ann).inputValue()) === 'unsent text');
  await hashIs(ann, TOPIC);
  await box(ann).press('Control+Enter');
  await text(ann, 'unsent text').waitFor();
  await eventually('no draft is left', async () => (await parley.call(ANN, 'GET', 'drafts')).drafts.length === 0);
});

scene('a server that refuses messages is asked rarely, and the message arrives once', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, ANN, TOPIC);
  ann.expect(/status of 50[37]/);
  const statuses = [507, 503, 503, 503];
  let tries = 0;
  await ann.page.route('**/json/messages', (r) => {
    const status = r.request().method() === 'POST' ? statuses[tries++] : undefined;
    return status ? r.fulfill({ status, json: { result: 'error', code: 'X', msg: `refused with ${status}` } }) : r.continue();
  });
  await ann.page.locator('.compose-open').click();
  await box(ann).fill('patience');
  await box(ann).press('Control+Enter');
  await ann.page.getByText('Not sent: refused with 507').waitFor(); // a full disk: only the user tries again
  await ann.page.getByRole('button', { name: 'Try again' }).click();
  await ann.page.getByText('Not sent yet: refused with 503').waitFor();
  await ann.page.locator('.message[data-message]', { hasText: 'patience' }).waitFor();
  assert.equal(tries, 5);
  assert.equal(await text(ann, 'patience').count(), 1);
});

scene('a message link survives the login', async (s) => {
  const parley = await s.serve();
  const { id } = await say(parley, ADA, 'Read this');
  await parley.setPassword(BO);
  const bo = await s.profile(parley);
  await bo.page.goto(`/${TOPIC}/near/${id}`);
  await bo.page.waitForURL(/\/login\//);
  await bo.page.getByLabel('Email address', { exact: true }).fill(BO);
  await bo.page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await bo.page.getByRole('button', { name: 'Log in', exact: true }).click();
  await text(bo, 'Read this').waitFor();
  await hashIs(bo, `${TOPIC}/near/${id}`);
});

scene('the back button and a new loading lead to the same place', async (s) => {
  const parley = await s.serve();
  for (let i = 1; i <= 40; i++) await say(parley, BO, `Line ${i}.\n\nmore\n\nmore`);
  const ann = await opened(s, parley, ANN, TOPIC);
  await text(ann, 'Line 1.').waitFor();
  const list = ann.page.locator('.virtual');
  await list.evaluate((el) => { el.scrollTop = 1234; });
  const top = () => ann.page.locator('.message', { hasText: 'Line 14.' }).evaluate((el) => Math.round(el.getBoundingClientRect().top));
  await eventually('the place is kept', () => ann.page.evaluate(() => {
    const edge = document.querySelector('.virtual').getBoundingClientRect().top + 1;
    const first = [...document.querySelectorAll('[data-message]')].find((x) => x.getBoundingClientRect().bottom > edge);
    return history.state?.place?.id === Number(first.dataset.message);
  }));
  const before = await top();
  await ann.page.goto('/#inbox');
  await ann.page.locator('h1', { hasText: 'Inbox' }).waitFor();
  await ann.page.goBack();
  await text(ann, 'Line 14.').waitFor();
  await eventually('it is there again', async () => Math.abs(await top() - before) <= 2);
  await ann.page.reload();
  await text(ann, 'Line 14.').waitFor();
  await eventually('also after loading', async () => Math.abs(await top() - before) <= 2);
});

scene('a window that is fetched slowly does not move the page, and says if it cannot be fetched', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, ANN, TOPIC);
  const bar = ann.page.locator('.compose-open');
  const before = await bar.boundingBox();
  let answer;
  await ann.page.route('**/lists-*.js', (r) => { answer = () => r.abort(); });
  ann.expect(/ERR_FAILED/);
  await ann.page.keyboard.press('d');
  await ann.page.locator('.overlay-wait').waitFor();
  assert.deepEqual(await bar.boundingBox(), before);
  answer();
  await notice(ann, 'This part could not be loaded').waitFor();
  await hashIs(ann, TOPIC);
});
