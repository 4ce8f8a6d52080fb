// What is written with a window or a button: polls, lists of tasks, times, files, emoji, replies to bots. And the viewer of
// pictures, and the list of recent conversations.
import assert from 'node:assert/strict';
import { ADA, ANN, BO, opened, say, text, userID } from './client.js';
import { png, upload } from './media.js';
import { eventually } from './parley.js';
import { scene } from './scene.js';

const TOPIC = '#narrow/channel/1-general/topic/lunch';
const box = (p) => p.page.getByRole('textbox', { name: 'Message', exact: true });

scene('windows write a poll, a list of tasks and a time', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, ANN, TOPIC);
  const { page } = ann;
  await page.locator('.compose-open').click();
  await page.getByRole('button', { name: 'Poll', exact: true }).click();
  const poll = page.getByRole('dialog', { name: 'New poll' });
  await poll.getByLabel('Question').fill('What to eat?');
  await poll.getByRole('textbox', { name: 'Option 1' }).fill('Soup');
  await poll.getByRole('textbox', { name: 'Option 2' }).fill('Bread');
  await poll.getByRole('textbox', { name: 'Option 3' }).fill('Rice'); // a field more appears
  await ann.accessible();
  await poll.getByRole('button', { name: 'Add poll' }).click();
  await eventually('the poll is in the text', async () => await box(ann).inputValue() === '/poll What to eat?\nSoup\nBread\nRice');
  await box(ann).press('Control+Enter');
  await page.getByRole('button', { name: /^Rice 0 votes/ }).click();
  await page.getByRole('button', { name: /^Rice 1 vote 100 %/, pressed: true }).waitFor();
  await page.getByText('1 person has voted.').waitFor();
  await page.getByRole('button', { name: 'Edit: Question' }).click();
  await page.locator('.widget').getByRole('textbox', { name: 'Question' }).fill('What to cook?');
  await page.keyboard.press('Enter');
  await page.locator('.widget strong', { hasText: 'What to cook?' }).waitFor();
  await page.getByRole('button', { name: 'Todo list', exact: true }).click();
  const todo = page.getByRole('dialog', { name: 'New todo list' });
  await todo.getByLabel('Title').fill('Shopping');
  await todo.getByRole('textbox', { name: 'Task 1' }).fill('Leeks');
  await todo.getByRole('button', { name: 'Add todo list' }).click();
  await eventually('the list is in the text', async () => await box(ann).inputValue() === '/todo Shopping\nLeeks');
  await box(ann).fill('');
  await box(ann).pressSequentially('At ');
  await page.getByRole('button', { name: 'Time', exact: true }).click();
  const time = page.getByRole('dialog', { name: 'Insert a time' });
  await time.getByLabel('Date').fill('2031-04-05');
  await time.getByRole('button', { name: 'Open the calendar' }).click();
  await page.getByRole('button', { name: 'Saturday, April 5, 2031' }).waitFor();
  await ann.accessible();
  await page.keyboard.press('ArrowDown'); // a week later
  await page.keyboard.press('PageDown'); // a month later
  await page.keyboard.press('Enter');
  assert.equal(await time.getByLabel('Date').inputValue(), '2031-05-12');
  await time.getByRole('button', { name: 'Insert', exact: true }).click();
  await time.waitFor({ state: 'detached' });
  await eventually('the text is longer', async () => (await box(ann).inputValue()).length > 5);
  assert.match(await box(ann).inputValue(), /^At <time:2031-05-1\dT\d\d:00:00Z> $/);
});

scene('the buttons of a bot send their replies', async (s) => {
  const parley = await s.serve();
  const bot = await parley.call(BO, 'POST', 'bots', { full_name: 'Cook', short_name: 'cook', bot_type: '1' });
  await parley.call(BO, 'POST', 'users/me/subscriptions',
    { subscriptions: JSON.stringify([{ name: 'general' }]), principals: JSON.stringify([bot.user_id]) });
  const choices = [{ type: 'multiple_choice', short_name: 'A', long_name: 'Soup, please', reply: 'I take the soup' }];
  const widget = { widget_type: 'zform', extra_data: { type: 'choices', heading: 'Lunch?', choices } };
  const { email } = (await parley.call(BO, 'GET', `users/${bot.user_id}`)).user;
  const cook = (method, endpoint, form) => parley.callAs(email, bot.api_key, method, endpoint, form);
  await cook('POST', 'messages', { type: 'stream', to: 'general', topic: 'lunch', content: 'Lunch?', widget_content: JSON.stringify(widget) });
  const ann = await opened(s, parley, ANN, TOPIC);
  await ann.page.getByRole('button', { name: /Soup, please/ }).waitFor();
  await ann.accessible();
  await ann.page.getByRole('button', { name: /Soup, please/ }).click();
  await ann.page.locator('.message[data-message]', { hasText: 'I take the soup' }).waitFor();
  const { messages } = await cook('GET', 'messages', { anchor: 'newest', num_before: 2, num_after: 0, apply_markdown: false,
    narrow: JSON.stringify([{ operator: 'channel', operand: 'general' }, { operator: 'topic', operand: 'lunch' }]) });
  assert.deepEqual(messages.map((m) => [m.sender_email === email, m.sender_full_name, m.content]),
    [[true, 'Cook', 'Lunch?'], [false, 'Ann Lee', 'I take the soup']]);
});

