// The fields for one of several options: they are searched by typing, and the keyboard does all that the mouse does.
import assert from 'node:assert/strict';
import { ADA, ANN, BO, opened, pick, stored, userID } from './client.js';
import { eventually } from './parley.js';
import { scene } from './scene.js';

scene('a long list is searched by typing, and only the options in its window exist', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, ANN, '#settings/profile');
  const { page } = ann;
  const field = page.getByLabel('Time zone');
  await field.focus();
  await page.keyboard.press('ArrowDown');
  const options = page.locator('.picker-option');
  await options.first().waitFor();
  const size = Number(await options.first().getAttribute('aria-setsize'));
  assert.ok(size > 300, `${size} time zones`);
  assert.ok(await options.count() < 40, 'few of them are in the document');
  await ann.accessible();
  await page.keyboard.type('tokyo');
  await eventually('one is left', async () => (await options.allInnerTexts()).join() === 'Asia/Tokyo');
  const id = await field.getAttribute('aria-activedescendant');
  assert.equal(await page.locator(`[id="${id}"]`).innerText(), 'Asia/Tokyo', 'the field names it');
  await page.keyboard.press('Escape');
  await options.first().waitFor({ state: 'detached' });
  assert.equal(await page.locator('dialog.settings').count(), 1, 'Escape closes the list only');
  await page.keyboard.type('tokyo');
  await page.keyboard.press('Enter');
  await eventually('the zone is chosen', async () => await field.inputValue() === 'Asia/Tokyo');
  await eventually('it is stored', async () => (await parley.call(ANN, 'GET', 'users/me')).timezone === 'Asia/Tokyo');
  await page.keyboard.press('ArrowDown'); // opens the list at the chosen one
  await page.locator('.picker-option.current', { hasText: 'Asia/Tokyo' }).waitFor();
  await page.keyboard.press('PageDown');
  await eventually('the list has gone on', async () => await page.locator('.picker-option.current', { hasText: 'Asia/Tokyo' }).count() === 0);
  await page.keyboard.press('Tab');
  await options.first().waitFor({ state: 'detached' });
  assert.equal(await field.inputValue(), 'Asia/Tokyo', 'leaving the field changes nothing');
});

scene('in a short list a letter goes to the next option, and the mouse chooses one', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, ANN, '#settings/preferences');
  const { page } = ann;
  const field = page.getByRole('combobox', { name: 'Home view' });
  await field.focus();
  await page.keyboard.press('r');
  await page.locator('.picker-option.current', { hasText: 'Recent conversations' }).waitFor();
  await ann.accessible();
  await page.keyboard.press('Enter');
  await stored('the home view is stored', parley, ANN, 'user_settings', (r) => r.user_settings.web_home_view === 'recent');
  await pick(field, 'Inbox');
  await stored('the other one is stored', parley, ANN, 'user_settings', (r) => r.user_settings.web_home_view === 'inbox');
  assert.equal(await page.locator('select').count(), 0, 'the page has none of the browser\'s lists');
});

scene('the channel and the topic of a message are searched, and system bots get no direct messages', async (s) => {
  const parley = await s.serve();
  await parley.call(ADA, 'POST', 'users/me/subscriptions',
    { subscriptions: JSON.stringify([{ name: 'garden' }]), principals: JSON.stringify([await userID(parley, ANN)]) });
  await parley.call(ADA, 'POST', 'messages', { type: 'stream', to: 'garden', topic: 'trees and leaves', content: 'x' })
    .catch(() => parley.call(ADA, 'POST', 'users/me/subscriptions', { subscriptions: JSON.stringify([{ name: 'garden' }]) }));
  await parley.call(ANN, 'POST', 'messages', { type: 'stream', to: 'garden', topic: 'trees and leaves', content: 'x' });
  const ann = await opened(s, parley, ANN, '#narrow/channel/1-general');
  const { page } = ann;
  await page.locator('.compose-open').click();
  await pick(page.locator('.compose').getByRole('combobox', { name: 'Channel' }), 'garden');
  const topic = page.getByRole('combobox', { name: 'Topic' });
  await topic.click();
  await page.keyboard.type('lea');
  await page.getByRole('option', { name: 'trees and leaves' }).waitFor();
  await ann.accessible();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  assert.equal(await topic.inputValue(), 'trees and leaves');
  assert.ok(await page.locator('.compose-text').evaluate((el) => el === document.activeElement), 'the text has the cursor');
  await page.keyboard.press('Escape');
  await page.keyboard.press('x');
  const people = page.getByRole('combobox', { name: 'People' });
  await people.pressSequentially('bo');
  await page.getByRole('option', { name: /^Bo Park/ }).waitFor();
  assert.equal(await page.getByRole('option', { name: /Notification Bot|Welcome Bot/ }).count(), 0);
  await ann.accessible();
});

scene('an administrator edits a user: name, profile fields, groups, channels', async (s) => {
  const parley = await s.serve();
  await parley.call(ADA, 'POST', 'realm/profile_fields', { name: 'Floor', field_type: '1' });
  await parley.call(ADA, 'POST', 'user_groups/create', { name: 'cooks', description: '', members: '[]' });
  await parley.call(ADA, 'POST', 'users/me/subscriptions', { subscriptions: JSON.stringify([{ name: 'garden' }]) });
  const ada = await opened(s, parley, ADA, '#organization/users');
  const { page } = ada;
  await page.getByRole('columnheader', { name: 'Last active' }).getByRole('button').click();
  await page.getByRole('columnheader', { name: 'Last active' }).and(page.locator('[aria-sort=ascending]')).waitFor();
  await ada.accessible();
  await page.getByRole('button', { name: 'Edit: Bo Park' }).click();
  const dialog = page.getByRole('dialog', { name: /^Edit / });
  await dialog.getByLabel('Full name').fill('Bo Stone');
  await dialog.getByLabel('Floor').fill('third');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await pick(dialog.getByLabel('Add to a group'), 'cooks');
  await pick(dialog.getByLabel('Subscribe to a channel'), 'garden');
  await dialog.getByRole('button', { name: 'Remove cooks' }).waitFor();
  await dialog.getByRole('button', { name: 'Remove garden' }).waitFor();
  await ada.accessible();
  await eventually('all is stored', async () => {
    const bo = await parley.call(BO, 'GET', 'users/me');
    const { user_groups: groups } = await parley.call(ADA, 'GET', 'user_groups');
    const { subscriptions } = await parley.call(BO, 'GET', 'users/me/subscriptions');
    return bo.full_name === 'Bo Stone' && Object.values(bo.profile_data).some((x) => x.value === 'third')
      && groups.find((g) => g.name === 'cooks').members.includes(bo.user_id) && subscriptions.some((x) => x.name === 'garden');
  });
  await dialog.getByRole('button', { name: 'Remove garden' }).click();
  await eventually('the channel is left', async () =>
    !(await parley.call(BO, 'GET', 'users/me/subscriptions')).subscriptions.some((x) => x.name === 'garden'));
  await page.keyboard.press('Escape');
  await page.getByRole('tab', { name: 'Users' }).press('ArrowRight');
  await page.getByText('No user is deactivated.').waitFor();
});
