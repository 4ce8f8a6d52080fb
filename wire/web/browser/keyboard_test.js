// Shortcuts of the own client for the selected message and for places.
import assert from 'node:assert/strict';
import { ANN, BO, opened, say, text, userID } from './client.js';
import { eventually, sleep } from './parley.js';
import { scene } from './scene.js';

const TOPIC = '#narrow/channel/1-general/topic/lunch';
const box = (p) => p.page.getByRole('textbox', { name: 'Message', exact: true });
const closeBox = async (p) => {
  await box(p).press('Escape');
  await box(p).waitFor({ state: 'detached' });
};

scene('the keyboard replies, mentions, forwards and writes to the sender', async (s) => {
  const parley = await s.serve();
  await say(parley, BO, 'Bread or rice?');
  const ann = await opened(s, parley, ANN, TOPIC);
  await ann.page.locator('.message.selected', { hasText: 'Bread or rice?' }).waitFor();
  const { keyboard } = ann.page;
  await keyboard.press('@');
  await eventually('the sender is mentioned', async () => await box(ann).inputValue() === '@**Bo Park** ');
  await box(ann).fill('');
  await closeBox(ann);
  await keyboard.press('Shift+R');
  await ann.page.locator('.compose .pill', { hasText: 'Bo Park' }).waitFor();
  await closeBox(ann);
  await keyboard.press('<');
  await eventually('the quotation is there', async () => (await box(ann).inputValue()).includes('Bread or rice?'));
  await eventually('the topic has the cursor', () => ann.page.evaluate(() => document.activeElement?.dataset.compose === 'topic'));
  await box(ann).fill('');
  await box(ann).press('Escape');
  await keyboard.press('u');
  await ann.page.getByRole('dialog', { name: 'Bo Park' }).waitFor();
  await keyboard.press('Escape');
  await keyboard.press('g');
  await ann.page.getByRole('menuitem', { name: 'Log out' }).waitFor();
});

scene('the keyboard reacts, collapses and edits the last own message', async (s) => {
  const parley = await s.serve();
  await say(parley, ANN, 'My own words');
  const { id } = await say(parley, BO, 'Good news');
  await parley.call(BO, 'POST', `messages/${id}/reactions`, { emoji_name: 'tada' });
  const ann = await opened(s, parley, ANN, TOPIC);
  await ann.page.locator('.message.selected', { hasText: 'Good news' }).waitFor();
  const { keyboard } = ann.page;
  await keyboard.press('=');
  await ann.page.locator('.reaction.mine', { hasText: '🎉' }).waitFor();
  await keyboard.press('+');
  await ann.page.locator('.reaction.mine', { hasText: '👍' }).waitFor();
  await keyboard.press('-');
  await eventually('the text is hidden', async () => await text(ann, 'Good news').count() === 0);
  const flags = async () => (await parley.call(ANN, 'GET', `messages/${id}`)).message.flags;
  await eventually('it is stored', async () => (await flags()).includes('collapsed'));
  await ann.page.getByRole('button', { name: 'Show the message' }).click();
  await text(ann, 'Good news').waitFor();
  await ann.page.locator('body').click({ position: { x: 1, y: 1 } });
  await keyboard.press('ArrowLeft');
  const editor = ann.page.getByRole('textbox', { name: 'Text of the message' });
  await eventually('the own message is edited', async () => await editor.inputValue() === 'My own words');
});