scene('files are chips above the text and cards in messages', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, ANN, TOPIC);
  const { page } = ann;
  await page.locator('.compose-open').click();
  const choose = async (name, mimeType, buffer) => {
    const chosen = page.waitForEvent('filechooser');
    await page.getByRole('button', { name: 'Upload files' }).click();
    await (await chosen).setFiles({ name, mimeType, buffer });
    await page.locator('.upload-chip', { has: page.getByRole('link', { name }) }).waitFor();
  };
  await choose('plan.pdf', 'application/pdf', Buffer.from('%PDF-1.4'));
  await choose('dot.png', 'image/png', png(200, 30, 30));
  await page.locator('.upload-chip img').waitFor();
  await ann.accessible();
  await page.getByRole('button', { name: 'Remove dot.png' }).click();
  await eventually('its link is gone', async () => !(await box(ann).inputValue()).includes('dot.png'));
  await box(ann).press('Control+Enter');
  const card = page.locator('.message[data-message] .file-card', { hasText: 'plan.pdf' });
  await card.waitFor();
  assert.equal(await card.getAttribute('data-kind'), 'PDF');
});

scene('emoji are shown by category, the last ones first', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, ANN, TOPIC);
  const { page } = ann;
  await page.locator('.compose-open').click();
  await page.getByRole('button', { name: 'Emoji', exact: true }).click();
  await page.locator('.emoji-part[data-part=people]').waitFor();
  await page.getByRole('button', { name: 'Food and drink' }).click();
  const food = page.getByRole('group', { name: 'Food and drink' });
  await food.getByRole('option', { name: 'pizza' }).click();
  await eventually('it is in the text', async () => (await box(ann).inputValue()).includes(':pizza:'));
  await page.getByRole('button', { name: 'Emoji', exact: true }).click();
  await page.getByRole('group', { name: 'Recently used' }).getByRole('option', { name: 'pizza' }).waitFor();
  await ann.accessible();
});

scene('recent conversations are filtered and sorted', async (s) => {
  const parley = await s.serve();
  await say(parley, ANN, 'Mine', 'own words');
  await say(parley, BO, 'Soup', 'lunch');
  await say(parley, BO, 'Noise', 'noise');
  await parley.call(ANN, 'POST', 'user_topics', { stream_id: '1', topic: 'noise', visibility_policy: '1' });
  await parley.call(BO, 'POST', 'messages', { type: 'direct', to: JSON.stringify([await userID(parley, ANN)]), content: 'Hello' });
  const ann = await opened(s, parley, ANN, '#recent');
  const { page } = ann;
  const names = async () => (await page.locator('.recent-topic').allInnerTexts()).filter((x) => ['own words', 'lunch', 'noise', 'Bo Park'].includes(x));
  const lists = (subject, ...all) => eventually(subject, async () => (await names()).join() === all.join());
  const press = (name) => page.locator('.recent-tools').getByRole('button', { name }).click();
  await lists('without muted ones', 'Bo Park', 'lunch', 'own words');
  await ann.accessible();
  await press('Participated');
  await lists('those that Ann wrote in', 'own words');
  await press('Participated');
  await press('With muted ones');
  await lists('with muted ones', 'Bo Park', 'noise', 'lunch', 'own words');
  await page.locator('.recent-heads').getByRole('button', { name: 'Conversation' }).click();
  await eventually('sorted by name', async () => (await names()).indexOf('lunch') < (await names()).indexOf('noise'));
  await press('Direct messages');
  await lists('direct ones', 'Bo Park');
  await press('Unread');
  await lists('unread direct ones', 'Bo Park');
  await page.locator('.recent-tools').getByRole('searchbox').fill('zebra');
  await page.getByRole('button', { name: 'Show all conversations' }).click();
  await eventually('all are back', async () => (await names()).length === 3);
});

scene('the viewer of pictures names the sender, enlarges, downloads and goes through all pictures', async (s) => {
  const parley = await s.serve();
  for (const [name, shade] of [['one.png', 200], ['two.png', 100]]) {
    const url = await upload(parley, BO, name, 'image/png', png(shade, 30, 30));
    await say(parley, BO, `[${name}](${url})`, 'lunch');
  }
  const ann = await opened(s, parley, ANN, TOPIC);
  const { page } = ann;
  await page.locator('.message_inline_image img').nth(1).waitFor();
  await page.locator('.message_inline_image a').first().click();
  const viewer = page.getByRole('dialog', { name: 'one.png' });
  await viewer.getByText('Bo Park').waitFor();
  await ann.accessible();
  const width = () => viewer.locator('.lightbox-picture img').evaluate((el) => el.getBoundingClientRect().width);
  const before = await width();
  await page.keyboard.press('+');
  await eventually('the picture is larger', async () => await width() > before * 1.4);
  await page.keyboard.press('0');
  await eventually('it fits again', async () => Math.abs(await width() - before) < 1);
  assert.equal(await viewer.getByRole('link', { name: 'Download' }).getAttribute('download'), 'one.png');
  await page.keyboard.press('ArrowRight');
  await page.getByRole('dialog', { name: 'two.png' }).waitFor();
  await page.locator('.lightbox-strip').getByRole('button', { name: 'one.png' }).click();
  await viewer.getByRole('button', { name: 'Go to the message' }).click();
  await page.waitForURL(/near\/\d+$/);
  await text(ann, 'one.png').or(page.locator('.message_inline_image')).first().waitFor();
  assert.ok(await userID(parley, ADA));
});
