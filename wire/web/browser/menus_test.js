// The menus of channels and topics, the card of a user, and the main menu.
import assert from 'node:assert/strict';
import { ADA, ANN, BO, OLIVE, opened, say, text, userID } from './client.js';
import { eventually } from './parley.js';
import { scene } from './scene.js';

const CLIPBOARD = { permissions: ['clipboard-read', 'clipboard-write'] };
const copied = (page) => page.evaluate(() => navigator.clipboard.readText());

scene('the menu of a channel marks it as unread, copies its link, colours it, puts it into a folder and leaves it', async (s) => {
  const parley = await s.serve();
  const { channel_folder_id: folder } = await parley.call(ADA, 'POST', 'channel_folders/create', { name: 'Places', description: '' });
  await say(parley, BO, 'Soup', 'lunch');
  const ada = await opened(s, parley, ADA, '#inbox', CLIPBOARD);
  const { page } = ada;
  const row = page.locator('.left .side-row', { hasText: 'general' }).first();
  const item = async (name) => {
    await row.hover();
    await page.locator('.left').getByRole('button', { name: 'Actions of general' }).click();
    await page.getByRole('menuitem', { name, exact: true }).click();
  };
  await item('Mark all as read');
  await row.locator('.count').waitFor({ state: 'detached' });
  await item('Mark all as unread');
  await row.locator('.count').waitFor();
  await item('Copy link');
  assert.match(await copied(page), /\/#narrow\/channel\/1-general$/);
  await item('Color');
  await page.locator('.popover').getByRole('radio', { name: 'Violet' }).waitFor({ state: 'attached' });
  await ada.accessible();
  await page.locator('.popover .colour[title=Violet]').click();
  await eventually('the mark has the colour', () => page.evaluate(() =>
    [...document.querySelectorAll('.left .channel-mark')].some((x) => getComputedStyle(x).color === 'rgb(189, 134, 229)')));
  await item('Folder');
  await page.getByRole('menuitem', { name: 'Places' }).click();
  await eventually('the folder is stored', async () => (await parley.call(ADA, 'GET', 'streams/1')).stream.folder_id === folder);
  await page.locator('.left').getByRole('button', { name: /Places/ }).waitFor();
  await item('Unsubscribe');
  await row.waitFor({ state: 'detached' });
});

scene('the menu of a topic resolves, renames and deletes it, also when its messages were not fetched', async (s) => {
  const parley = await s.serve();
  await say(parley, BO, 'Soup', 'lunch');
  await say(parley, BO, 'Bread', 'dinner');
  const ada = await opened(s, parley, ADA, '#inbox', CLIPBOARD);
  const { page } = ada;
  const entry = (name) => page.locator('.inbox-row', { hasText: name });
  const item = async (name, choice) => {
    await entry(name).hover();
    await entry(name).getByRole('button', { name: 'Actions of the topic' }).click();
    await page.getByRole('menuitem', { name: choice, exact: true }).click();
  };
  await item('lunch', 'Copy link');
  assert.match(await copied(page), /topic\/lunch$/);
  await item('lunch', 'Mark as resolved');
  await entry('lunch').locator('.icon').first().waitFor();
  await item('dinner', 'Rename or move');
  const move = page.getByRole('dialog', { name: 'Move messages' });
  assert.equal(await move.getByRole('combobox', { name: 'Messages' }).inputValue(), 'All messages of the topic');
  await move.getByLabel('Topic', { exact: true }).fill('supper');
  await move.getByRole('button', { name: 'Move' }).click();
  await entry('supper').waitFor();
  await item('supper', 'Delete topic');
  await page.getByRole('dialog', { name: 'Delete the topic supper?' }).getByRole('button', { name: 'Delete' }).click();
  await entry('supper').waitFor({ state: 'detached' });
  const bo = await opened(s, parley, BO, '#narrow/channel/1-general');
  await bo.page.locator('.topics .side-row').first().hover();
  await bo.page.locator('.topics').getByRole('button', { name: 'Actions of the topic' }).first().click();
  await bo.page.getByRole('menuitem', { name: 'Copy link' }).waitFor();
  assert.equal(await bo.page.getByRole('menuitem', { name: 'Delete topic' }).count(), 0, 'a member cannot delete topics');
});

scene('the card of a user mentions them, copies their address and opens their administration; one of a bot names its owner', async (s) => {
  const parley = await s.serve();
  await say(parley, BO, 'Soup', 'lunch');
  await parley.call(BO, 'POST', 'bots', { full_name: 'Helper', short_name: 'helper', bot_type: '1' });
  const ada = await opened(s, parley, ADA, '#narrow/channel/1-general/topic/lunch', CLIPBOARD);
  const { page } = ada;
  await text(ada, 'Soup').waitFor();
  await page.getByRole('button', { name: 'About Bo Park' }).first().click();
  const card = page.getByRole('dialog', { name: 'Bo Park' });
  await card.getByRole('button', { name: 'Copy email' }).click();
  assert.equal(await copied(page), BO);
  await ada.accessible();
  await card.getByRole('button', { name: 'Mention' }).click();
  const box = page.getByRole('textbox', { name: 'Message', exact: true });
  await eventually('the user is mentioned', async () => await box.inputValue() === '@**Bo Park** ');
  await box.fill('');
  await box.press('Escape');
  await page.getByRole('button', { name: 'About Bo Park' }).first().click();
  await card.getByRole('button', { name: 'Manage user' }).click();
  await page.getByRole('dialog', { name: 'Edit Bo Park' }).waitFor();
  await page.keyboard.press('Escape');
  const { members } = await parley.call(ADA, 'GET', 'users');
  await page.goto(`/#user/${members.find((u) => u.full_name === 'Helper').user_id}`);
  await page.getByRole('dialog', { name: 'Helper' }).getByRole('button', { name: 'Bo Park' }).waitFor();
});

scene('a new channel opens, and the main menu has three groups', async (s) => {
  const parley = await s.serve();
  const olive = await opened(s, parley, OLIVE, '#channels/new');
  const { page } = olive;
  await page.getByLabel('Name', { exact: true }).fill('orchard');
  await page.getByRole('button', { name: 'Create' }).click();
  await page.waitForURL(/#narrow\/channel\/\d+/);
  await page.locator('h1', { hasText: 'orchard' }).waitFor();
  await page.getByRole('button', { name: 'Main menu' }).click();
  const groups = await page.locator('.menu').evaluate((menu) => [...menu.children].reduce((all, x) => {
    if (x.tagName === 'HR') all.push([]);
    else all.at(-1).push(x.textContent);
    return all;
  }, [[]]));
  assert.equal(groups.length, 3);
  assert.ok(groups[0].some((x) => x.startsWith('Settings')) && groups[1].some((x) => x.startsWith('Invite')) && groups[2].some((x) => x.startsWith('Log out')));
  assert.ok(await userID(parley, ANN));
});
