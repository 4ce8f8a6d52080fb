// The compose box: completions, uploads, and messages that wait.
import assert from 'node:assert/strict';
import { ANN, BO, opened } from './client.js';
import { eventually } from './parley.js';
import { scene } from './scene.js';

const TOPIC = '/#narrow/channel/1-general/topic/lunch';
const CLIPBOARD = { permissions: ['clipboard-read', 'clipboard-write'] };

// open logs a user in and opens the compose box of a topic.
async function open(s, name, parley) {
  const server = parley ?? await s.serve();
  await server.setPassword(`${name}@example.org`);
  const p = await s.profile(server);
  await p.logIn(`${name}@example.org`);
  await p.page.goto(TOPIC);
  await p.page.locator('.compose-open').click();
  return { server, p, field: p.page.getByRole('textbox', { name: 'Message', exact: true }) };
}

async function has(field, expected) {
  await eventually(`the text is ${expected}`, async () => await field.inputValue() === expected);
}

scene('the compose box completes people, channels, topics, emoji and commands', async (s) => {
  const { p, field } = await open(s, 'ann');
  const current = p.page.locator('.completions [aria-selected=true]');
  const type = async (text, offer) => {
    await field.pressSequentially(text);
    await current.filter({ hasText: offer }).waitFor();
  };
  await type('@bo', 'Bo Park');
  const active = await field.getAttribute('aria-activedescendant');
  await p.page.locator(`#${active}[role=option]`, { hasText: 'Bo Park' }).waitFor();
  await p.accessible();
  await p.page.keyboard.press('Enter');
  await has(field, '@**Bo Park** ');
  await type('#gene', 'general');
  await p.page.keyboard.press('Tab');
  await has(field, '@**Bo Park** #**general** ');
  await type(':tad', ':tada:');
  await p.page.keyboard.press('Enter');
  await has(field, '@**Bo Park** #**general** :tada: ');
  await field.press('Control+Enter');
  await p.page.locator('.message .user-mention', { hasText: 'Bo Park' }).waitFor();
  await type('#gene', 'general');
  await p.page.keyboard.press('>');
  await type('lu', 'lunch');
  await p.page.keyboard.press('Enter');
  await has(field, '#**general>lunch** ');
  await field.fill('');
  await type('/po', '/poll');
  await p.page.keyboard.press('ArrowDown');
  await p.page.keyboard.press('Escape');
  await current.waitFor({ state: 'detached' });
  await has(field, '/po');
});

scene('names of languages are completed after a fence, in the compose box and in an editor', async (s) => {
  const parley = await s.serve();
  await parley.call('olive@example.org', 'POST', 'realm/playgrounds', { name: 'Pony play', pygments_language: 'Pony',
    url_template: 'https://example.org/{code}' });
  const { p, field } = await open(s, 'ann', parley);
  const offers = p.page.locator('.completions [role=option]');
  const current = p.page.locator('.completions [aria-selected=true]');
  await field.pressSequentially('```p');
  await current.filter({ hasText: 'pony' }).waitFor(); // the organization has a playground for it
  await offers.filter({ hasText: 'python' }).first().waitFor();
  await p.accessible();
  await field.pressSequentially('yth');
  await current.filter({ hasText: 'python' }).waitFor();
  await p.page.keyboard.press('Enter');
  await has(field, '```python\n');
  await field.pressSequentially('print(1)\n```\n');
  await has(field, '```python\nprint(1)\n```\n');
  assert.equal(await offers.count(), 0, 'the end of the block asks for no language');
  await field.press('Control+Enter');
  await p.page.locator('.message[data-message] [data-code-language=Python]', { hasText: 'print(1)' }).waitFor();
  await field.pressSequentially('~~~spoi');
  await current.filter({ hasText: 'spoiler' }).waitFor();
  await p.page.keyboard.press('Tab');
  await has(field, '~~~spoiler ');
  await field.fill('');
  await field.press('ArrowLeft');
  const editor = p.page.getByRole('textbox', { name: 'Text of the message' });
  await has(editor, '```python\nprint(1)\n```');
  await editor.pressSequentially('\n~~~math');
  await current.filter({ hasText: 'math' }).waitFor();
  await p.page.keyboard.press('Enter');
  await has(editor, '```python\nprint(1)\n```\n~~~math\n');
});

