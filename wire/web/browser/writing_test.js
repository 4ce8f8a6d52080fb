// Writing in the own client: typing notices, snippets, preview, moves, resolved topics, and the sidebar's channels.
import assert from 'node:assert/strict';
import { ADA, ANN, BO, opened, pick, stored, userID } from './client.js';
import { eventually } from './parley.js';
import { scene } from './scene.js';

const TOPIC = '#narrow/channel/1-general/topic/lunch';

const say = (parley, email, content, topic = 'lunch') =>
  parley.call(email, 'POST', 'messages', { type: 'stream', to: 'general', topic, content, read_by_sender: 'true' });

const text = (p, has) => p.page.locator('.message .content', { hasText: has });
const entry = (p, name) => p.page.locator('.left li', { has: p.page.locator('.side-link', { hasText: name }) }).first();

async function box(p) {
  const field = p.page.getByRole('textbox', { name: 'Message', exact: true });
  if (!await field.isVisible()) await p.page.locator('.compose-open').click();
  await field.waitFor();
  return field;
}

async function menu(p, message, item) {
  const row = p.page.locator('.message', { hasText: message }).last();
  await row.hover();
  await row.getByRole('button', { name: 'Message actions' }).click();
  await p.page.getByRole('menuitem', { name: item }).click();
}

async function channelMenu(p, name, item) {
  await entry(p, name).hover();
  await p.page.locator('.left').getByRole('button', { name: `Actions of ${name}` }).click();
  await p.page.getByRole('menuitem', { name: item, exact: true }).click();
}

scene('typing is shown to the others in a direct conversation', async (s) => {
  const parley = await s.serve();
  const { user_id: ann } = await parley.call(ANN, 'GET', 'users/me');
  const { user_id: bo } = await parley.call(BO, 'GET', 'users/me');
  const a = await opened(s, parley, ANN, `#narrow/dm/${bo}`);
  const b = await opened(s, parley, BO, `#narrow/dm/${ann}`);
  const field = await box(a);
  await parley.call(ANN, 'POST', 'messages', { type: 'direct', to: JSON.stringify([bo]), content: 'Hello' });
  await text(b, 'Hello').waitFor();
  await field.pressSequentially('I think that');
  await b.page.locator('.typing', { hasText: 'Ann Lee is typing' }).waitFor();
  await field.press('Control+Enter');
  await text(b, 'I think that').waitFor();
  await eventually('the notice is gone', async () => (await b.page.locator('.typing').innerText()).trim() === '');
});

scene('snippets are added, changed, inserted and deleted', async (s) => {
  const parley = await s.serve();
  const { page, ...ann } = await opened(s, parley, ANN, TOPIC);
  const p = { page, ...ann };
  const field = await box(p);
  await field.fill('Thanks for the report.');
  await page.getByRole('button', { name: 'Snippets' }).click();
  await page.getByText('You have no snippets.').waitFor();
  await page.getByRole('button', { name: 'New snippet' }).click();
  await page.getByLabel('Title').fill('Thanks');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByRole('button', { name: 'Edit Thanks' }).click();
  await page.getByLabel('Text').fill('Thanks a lot.');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByText('Thanks a lot.').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
  await field.fill('');
  await page.getByRole('button', { name: 'Snippets' }).click();
  await page.getByRole('button', { name: 'Insert Thanks' }).click();
  await eventually('the text is in the box', async () => await field.inputValue() === 'Thanks a lot.');
  await field.press('Control+Enter');
  await page.locator('.message[data-message] .content', { hasText: 'Thanks a lot.' }).waitFor();
  await field.press('ArrowLeft'); // edits it
  const editor = page.getByRole('textbox', { name: 'Text of the message' });
  await eventually('the editor has the text', async () => await editor.inputValue() === 'Thanks a lot.');
  await editor.press("Control+'");
  await page.getByRole('button', { name: 'Insert Thanks' }).click();
  await eventually('it is in the editor', async () => await editor.inputValue() === 'Thanks a lot.Thanks a lot.');
  await page.locator('.editor').getByRole('button', { name: 'Snippets' }).click();
  await page.getByRole('button', { name: 'Delete Thanks' }).click();
  await page.getByText('You have no snippets.').waitFor();
  assert.equal((await parley.call(ANN, 'GET', 'saved_snippets')).saved_snippets.length, 0);
});