scene('the keyboard goes between channels, conversations and followed topics', async (s) => {
  const parley = await s.serve();
  await say(parley, BO, 'Soup', 'lunch');
  await parley.call(ANN, 'POST', 'user_topics', { stream_id: '1', topic: 'followed one', visibility_policy: '3' });
  const ann = await opened(s, parley, ANN, TOPIC);
  await ann.page.locator('.message.selected', { hasText: 'Soup' }).waitFor();
  const { keyboard } = ann.page;
  const at = (pattern) => eventually(`the address fits ${pattern}`, () => pattern.test(new URL(ann.page.url()).hash));
  await keyboard.press('s');
  await at(/^#narrow\/channel\/1-general$/);
  await ann.page.locator('.message.selected').waitFor();
  await keyboard.press('z');
  await at(/\/topic\/.*\/(near|with)\/\d+$/);
  await keyboard.press('Shift+D');
  await at(/^#narrow\/channel\/(?!1-)\d+-/);
  await keyboard.press('Shift+A');
  await at(/^#narrow\/channel\/1-general$/);
  await keyboard.press('Shift+I'); // a channel on the screen would mark them as read
  await ann.page.locator('h1', { hasText: 'Inbox' }).waitFor();
  await say(parley, BO, 'Not this', 'another');
  await say(parley, BO, 'This', 'followed one');
  await ann.page.locator('.inbox-entry', { hasText: 'followed one' }).waitFor();
  await keyboard.press('Shift+N');
  await at(/followed/);
});

scene('all messages of the inbox are marked as read after a question', async (s) => {
  const parley = await s.serve();
  await say(parley, BO, 'One', 'first');
  await say(parley, BO, 'Two', 'second');
  const ann = await opened(s, parley, ANN);
  await ann.page.locator('.inbox-entry', { hasText: 'second' }).waitFor();
  await ann.page.getByRole('button', { name: 'Mark all as read' }).click();
  const dialog = ann.page.getByRole('dialog', { name: 'Mark all as read?' });
  await ann.accessible();
  await dialog.getByRole('button', { name: 'Mark as read' }).click();
  await ann.page.getByText('All read.').waitFor();
  assert.ok(await userID(parley, ANN));
  await eventually('the server knows', async () => {
    const { unread_msgs: unread } = await parley.call(ANN, 'POST', 'register', { fetch_event_types: '["message","update_message_flags"]' });
    return unread.count === 0;
  });
});

scene('channels of the inbox collapse, and the choice of topics and the filter decide what is listed', async (s) => {
  const parley = await s.serve();
  await say(parley, BO, 'One', 'first');
  await say(parley, BO, 'Two', 'second');
  await say(parley, BO, 'Three', 'noise');
  await parley.call(ANN, 'POST', 'user_topics', { stream_id: '1', topic: 'noise', visibility_policy: '1' });
  await parley.call(ANN, 'POST', 'user_topics', { stream_id: '1', topic: 'first', visibility_policy: '3' });
  const ann = await opened(s, parley, ANN);
  const { keyboard } = ann.page;
  const rows = async () => (await ann.page.locator('.inbox-entry .grow').allTextContents())
    .filter((x) => ['first', 'second', 'noise'].includes(x));
  const lists = (subject, ...names) => eventually(subject, async () => (await rows()).join() === names.join());
  const hasFocus = (name) => eventually(`${name} has the focus`, () => ann.page.evaluate(
    (n) => document.activeElement.closest('li')?.textContent.includes(n), name));
  const choose = async (name) => {
    await ann.page.getByRole('button', { name: /^Topics that are listed/ }).click();
    await ann.page.getByRole('menuitem', { name }).click();
  };
  await lists('the standard view', 'second', 'first');
  await choose('All topics');
  await lists('all topics', 'noise', 'second', 'first');
  await choose('Followed topics');
  await lists('followed topics', 'first');
  await choose(/standard view/);
  await keyboard.press('Shift+I'); // in the inbox: to the filter
  await keyboard.type('gen sec');
  await lists('the filter', 'second');
  await ann.accessible();
  await keyboard.press('ArrowDown');
  await keyboard.press('ArrowDown');
  await hasFocus('second');
  const filter = ann.page.getByRole('searchbox', { name: 'Filter conversations' });
  await filter.press('Escape');
  await lists('Escape empties the filter', 'second', 'first');
  assert.equal(await filter.inputValue(), '');
  await ann.page.locator('.inbox-entry', { hasText: 'second' }).focus();
  await keyboard.press('ArrowLeft');
  await keyboard.press('ArrowLeft');
  await lists('the channel is collapsed');
  await ann.page.reload();
  await ann.page.getByRole('button', { name: 'general', exact: true, expanded: false }).press('Enter');
  await lists('the channel is expanded', 'second', 'first');
  await ann.page.locator('.inbox-entry', { hasText: 'second' }).press('ArrowRight');
  await keyboard.press('ArrowRight');
  await keyboard.press('Enter'); // marks the topic as read
  await lists('the topic is read', 'first');
  await hasFocus('first');
  await ann.page.getByRole('button', { name: 'Mark as read: general' }).press('Enter');
  await lists('the channel is read');
});

scene('the preview opens and closes with the keyboard', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, ANN, TOPIC);
  await ann.page.locator('.compose-open').click();
  await box(ann).fill('**bold**');
  await box(ann).press('Alt+p');
  await ann.page.locator('.compose-preview strong', { hasText: 'bold' }).waitFor();
  await ann.accessible();
  await ann.page.keyboard.press('Alt+p');
  assert.equal(await box(ann).inputValue(), '**bold**');
  await box(ann).press('Control+Shift+L');
  await eventually('a link is there', async () => (await box(ann).inputValue()).includes('](url)'));
});

scene('the keyboard opens the list of all topics of a channel', async (s) => {
  const parley = await s.serve();
  await say(parley, BO, 'Soup', 'lunch');
  for (let i = 1; i <= 12; i++) await say(parley, BO, `Text ${i}`, `topic ${i}`);
  await say(parley, BO, 'The lamp works', '✔ lamp');
  const ann = await opened(s, parley, ANN, TOPIC);
  await ann.page.locator('.message.selected', { hasText: 'Soup' }).waitFor();
  await ann.page.keyboard.press('y');
  await ann.page.locator('h1', { hasText: 'Topics' }).waitFor();
  assert.match(new URL(ann.page.url()).hash, /^#topics\/channel\/1-general$/);
  const lines = ann.page.locator('.recent-topic');
  await eventually('all topics are there, the newest first', async () => {
    const names = await lines.allTextContents();
    return names[0] === 'lamp' && names[1] === 'topic 12' && names.includes('topic 1') && names.includes('lunch');
  });
  await ann.accessible();
  await say(parley, BO, 'Text 1 again', 'topic 1');
  await eventually('the newest topic moves up', async () => (await lines.allTextContents())[0] === 'topic 1');
  const one = ann.page.locator('.recent-line').first();
  await one.locator('.count', { hasText: '2' }).waitFor();
  await parley.call(ANN, 'POST', 'user_topics', { stream_id: '1', topic: 'topic 1', visibility_policy: '3' });
  await one.getByRole('img', { name: 'Followed' }).waitFor();
  await ann.page.getByRole('searchbox', { name: 'Filter topics' }).fill('lun');
  await eventually('one topic is left', async () => (await lines.allTextContents()).join() === 'lunch');
  await ann.page.getByRole('searchbox', { name: 'Filter topics' }).fill('breakfast');
  await ann.page.getByText('Nothing found').waitFor();
  await ann.page.getByRole('searchbox', { name: 'Filter topics' }).fill('lunch');
  await ann.page.getByRole('link', { name: 'lunch' }).last().click();
  await text(ann, 'Soup').waitFor();
  await ann.page.goto('/#topics/channel/999');
  await ann.page.getByText('There is no such channel').waitFor();
});

scene('Control+[ closes and goes home as Escape does, and Shift+Space scrolls up', async (s) => {
  const parley = await s.serve();
  for (let i = 1; i <= 40; i++) await say(parley, ANN, `Line ${i}\n\nmore\n\nmore`);
  const ann = await opened(s, parley, ANN, TOPIC);
  await ann.page.locator('.message.selected', { hasText: 'Line 40' }).waitFor();
  const { keyboard } = ann.page;
  const top = () => ann.page.locator('.virtual').evaluate((el) => el.scrollTop);
  const before = await top();
  await keyboard.press('Shift+Space');
  await eventually('the list has scrolled up', async () => await top() < before - 100);
  const middle = await top();
  await keyboard.press('Space');
  await eventually('the list has scrolled down', async () => await top() > middle + 100);
  await ann.page.locator('.compose-open').click();
  await box(ann).fill('unfinished');
  await box(ann).press('Control+[');
  await box(ann).waitFor({ state: 'detached' });
  await ann.page.getByRole('combobox', { name: 'Search' }).press('Control+[');
  await keyboard.press('Control+[');
  await ann.page.locator('h1', { hasText: 'Inbox' }).waitFor();
});

scene('the help sheet names the key that sends', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, ANN);
  await ann.page.keyboard.press('?');
  const keys = (line) => ann.page.getByRole('row', { name: line }).locator('kbd').allTextContents();
  assert.deepEqual(await keys(/^Send /), ['Ctrl+Enter']);
  assert.deepEqual(await keys(/^New line /), ['Enter', 'Shift+Enter']);
  assert.deepEqual(await keys(/^All topics of the channel/), ['y']);
  await parley.call(ANN, 'PATCH', 'settings', { enter_sends: 'true' });
  await eventually('Enter sends', async () => (await keys(/^Send /)).join() === 'Enter');
  assert.deepEqual(await keys(/^New line /), ['Ctrl+Enter', 'Shift+Enter']);
});