scene('files are uploaded by the button, by paste and by drop', async (s) => {
  const { p, field } = await open(s, 'ann');
  const chosen = p.page.waitForEvent('filechooser');
  await p.page.getByRole('button', { name: 'Upload files' }).click();
  await (await chosen).setFiles({ name: 'notes [1].txt', mimeType: 'text/plain', buffer: Buffer.from('hello') });
  await eventually('the link is there', async () => /^\[notes.*\]\(\/user_uploads\/.*\)\n$/.test(await field.inputValue()));
  for (const kind of ['paste', 'drop']) {
    await field.evaluate((el, type) => {
      const data = new DataTransfer();
      data.items.add(new File([new Uint8Array(9 << 20)], `${type}.bin`));
      const how = { bubbles: true, cancelable: true };
      el.dispatchEvent(type === 'paste' ? new ClipboardEvent(type, { ...how, clipboardData: data })
        : new DragEvent(type, { ...how, dataTransfer: data }));
    }, kind);
    await eventually(`the ${kind} is uploaded`, async () => new RegExp(`\\[${kind}.bin\\]\\(/user_uploads/`).test(await field.inputValue()));
  }
  await field.press('Control+Enter');
  await p.page.locator('.message .content a', { hasText: 'drop.bin' }).waitFor();
});

scene('an upload can be cancelled', async (s) => {
  const { p, field } = await open(s, 'ann');
  await p.context.route('**/api/v1/tus/*', () => {}); // the piece never arrives
  const chosen = p.page.waitForEvent('filechooser');
  await p.page.getByRole('button', { name: 'Upload files' }).click();
  await (await chosen).setFiles({ name: 'slow.txt', mimeType: 'text/plain', buffer: Buffer.from('hello') });
  await p.page.getByRole('progressbar', { name: 'slow.txt' }).waitFor();
  await p.accessible();
  await p.page.getByRole('button', { name: 'Cancel the upload of slow.txt' }).click();
  await p.page.locator('.uploads').waitFor({ state: 'detached' });
  await has(field, '');
});

scene('drafts, scheduled messages and reminders are kept on the server', async (s) => {
  const { p, field } = await open(s, 'ann');
  await field.fill('Not yet finished');
  await field.press('Escape');
  await p.page.goto('/#drafts');
  await p.page.reload();
  await p.page.locator('.saved-list', { hasText: 'Not yet finished' }).waitFor();
  await p.accessible();
  await p.page.getByRole('dialog').getByRole('button', { name: 'Edit' }).click();
  await has(field, 'Not yet finished');
  await field.press('Control+Enter');
  await p.page.locator('.message[data-message] .content', { hasText: 'Not yet finished' }).waitFor();
  await p.page.goto('/#drafts');
  await p.page.getByText('You have no drafts.').waitFor();
  await p.page.getByRole('dialog').getByRole('button', { name: 'Close' }).first().click();
  await field.fill('Good morning');
  await p.page.getByRole('button', { name: 'More ways to send' }).click();
  await p.page.getByRole('menuitem', { name: 'Send later' }).click();
  await p.page.getByRole('button', { name: 'Tomorrow' }).click();
  await p.accessible();
  const schedules = [];
  await p.context.route('**/json/scheduled_messages', (r) => schedules.push(r));
  await p.page.getByRole('button', { name: 'Schedule' }).click();
  await p.page.getByRole('button', { name: 'Schedule' }).click(); // on a slow network users click again
  await eventually('the request waits', () => schedules.length > 0);
  schedules[0].continue();
  await has(field, '');
  assert.equal(schedules.length, 1, 'the message is scheduled once');
  await p.page.goto('/#scheduled');
  await p.page.locator('.saved-list .content', { hasText: 'Good morning' }).waitFor();
  await p.page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await p.page.getByText('You have no scheduled messages.').waitFor();
  await p.page.getByRole('dialog').getByRole('button', { name: 'Close' }).first().click();
  await p.page.locator('.message').hover();
  await p.page.locator('.message').getByRole('button', { name: 'Message actions' }).click();
  await p.page.getByRole('menuitem', { name: 'Remind me' }).click();
  await p.page.getByLabel('Note').fill('Ask again');
  await p.page.getByRole('dialog').getByRole('button', { name: 'Remind me' }).click();
  await p.page.getByText('You will be reminded').waitFor();
  await p.page.goto('/#reminders');
  await p.page.locator('.saved-list .content', { hasText: 'Ask again' }).waitFor();
  await p.accessible();
});