scene('the window of snippets is accessible, and follows other sessions', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, ANN, TOPIC);
  await box(ann);
  await ann.page.getByRole('button', { name: 'Snippets' }).click();
  await parley.call(ANN, 'POST', 'saved_snippets', { title: 'Greeting', content: 'Good morning' });
  await ann.page.getByRole('button', { name: 'Insert Greeting' }).waitFor();
  await ann.accessible();
  await ann.page.getByRole('button', { name: 'New snippet' }).click();
  await ann.accessible();
});

scene('the preview shows a message as others will see it', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, ANN, TOPIC);
  const field = await box(ann);
  await field.fill('**bold** and $$x$$');
  await ann.page.getByRole('button', { name: 'Preview' }).click();
  await ann.page.locator('.compose strong', { hasText: 'bold' }).waitFor();
  await ann.page.locator('.compose .katex').first().waitFor();
  await ann.accessible();
  await ann.page.getByRole('button', { name: 'Preview' }).click();
  assert.equal(await field.inputValue(), '**bold** and $$x$$');
});

scene('messages move to another topic, and the reader is led there', async (s) => {
  const parley = await s.serve();
  await say(parley, ANN, 'About dinner');
  const ada = await opened(s, parley, ADA, TOPIC);
  const bo = await opened(s, parley, BO, TOPIC);
  await text(bo, 'About dinner').waitFor();
  await menu(ada, 'About dinner', 'Move');
  const dialog = ada.page.getByRole('dialog', { name: 'Move messages' });
  await ada.accessible();
  await dialog.getByRole('textbox', { name: 'Topic' }).fill('dinner');
  await dialog.getByRole('button', { name: 'Move', exact: true }).click();
  await ada.page.getByText('Moved.').waitFor();
  await eventually('the reader is led there', () => /topic\/dinner$/.test(bo.page.url()));
  await text(bo, 'About dinner').waitFor();
  await bo.page.getByRole('button', { name: 'moved' }).waitFor();
});

scene('a topic is resolved and opened again for everyone', async (s) => {
  const parley = await s.serve();
  await say(parley, ANN, 'Is it done?', 'roof');
  const ann = await opened(s, parley, ANN, '#narrow/channel/1-general/topic/roof');
  const bo = await opened(s, parley, BO, '#narrow/channel/1-general');
  await text(ann, 'Is it done?').waitFor();
  await ann.page.getByRole('button', { name: 'Mark as resolved' }).click();
  await ann.page.getByRole('button', { name: 'Mark as unresolved' }).waitFor();
  await eventually('the sidebar of the other has the mark', async () =>
    await bo.page.locator('.left .topic', { hasText: 'roof' }).locator('svg').count() > 0);
  await ann.page.getByRole('button', { name: 'Mark as unresolved' }).click();
  await eventually('the mark is gone', async () =>
    await bo.page.locator('.left .topic', { hasText: 'roof' }).locator('svg').count() === 0);
});

scene('a deleted message disappears for everyone', async (s) => {
  const parley = await s.serve();
  await say(parley, ADA, 'A mistake');
  const ada = await opened(s, parley, ADA, TOPIC);
  const bo = await opened(s, parley, BO, TOPIC);
  await text(bo, 'A mistake').waitFor();
  await menu(ada, 'A mistake', 'Delete');
  await ada.page.getByRole('dialog', { name: 'Delete this message?' }).getByRole('button', { name: 'Delete' }).click();
  await eventually('it is gone for the other', async () => await text(bo, 'A mistake').count() === 0);
  await eventually('it is gone', async () => await text(ada, 'A mistake').count() === 0);
});