scene('the keyboard goes through drafts, deletes one and edits another', async (s) => {
  const parley = await s.serve();
  const timestamp = Math.floor(Date.now() / 1000) - 100;
  const draft = (content, age) => ({ type: 'stream', to: [1], topic: 'lunch', content, timestamp: timestamp - age });
  await parley.call(ANN, 'POST', 'drafts',
    { drafts: JSON.stringify([draft('newest', 0), draft('middle', 1), draft('oldest', 2)]) });
  const ann = await opened(s, parley, ANN);
  const { keyboard } = ann.page;
  await keyboard.press('d');
  const entry = (content) => ann.page.locator('.saved-list li', { hasText: content });
  const hasFocus = (content) => eventually(`${content} has the focus`, () => entry(content).evaluate((el) => el === document.activeElement));
  await entry('oldest').waitFor();
  await keyboard.press('ArrowDown');
  await hasFocus('newest');
  await keyboard.press('ArrowDown');
  await hasFocus('middle');
  await ann.accessible();
  await keyboard.press('Backspace');
  await entry('middle').waitFor({ state: 'detached' });
  await hasFocus('oldest');
  await keyboard.press('ArrowUp');
  await hasFocus('newest');
  await keyboard.press('Enter');
  await eventually('the draft is in the box', async () => await box(ann).inputValue() === 'newest');
  const { drafts } = await parley.call(ANN, 'GET', 'drafts');
  assert.ok(!drafts.some((d) => d.content === 'middle'), 'the deleted draft is gone on the server');
});