scene('a video call is a link to a room of the organization\'s Jitsi server, if it has one', async (s) => {
  const { server, p, field } = await open(s, 'ann');
  const call = p.page.getByRole('button', { name: 'Add a video call' });
  await p.page.getByRole('button', { name: 'Snippets' }).waitFor();
  assert.equal(await call.count(), 0, 'the organization has no calls at first');
  await server.call('olive@example.org', 'PATCH', 'realm', { jitsi_server_url: '"https://jitsi.example.org/"' });
  await server.call('olive@example.org', 'PATCH', 'realm', { video_chat_provider: '1' });
  await call.click();
  const link = /^\[Join video call\.\]\(https:\/\/jitsi\.example\.org\/\d{15}#config\.startWithVideoMuted=false\)$/;
  await eventually('the link is there', async () => link.test(await field.inputValue()));
  const first = await field.inputValue();
  await p.accessible();
  await field.press('Control+Enter');
  const href = await p.page.locator('.message .content a', { hasText: 'Join video call.' }).getAttribute('href');
  assert.ok(first.includes(href), `${href} is the address that was written`);
  await call.click();
  await eventually('a link is there', async () => link.test(await field.inputValue()));
  assert.notEqual(await field.inputValue(), first, 'each call has a room of its own');
  await p.page.getByRole('button', { name: 'Preview', exact: true }).click();
  await p.page.locator('.compose-preview a', { hasText: 'Join video call.' }).waitFor();
  assert.ok(await call.isDisabled(), 'the preview has no text to write into');
  await p.page.keyboard.press('Escape');
  await server.call('olive@example.org', 'PATCH', 'realm', { video_chat_provider: '0' });
  await call.waitFor({ state: 'detached' });
});

scene('all tools of the compose box can be reached on a phone, and Send stays in view', async (s) => {
  const server = await s.serve();
  await server.call('olive@example.org', 'PATCH', 'realm', { jitsi_server_url: '"https://jitsi.example.org"' });
  await server.call('olive@example.org', 'PATCH', 'realm', { video_chat_provider: '1' });
  await server.setPassword('ann@example.org');
  const p = await s.profile(server, { viewport: { width: 375, height: 740 }, hasTouch: true });
  await p.logIn('ann@example.org');
  await p.page.goto(TOPIC);
  await p.page.locator('.compose-open').click();
  const inside = async (name) => {
    const box = await p.page.getByRole('button', { name, exact: true }).boundingBox();
    return box.x >= 0 && box.x + box.width <= 375;
  };
  for (const name of ['Send', 'Preview', 'More ways to send', 'Bold']) assert.ok(await inside(name), `${name} is in view`);
  await p.page.getByRole('button', { name: 'Add a video call' }).click(); // scrolls to it
  const field = p.page.getByRole('textbox', { name: 'Message', exact: true });
  await eventually('the link is there', async () => (await field.inputValue()).startsWith('[Join video call.]'));
  assert.ok(await inside('Send'), 'Send is still in view');
  await p.accessible();
});

scene('the tools mark the selected text and undo that, lists go on, and addresses become links', async (s) => {
  const parley = await s.serve();
  const { page } = await opened(s, parley, ANN, TOPIC.slice(1), CLIPBOARD);
  await page.locator('.compose-open').click();
  const box = page.getByRole('textbox', { name: 'Message', exact: true });
  const select = (from, to) => box.evaluate((el, [a, b]) => el.setSelectionRange(a, b), [from, to]);
  await box.fill('read the docs');
  await select(9, 13);
  await box.press('Control+b');
  await has(box, 'read the **docs**');
  await box.press('Control+i');
  await has(box, 'read the ***docs***');
  await box.press('Control+b');
  await has(box, 'read the *docs*');
  await box.press('Control+i');
  await has(box, 'read the docs');
  await page.evaluate(() => navigator.clipboard.writeText('https://example.org/docs'));
  await box.press('Control+v');
  await has(box, 'read the [docs](https://example.org/docs)');
  await box.press('Control+z');
  await has(box, 'read the docs');
  await box.fill('');
  await page.keyboard.type('1. one\ntwo\n\nEnd <tim');
  await page.locator('.completions [role=option]').first().waitFor();
  await page.keyboard.press('Enter');
  await eventually('a time is there', async () => /^1\. one\n2\. two\n\nEnd <time:[-\dT:]+Z> $/.test(await box.inputValue()));
});

scene('a selection of several messages is copied with the names of their senders', async (s) => {
  const parley = await s.serve();
  for (const [who, what] of [[ANN, 'Soup?'], [BO, 'Yes'], [ANN, 'At noon']]) {
    await parley.call(who, 'POST', 'messages', { type: 'stream', to: 'general', topic: 'copied', content: what });
  }
  const { page } = await opened(s, parley, ANN, '#narrow/channel/1-general/topic/copied', CLIPBOARD);
  await page.locator('.message .content', { hasText: 'At noon' }).waitFor();
  await page.evaluate(() => {
    const all = document.querySelectorAll('.message .content');
    getSelection().setBaseAndExtent(all[0].querySelector('p').firstChild, 2, all[1].querySelector('p').firstChild, 2);
  });
  await page.keyboard.press('Control+c');
  await eventually('both are copied', async () =>
    await page.evaluate(() => navigator.clipboard.readText()) === 'Ann Lee: Soup?\nBo Park: Yes');
});