scene('a channel is pinned, muted and coloured, and another session follows', async (s) => {
  const parley = await s.serve();
  const one = await opened(s, parley, ANN, '#inbox');
  const two = await opened(s, parley, ANN, '#inbox');
  await channelMenu(one, 'general', 'Pin to the top');
  await two.page.locator('.left').getByRole('button', { name: /Pinned channels/ }).waitFor();
  await channelMenu(one, 'general', 'Mute channel');
  await two.page.locator('.left li.muted', { hasText: 'general' }).waitFor();
  await channelMenu(one, 'general', 'Channel settings');
  await one.page.getByRole('link', { name: 'Personal' }).click();
  await one.accessible();
  await one.page.getByRole('radio', { name: 'Green', exact: true }).check({ force: true }); // a circle around it is seen
  await eventually('the other page has the colour', () => two.page.evaluate(() =>
    [...document.querySelectorAll('.left .channel-mark')].some((x) => getComputedStyle(x).color === 'rgb(118, 206, 144)')));
});

scene('channels stand in folders of the sidebar', async (s) => {
  const parley = await s.serve();
  const { channel_folder_id: id } = await parley.call(ADA, 'POST', 'channel_folders/create', { name: 'Places', description: '' });
  const ann = await opened(s, parley, ANN, '#inbox');
  const ada = await opened(s, parley, ADA, '#channels/1/general/general');
  await pick(ada.page.getByLabel('Folder'), 'Places');
  await ann.page.locator('.left').getByRole('button', { name: /Places/ }).waitFor();
  await parley.call(ADA, 'PATCH', `channel_folders/${id}`, { name: 'Rooms' });
  await ann.page.locator('.left').getByRole('button', { name: /Rooms/ }).waitFor();
  await ann.page.locator('.left').getByRole('button', { name: /Rooms/ }).click();
  await eventually('the folder is closed', async () => await ann.page.locator('.left .side-link', { hasText: 'general' }).count() === 0);
});

scene('a topic is muted and followed, and its unread messages are counted so', async (s) => {
  const parley = await s.serve();
  await say(parley, ANN, 'First', 'noise');
  const ann = await opened(s, parley, ANN, '#narrow/channel/1-general/topic/noise');
  await text(ann, 'First').waitFor();
  const choose = async (now, then) => {
    await ann.page.getByRole('button', { name: `Notifications of this topic: ${now}` }).click();
    await ann.page.getByRole('menuitem', { name: then, exact: true }).click();
    await ann.page.getByRole('button', { name: `Notifications of this topic: ${then}` }).waitFor();
  };
  const [now] = (await ann.page.getByRole('button', { name: /Notifications of this topic/ }).getAttribute('aria-label')).split(': ').slice(1);
  await choose(now, 'Muted');
  await ann.page.goto('/#inbox');
  await ann.page.locator('h1', { hasText: 'Inbox' }).waitFor();
  const { id } = await say(parley, BO, 'Much noise', 'noise');
  await say(parley, BO, '@**Ann Lee** look', 'signal');
  await ann.page.locator('.inbox-entry', { hasText: 'signal' }).waitFor();
  assert.ok(id > 0);
  assert.equal(await ann.page.locator('.inbox-entry', { hasText: 'noise' }).count(), 0);
  await ann.page.goto('/#narrow/channel/1-general/topic/noise');
  await choose('Muted', 'Followed');
  await ann.page.goto('/#narrow/is/followed');
  await text(ann, 'Much noise').waitFor();
});

scene('a scheduled message is sent at its time to everyone', async (s) => {
  const parley = await s.serve();
  const bo = await opened(s, parley, BO, TOPIC);
  const ann = await opened(s, parley, ANN, '#scheduled');
  const { user_id: id } = await parley.call(ANN, 'GET', 'users/me');
  assert.ok(id);
  await parley.call(ANN, 'POST', 'scheduled_messages', { type: 'channel', to: '1', topic: 'lunch',
    content: 'From the past', scheduled_delivery_timestamp: String(Math.floor(Date.now() / 1000) + 8) });
  await ann.page.locator('.saved-list .content', { hasText: 'From the past' }).waitFor();
  await text(bo, 'From the past').waitFor();
  await ann.page.getByText('You have no scheduled messages.').waitFor();
});