scene('windows keep the keys to themselves, and the key that opened one closes it', async (s) => {
  const parley = await s.serve();
  await say(parley, BO, 'Soup?');
  const ann = await opened(s, parley, ANN);
  const { keyboard } = ann.page;
  const window = (name) => ann.page.getByRole('dialog', { name, exact: true });
  await keyboard.press('d');
  await window('Drafts').waitFor();
  await keyboard.press('a');
  await keyboard.press('n');
  assert.equal(new URL(ann.page.url()).hash, '#drafts');
  await keyboard.press('d');
  await window('Drafts').waitFor({ state: 'detached' });
  await keyboard.press('?');
  await window('Keyboard shortcuts').waitFor();
  await keyboard.press('?');
  await window('Keyboard shortcuts').waitFor({ state: 'detached' });
  await keyboard.press('g');
  await ann.page.getByRole('menuitem', { name: 'Log out' }).waitFor();
  await keyboard.press('g');
  await ann.page.getByRole('menuitem', { name: 'Log out' }).waitFor({ state: 'detached' });
  await keyboard.press('c'); // in the inbox, which has no bar to write
  await ann.page.getByLabel('Topic', { exact: true }).waitFor();
  await keyboard.press('Escape');
  await ann.page.goto(`/${TOPIC}`);
  await ann.page.locator('.message.selected', { hasText: 'Soup?' }).waitFor();
  await keyboard.press('r');
  await box(ann).press('ArrowUp'); // from the empty box to the messages
  await box(ann).waitFor({ state: 'detached' });
  await keyboard.press('r');
  await box(ann).fill('Yes');
  await box(ann).press('Tab');
  await keyboard.press('Enter');
  await text(ann, 'Yes').waitFor();
});

