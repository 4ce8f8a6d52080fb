// People in the own client: the status of the user and what the others see of it, and the column of people.
import assert from 'node:assert/strict';
import { ANN, BO, mainMenu, opened, stored } from './client.js';
import { eventually } from './parley.js';
import { scene } from './scene.js';

scene('a user sets and clears a status, and others see it beside the name', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, ANN);
  const bo = await opened(s, parley, BO);
  const person = bo.page.locator('.right .person', { hasText: 'Ann Lee' });
  await mainMenu(ann, 'Set a status');
  const dialog = ann.page.getByRole('dialog', { name: 'Your status' });
  await ann.accessible();
  await dialog.getByRole('button', { name: 'Emoji of the status' }).click();
  await dialog.getByRole('searchbox', { name: 'Search emoji' }).fill('rocket');
  await dialog.locator('.emoji-grid .current[title*="rocket"]').waitFor();
  await ann.page.keyboard.press('Enter');
  await dialog.getByText('🚀').waitFor();
  await dialog.getByRole('button', { name: 'On vacation' }).click();
  await dialog.getByRole('textbox', { name: 'Status' }).fill('On vacation until Monday');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await person.getByText('On vacation until Monday').waitFor();
  assert.equal(await person.locator('.status-emoji').innerText(), '🌴');
  await mainMenu(ann, 'Set a status');
  await dialog.getByRole('button', { name: 'Clear status' }).click();
  await eventually('the status is gone', async () => await person.locator('small, .status-emoji').count() === 0);
});

scene('a user becomes invisible and visible again', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, ANN);
  const isVisible = (wanted) => stored(`visible is ${wanted}`, parley, ANN, 'user_settings',
    (r) => r.user_settings.presence_enabled === wanted);
  await mainMenu(ann, 'Go invisible');
  await isVisible(false);
  await mainMenu(ann, 'Turn off invisible mode');
  await isVisible(true);
});

scene('uploaded files are listed with their messages, and deleted', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, ANN, '#narrow/channel/1-general/topic/lunch');
  await ann.page.locator('.compose-open').click();
  const chosen = ann.page.waitForEvent('filechooser');
  await ann.page.getByRole('button', { name: 'Upload files' }).click();
  await (await chosen).setFiles({ name: 'recipe.txt', mimeType: 'text/plain', buffer: Buffer.alloc(3000, 'a') });
  const field = ann.page.getByRole('textbox', { name: 'Message', exact: true });
  await eventually('the link is there', async () => /user_uploads/.test(await field.inputValue()));
  await field.press('Control+Enter');
  await ann.page.locator('.message .content a', { hasText: 'recipe.txt' }).waitFor();
  await ann.page.goto('/#settings/uploaded-files');
  const row = ann.page.getByRole('row', { name: /recipe\.txt/ });
  await row.getByText('3 kB').waitFor();
  await row.getByRole('link', { name: /^#\d+/ }).waitFor();
  await ann.accessible();
  await row.getByRole('button', { name: 'Delete: recipe.txt' }).click();
  await ann.page.getByRole('dialog', { name: 'Delete' }).getByRole('button', { name: 'Delete' }).click();
  await ann.page.getByText('No files').waitFor();
  assert.equal((await parley.call(ANN, 'GET', 'attachments')).attachments.length, 0);
});

scene('a mention of everyone in a large channel asks first', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, ANN, '#narrow/channel/1-general/topic/lunch');
  const field = ann.page.getByRole('textbox', { name: 'Message', exact: true });
  const send = async (content) => {
    await ann.page.locator('.compose-open').click();
    await field.fill(content);
    await field.press('Control+Enter');
  };
  await send('Small channel @**all**');
  await ann.page.locator('.message .content', { hasText: 'Small channel' }).waitFor();
  await ann.context.route('**/json/register', async (route) => { // the registration says that the channel is large
    const answer = await route.fetch();
    const body = await answer.json();
    for (const c of body.subscriptions) if (c.stream_id === 1) c.subscriber_count = 40;
    await route.fulfill({ response: answer, json: body });
  });
  await ann.page.reload();
  await send('Large channel @**all**');
  const dialog = ann.page.getByRole('dialog', { name: 'Notify everyone in the channel?' });
  await dialog.getByText('40 people are notified.').waitFor();
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  assert.equal(await ann.page.locator('.message .content', { hasText: 'Large channel' }).count(), 0);
  await field.press('Control+Enter');
  await dialog.getByRole('button', { name: 'Send' }).click();
  await ann.page.locator('.message .content', { hasText: 'Large channel' }).waitFor();
});

scene('in a window of medium width the people are above the messages, and close again', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, ANN, '#narrow/channel/1-general/topic/lunch',
    { viewport: { width: 900, height: 700 } });
  const { page } = ann;
  const people = page.locator('.right');
  const button = page.getByRole('button', { name: 'People', exact: true });
  const closed = () => people.waitFor({ state: 'detached' });
  await button.click();
  await people.locator('.person', { hasText: 'Bo Park' }).waitFor();
  await eventually('it ends above the compose box', async () => {
    const [column, compose] = [await people.boundingBox(), await page.locator('.compose').boundingBox()];
    return column.y + column.height <= compose.y + 1;
  });
  await ann.accessible();
  await page.keyboard.press('Escape');
  await closed();
  await eventually('the button has the focus', () => button.evaluate((el) => el === document.activeElement));
  await page.keyboard.press('w');
  await page.locator('.right input:focus').fill('bo park');
  await page.locator('.view-title').click();
  await closed();
  await button.click();
  await people.locator('.person a', { hasText: 'Bo Park' }).click();
  await closed();
  await page.locator('h1', { hasText: 'Bo Park' }).waitFor();
  await page.keyboard.press('q'); // to the filter of channels, where Enter opens the first one
  await page.locator('.left input:focus').fill('gen');
  await page.keyboard.press('Enter');
  await page.locator('h1', { hasText: 'general' }).waitFor();
});