scene('a message that the server refuses is kept, and can be sent again or discarded', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, ANN, TOPIC);
  const bo = await opened(s, parley, BO, TOPIC);
  ann.expect(/status of 400/);
  let refuse = true;
  await ann.context.route('**/json/messages', async (route) => {
    if (route.request().method() !== 'POST' || !refuse) return route.continue();
    return route.fulfill({ status: 400, contentType: 'application/json',
      body: JSON.stringify({ result: 'error', code: 'BAD_REQUEST', msg: 'Not today' }) });
  });
  const field = await box(ann);
  await field.fill('Please take this');
  await field.press('Control+Enter');
  await ann.page.getByRole('alert').filter({ hasText: 'Not today' }).waitFor();
  await ann.accessible();
  refuse = false;
  await ann.page.getByRole('button', { name: 'Try again' }).click();
  await text(bo, 'Please take this').waitFor();
  refuse = true;
  await field.fill('And this');
  await field.press('Control+Enter');
  await ann.page.getByRole('button', { name: 'Discard' }).click();
  await eventually('nothing is waiting', async () => await ann.page.locator('.outgoing').count() === 0);
  assert.equal(await text(bo, 'And this').count(), 0);
});

scene('formatted text is pasted as Markdown, and code as it is', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, ANN, TOPIC);
  await ann.page.locator('.compose-open').click();
  const field = ann.page.getByRole('textbox', { name: 'Message', exact: true });
  const paste = (html, plain) => field.evaluate((el, [h, p]) => {
    const data = new DataTransfer();
    data.setData('text/html', h);
    data.setData('text/plain', p);
    return el.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }));
  }, [html, plain]);
  await paste('<p style="color:red">A <b>bold</b> <a href="https://example.org/">link</a>_x</p><ul><li>one</li><li><del>two</del></li></ul>', 'plain');
  await eventually('the text is Markdown', async () =>
    await field.inputValue() === 'A **bold** [link](https://example.org/)_x\n\n* one\n* ~~two~~');
  const left = await paste('<div><span style="color:blue">const</span> a</div>', 'const a');
  assert.equal(left, true, 'the browser pastes the text itself');
});

scene('an editor completes names and formats, and a file dropped beside the box is uploaded', async (s) => {
  const parley = await s.serve();
  await say(parley, ANN, 'Hello');
  const ann = await opened(s, parley, ANN, TOPIC);
  await text(ann, 'Hello').waitFor();
  await menu(ann, 'Hello', 'Edit');
  const editor = ann.page.getByRole('textbox', { name: 'Text of the message' });
  await eventually('the editor has the text', async () => await editor.inputValue() === 'Hello');
  await editor.pressSequentially(' @bo');
  await ann.page.getByRole('option', { name: 'Bo Park' }).waitFor();
  await ann.accessible();
  await editor.press('Enter');
  assert.equal(await editor.inputValue(), 'Hello @**Bo Park** ');
  await editor.press('Control+b');
  await editor.pressSequentially('now');
  // The tools of the compose box, uploads and the preview are in the editor too.
  const tools = ann.page.locator('.editor');
  await editor.press('End');
  await editor.pressSequentially('\n');
  await tools.getByRole('button', { name: 'List', exact: true }).click();
  const chosen = ann.page.waitForEvent('filechooser');
  await tools.getByRole('button', { name: 'Upload files' }).click();
  await (await chosen).setFiles({ name: 'menu.txt', mimeType: 'text/plain', buffer: Buffer.from('soup') });
  await eventually('the link is in the editor', async () => /- \[menu\.txt\]\(\/user_uploads\//.test(await editor.inputValue()));
  await tools.getByRole('button', { name: 'Preview' }).click();
  await tools.getByRole('region', { name: 'Preview' }).locator('li a', { hasText: 'menu.txt' }).waitFor();
  assert.equal(await editor.isVisible(), false);
  await ann.page.keyboard.press('Alt+p');
  await editor.waitFor();
  await editor.press('Tab');
  await ann.page.keyboard.press('Enter');
  await text(ann, 'Hello').locator('strong', { hasText: 'now' }).waitFor();
  await text(ann, 'Hello').locator('li a', { hasText: 'menu.txt' }).waitFor();
  await ann.page.locator('.message-pane').evaluate((el) => {
    const data = new DataTransfer();
    data.items.add(new File(['some words'], 'notes.txt', { type: 'text/plain' }));
    el.dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));
  });
  const field = ann.page.getByRole('textbox', { name: 'Message', exact: true });
  await eventually('the link is there', async () => /^\[notes\.txt\]\(\/user_uploads\/\S+\)\n$/.test(await field.inputValue()));
});