scene('a key has its effect before the next one, also in a slow browser', async (s) => {
  const parley = await s.serve();
  await say(parley, BO, 'Soup?');
  const ann = await opened(s, parley, ANN, TOPIC);
  await ann.page.locator('.message.selected', { hasText: 'Soup?' }).waitFor();
  // after returns the name of the element with the focus in the next task of the page, before a new frame.
  const after = (act, detail) => ann.page.evaluate(async ([what, x]) => {
    if (what === 'click') document.querySelector(x).click();
    else document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: x, bubbles: true, cancelable: true }));
    await new Promise((done) => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = done;
      port2.postMessage(0);
    });
    return document.activeElement.ariaLabel;
  }, [act, detail]);
  assert.equal(await after('key', 'w'), 'Filter people');
  await ann.page.keyboard.press('Escape');
  assert.equal(await after('key', 'q'), 'Filter channels and people');
  await ann.page.keyboard.press('Escape');
  assert.equal(await after('key', 'r'), 'Message');
  await box(ann).pressSequentially('@');
  await ann.page.getByRole('option', { name: 'Bo Park' }).waitFor(); // for the first letter, too
  await box(ann).fill('');
  await closeBox(ann);
  assert.equal(await after('key', 'x'), 'People');
  await ann.page.keyboard.press('Escape');
  await box(ann).waitFor({ state: 'detached' });
  await ann.page.locator('[data-main-menu]').focus();
  assert.equal(await after('key', '?'), 'Keyboard shortcuts');
  assert.equal(await after('click', 'dialog .icon-button'), 'Main menu');
});

scene('keys are not shortcuts of the page while a window is fetched', async (s) => {
  const parley = await s.serve();
  await say(parley, ANN, 'Soup?');
  const ann = await opened(s, parley, ANN, TOPIC);
  await ann.page.locator('.message.selected', { hasText: 'Soup?' }).waitFor();
  const parts = [];
  await ann.page.route(/(picker|move)-[^/]*\.js/, (r) => parts.push(() => r.continue()));
  const held = () => eventually('the part is asked for', () => parts.length > 0);
  await ann.page.keyboard.press(':');
  await held();
  await ann.page.keyboard.type('tada');
  assert.equal(new URL(ann.page.url()).hash, `${TOPIC}`, 'a letter has opened another view');
  parts.pop()();
  await ann.page.getByRole('searchbox', { name: 'Search emoji' }).fill('tada');
  await ann.page.keyboard.press('Escape');
  await ann.page.keyboard.press('m');
  await held();
  await ann.page.keyboard.type('ta');
  assert.equal(new URL(ann.page.url()).hash, `${TOPIC}`, 'a letter has opened another view');
  parts.pop()();
  await ann.page.getByRole('dialog', { name: 'Move messages' }).waitFor();
});

scene('a star and a reaction that are set, removed and set at once stay set', async (s) => {
  const parley = await s.serve();
  const { id } = await say(parley, BO, 'Good news');
  const ann = await opened(s, parley, ANN, TOPIC);
  await ann.page.locator('.message.selected', { hasText: 'Good news' }).waitFor();
  const delays = { reactions: 600, starred: 600 }; // milliseconds: an earlier request is slower than a later one
  const kindOf = (r) => Object.keys(delays).find((x) => r.url().endsWith(x) || r.postData()?.includes(x));
  await ann.context.route('**/json/messages/**', async (r) => {
    const kind = kindOf(r.request());
    if (!kind) return r.continue();
    const delay = delays[kind];
    delays[kind] = Math.max(0, delay - 300);
    await sleep(delay);
    return r.continue();
  });
  let answered = 0;
  ann.page.on('requestfinished', (r) => { if (kindOf(r)) answered += 1; });
  for (const key of ['+', '+', '+', 'Control+s', 'Control+s', 'Control+s']) await ann.page.keyboard.press(key);
  await eventually('all requests are answered', () => answered === 6);
  const { message } = await parley.call(ANN, 'GET', `messages/${id}`);
  assert.deepEqual([message.flags.includes('starred'), message.reactions.length], [true, 1]);
  await ann.page.locator('.reaction.mine').waitFor();
  await ann.page.locator('.message-tools.starred').waitFor();
  assert.equal(await ann.page.getByRole('alert').count(), 0, 'a request was refused');
});

