// A large organization, where the registration lists only some of the users: the others are fetched when they are shown,
// and found by the server. PARLEY_CROWD changes the number of users.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { eventually } from './parley.js';
import { scene } from './scene.js';

const USERS = Number(process.env.PARLEY_CROWD || 20_000);
const READER = 'u0@crowd.example.org';
const OTHER = `u${USERS - 77}@crowd.example.org`;
const NAME = `User ${USERS - 77}`;
const SENDER = `u${USERS - 5}@crowd.example.org`;

scene('people outside of the short list are found, written to, shown and mentioned', async (s) => {
  const data = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'parley-people-')), 'data');
  const parley = await s.serve('--data', data, '--short-user-list', '1', '--demo-crowd',
    `users=${USERS},channels=1,zipf=0,messages=20`);
  await parley.setPassword(READER, OTHER, SENDER);
  const me = await s.profile(parley);
  await me.logIn(READER);
  const register = await parley.call(READER, 'POST', 'register',
    { client_capabilities: JSON.stringify({ short_user_list: true }) });
  assert.ok(register.realm_users_incomplete);
  assert.ok(register.realm_users.length < 200);
  // a message of a user that is not in the list has the name, and its card has the rest
  await parley.call(SENDER, 'POST', 'messages', { type: 'stream', to: 'crowd 0', topic: 'people', content: 'A word' });
  await me.page.goto('/#narrow/channel/1-crowd-0/topic/people');
  const message = me.page.locator('.message', { hasText: 'A word' });
  await message.getByRole('button', { name: `About User ${USERS - 5}` }).first().click();
  await me.page.locator('.card').getByText(SENDER).waitFor();
  await me.page.keyboard.press('Escape');
  // the column of people searches on the server
  await me.page.getByRole('searchbox', { name: 'Filter people' }).fill(NAME);
  await me.page.locator('.right .person', { hasText: NAME }).locator('a').click();
  const field = me.page.getByRole('textbox', { name: 'Message', exact: true });
  if (!await field.isVisible()) await me.page.locator('.compose-open').click();
  await field.fill('Hello from far away');
  await field.press('Control+Enter');
  await me.page.locator('.message .content', { hasText: 'Hello from far away' }).waitFor();
  const { user_id: reader } = await parley.call(READER, 'GET', 'users/me');
  await parley.call(OTHER, 'POST', 'messages', { type: 'direct', to: JSON.stringify([reader]), content: 'An answer' });
  const answer = me.page.locator('.message', { hasText: 'An answer' });
  await answer.getByText(NAME).first().waitFor();
  // a name that changes is shown
  await parley.call(OTHER, 'PATCH', 'settings', { full_name: 'Somebody Renamed' });
  await answer.getByText('Somebody Renamed').first().waitFor();
  // a mention of a user that is not known yet
  if (!await field.isVisible()) await me.page.locator('.compose-open').click();
  await field.fill('');
  await field.pressSequentially('@User 1234');
  await me.page.getByRole('option', { name: /User 1234\b/ }).first().click();
  await eventually('the mention is there', async () => /@\*\*User 1234\|\d+\*\*/.test(await field.inputValue()));
  await field.press('Control+Enter');
  await me.page.locator('.message .content .user-mention', { hasText: 'User 1234' }).waitFor();
  // after a reload the conversation has its name
  await me.page.reload();
  await me.page.locator('.message', { hasText: 'An answer' }).getByText('Somebody Renamed').first().waitFor();
});

scene('administrators find users of a large organization page by page', async (s) => {
  const data = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'parley-people-')), 'data');
  const parley = await s.serve('--data', data, '--short-user-list', '1', '--demo-crowd', 'users=3000,channels=1,zipf=0');
  const owner = 'owner@crowd.example.org';
  await parley.setPassword(owner);
  const me = await s.profile(parley);
  await me.logIn(owner);
  await me.page.goto('/#organization/users');
  const rows = me.page.locator('.row-table tbody tr');
  await eventually('the first page is there', async () => await rows.count() === 50);
  await me.page.getByRole('button', { name: 'Show more' }).click();
  await eventually('the second page is there', async () => await rows.count() === 100);
  await me.page.getByRole('searchbox', { name: 'Filter', exact: true }).fill('user 2999');
  await eventually('the user is found', async () => await rows.count() === 1);
  await me.page.getByRole('button', { name: 'Deactivate: User 2999' }).click();
  await me.page.getByRole('dialog').getByRole('button', { name: 'Deactivate', exact: true }).click();
  await me.page.getByRole('tab', { name: 'Deactivated' }).click();
  await rows.getByText('User 2999').waitFor();
});