scene('notes above the text say who will not see a message: not subscribed, resolved, everyone', async (s) => {
  const parley = await s.serve();
  await parley.call(ADA, 'POST', 'users/me/subscriptions',
    { subscriptions: JSON.stringify([{ name: 'garden' }]), principals: JSON.stringify([await userID(parley, ANN)]) });
  const { stream_id: id } = await parley.call(ANN, 'GET', 'get_stream_id', { stream: 'garden' });
  const ann = await opened(s, parley, ANN, `#narrow/channel/${id}/topic/trees`);
  const { page } = ann;
  await page.locator('.compose-open').click();
  const box = page.getByRole('textbox', { name: 'Message', exact: true });
  const notes = page.locator('.compose-notes');
  await page.getByRole('combobox', { name: 'Topic' }).fill('✔ trees');
  await notes.getByText('This topic is resolved.').waitFor();
  await page.getByRole('combobox', { name: 'Topic' }).fill('trees');
  await notes.waitFor({ state: 'detached' });
  await box.fill('Hello @**Bo Park**');
  await notes.getByText('Bo Park is not subscribed to #garden.').waitFor();
  await ann.accessible();
  await notes.getByRole('button', { name: 'Subscribe Bo Park' }).click();
  await notes.waitFor({ state: 'detached' });
  await eventually('Bo is subscribed', async () =>
    (await parley.call(BO, 'GET', 'users/me/subscriptions')).subscriptions.some((x) => x.name === 'garden'));
});

scene('a text that is too long says by how much, and a refused message can be edited', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, ANN, '#narrow/channel/1-general/topic/lunch');
  const { page } = ann;
  await page.locator('.compose-open').click();
  const box = page.getByRole('textbox', { name: 'Message', exact: true });
  await box.fill('x'.repeat(10_003));
  await page.getByText('3 characters too long').waitFor();
  assert.ok(await page.getByRole('button', { name: 'Send', exact: true }).isDisabled());
  ann.expect(/status of 400/);
  await page.route('**/json/messages', (route) => (route.request().method() === 'POST'
    ? route.fulfill({ status: 400, contentType: 'application/json', body: JSON.stringify({ result: 'error', code: 'BAD_REQUEST', msg: 'No, thank you' }) })
    : route.continue()));
  await box.fill('Soup at noon?');
  await box.press('Control+Enter');
  const row = page.locator('.message.outgoing', { hasText: 'No, thank you' });
  await row.waitFor();
  await ann.accessible();
  await row.getByRole('button', { name: 'Edit' }).click();
  await row.waitFor({ state: 'detached' });
  await eventually('the text is in the box', async () => await box.inputValue() === 'Soup at noon?');
  await page.unroute('**/json/messages');
  await page.getByRole('button', { name: 'More ways to send' }).click();
  await page.getByRole('menuitem', { name: 'Enter sends messages', exact: true }).click();
  await stored('the setting is stored', parley, ANN, 'user_settings', (r) => r.user_settings.enter_sends);
  await box.focus();
  await box.press('Enter');
  await page.locator('.message[data-message]', { hasText: 'Soup at noon?' }).waitFor();
});