scene('the left key edits a message that is still being sent, once the server has it', async (s) => {
  const parley = await s.serve();
  await say(parley, ANN, 'The one before');
  const ann = await opened(s, parley, ANN, TOPIC);
  await text(ann, 'The one before').waitFor();
  const waiting = [];
  await ann.context.route('**/json/messages', (r) => (r.request().method() === 'POST' ? waiting.push(r) : r.continue()));
  const editor = ann.page.getByRole('textbox', { name: 'Text of the message' });
  const send = async (content) => {
    await box(ann).fill(content);
    await box(ann).press('Control+Enter');
    await ann.page.locator('.outgoing', { hasText: content }).waitFor();
  };
  await ann.page.locator('.compose-open').click();
  await send('The newest');
  await box(ann).press('ArrowLeft');
  await eventually('the request waits', () => waiting.length > 0);
  assert.equal(await editor.count(), 0, 'another message is edited');
  waiting.pop().continue();
  await eventually('the newest is edited', async () => await editor.inputValue() === 'The newest');
  await editor.press('Escape');
  await editor.waitFor({ state: 'detached' });
  // A user that goes on writing is not interrupted.
  await box(ann).focus();
  await send('One more');
  await box(ann).press('ArrowLeft');
  await box(ann).pressSequentially('And');
  await eventually('the request waits', () => waiting.length > 0);
  waiting.pop().continue();
  await ann.page.locator('.message[data-message]', { hasText: 'One more' }).waitFor();
  await box(ann).pressSequentially(' more');
  assert.equal(await box(ann).inputValue(), 'And more');
  assert.equal(await editor.count(), 0);
});

scene('the window of channels is used with the keyboard', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, ANN, '#channels/subscribed');
  const { keyboard } = ann.page;
  const row = (name) => ann.page.locator('[data-row]', { hasText: name });
  await row('general').waitFor();
  await keyboard.press('ArrowRight');
  await row('board games').or(row('open house')).first().waitFor();
  await keyboard.press('ArrowDown');
  const first = ann.page.locator('[data-row]').first();
  await eventually('the first channel has the focus', () => first.evaluate((el) => el === document.activeElement));
  const before = await first.locator('[data-subscribe]').innerText();
  await keyboard.press('Shift+S');
  await eventually('the subscription changes', async () => await first.locator('[data-subscribe]').innerText() !== before);
  await ann.accessible();
  await keyboard.press('n');
  await ann.page.getByRole('dialog', { name: 'New channel' }).waitFor();
  await keyboard.press('Escape');
  await ann.page.goto('/#channels/all');
  await row('general').waitFor();
  await keyboard.press('ArrowDown');
  await keyboard.press('Shift+V');
  await eventually('the channel is open', () => /^#narrow\/channel\//.test(new URL(ann.page.url()).hash));
});

scene('End marks all as read and opens the newest, a view around one message marks none', async (s) => {
  const parley = await s.serve();
  const { id: first } = await say(parley, BO, 'Line 1');
  for (let i = 2; i <= 30; i++) await say(parley, BO, `Line ${i}\n\nmore\n\nmore`);
  const ann = await opened(s, parley, ANN, `${TOPIC}/near/${first}`);
  await text(ann, 'Line 1').first().waitFor();
  const unread = ann.page.locator('.side-link.topic', { hasText: 'lunch' }).locator('.count');
  await eventually('none is read', async () => await unread.innerText() === '30');
  await ann.page.getByText('This view does not mark messages as read.').waitFor();
  await ann.accessible();
  await ann.page.keyboard.press('End');
  await text(ann, 'Line 30').waitFor();
  await unread.waitFor({ state: 'detached' });
});
