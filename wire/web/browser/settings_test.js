// Settings and administration in Parley's own client: each section changes something, and the server has it.
import assert from 'node:assert/strict';
import { scene } from './scene.js';
import { pick } from './client.js';
import { eventually } from './parley.js';

// opened logs a user of a server in and opens a section.
async function opened(s, parley, email, section) {
  await parley.setPassword(email);
  const p = await s.profile(parley);
  await p.logIn(email);
  await p.visit(`/#${section}`);
  await p.page.locator('.settings-title').waitFor();
  return p;
}

// goTo opens another section and waits for it: a field of the same name in the section before must not be filled.
async function goTo(page, name) {
  await page.getByRole('navigation', { name: 'Sections' }).getByRole('link', { name, exact: true }).click();
  await page.locator('.settings-title').getByText(name, { exact: true }).waitFor();
}

const users = async (parley) => (await parley.call('olive@example.org', 'GET', 'users')).members;
const userOf = async (parley, email) => (await users(parley)).find((u) => u.delivery_email === email);

scene('the setup page of integrations creates a bot, and its address writes into the channel', async (s) => {
  const parley = await s.serve();
  const { page } = await opened(s, parley, 'ann@example.org', 'settings/integrations');
  await pick(page.getByRole('combobox', { name: 'Service' }), 'Hello World');
  await page.getByLabel('Name of the bot').fill('Greeter');
  await pick(page.getByRole('combobox', { name: 'Channel' }), 'general');
  await page.getByRole('textbox', { name: 'Topic' }).fill('from outside');
  await page.getByRole('button', { name: 'Create bot' }).click();
  const address = await page.getByRole('textbox', { name: 'Address of the webhook' }).inputValue();
  const { pathname, search } = new URL(address);
  assert.equal(pathname, '/api/v1/external/helloworld');
  const fields = JSON.stringify({ featured_title: 'Marilyn Monroe', featured_url: 'https://example.org/m' });
  const answer = await fetch(`${parley.site}${pathname}${search}`,
    { method: 'POST', headers: { 'content-type': 'application/json' }, body: fields });
  assert.equal(answer.status, 200, await answer.text());
  const { messages } = await parley.call('ann@example.org', 'GET', 'messages', { anchor: 'newest', num_before: 1,
    num_after: 0, narrow: JSON.stringify([['topic', 'from outside']]) });
  assert.equal(messages[0].sender_full_name, 'Greeter');
  assert.match(messages[0].content, /Marilyn Monroe/);
});

scene('the setup page stores the secret of signatures and limits the events', async (s) => {
  const parley = await s.serve();
  const { page } = await opened(s, parley, 'ann@example.org', 'settings/integrations');
  await pick(page.getByRole('combobox', { name: 'Service' }), 'GitHub');
  await page.getByLabel(/Secret of the signatures/).fill('s3cret');
  await page.getByText('Events', { exact: true }).click();
  for (const box of await page.locator('.event-list input').all()) {
    await box.setChecked(await box.getAttribute('value') === 'star');
  }
  await page.getByRole('button', { name: 'Create bot' }).click();
  const address = await page.getByRole('textbox', { name: 'Address of the webhook' }).inputValue();
  assert.equal(new URL(address).searchParams.get('only_events'), '["star"]');
  const { bots } = await parley.call('ann@example.org', 'GET', 'bots');
  assert.deepEqual(bots[0].services[0].config_data.signature_secret, 's3cret');
});

scene('an administrator changes a permission, and another open page follows', async (s) => {
  const parley = await s.serve();
  const ada = await opened(s, parley, 'ada@example.org', 'organization/organization-permissions');
  const ann = await opened(s, parley, 'ann@example.org', 'organization/organization-permissions');
  const field = (p) => p.page.getByLabel('Add custom emoji');
  assert.equal(await field(ann).isDisabled(), true);
  await pick(field(ada), 'Moderators and above');
  await ada.page.getByText('Saved', { exact: true }).waitFor();
  await eventually('the other page follows', async () => await field(ann).inputValue() === await field(ada).inputValue());
});

scene('an administrator changes a role and deactivates and reactivates a user', async (s) => {
  const parley = await s.serve();
  const ada = await opened(s, parley, 'ada@example.org', 'organization/users');
  const { page } = ada;
  await pick(page.getByLabel('Role of Bo Park'), 'Moderator');
  await eventually('the role is stored', async () => (await userOf(parley, 'bo@example.org')).role === 300);
  assert.equal(await page.getByLabel('Role of Ada Admin').isDisabled(), true);
  ada.expect(/status of 400/);
  await pick(page.getByLabel('Role of Olive Owner'), 'Member');
  await page.getByText(/organization owner/i).first().waitFor();
  await page.getByRole('button', { name: 'Deactivate: Bo Park' }).click();
  await page.getByRole('dialog', { name: 'Deactivate' }).getByRole('button', { name: 'Deactivate' }).click();
  await eventually('Bo is deactivated', async () => !(await userOf(parley, 'bo@example.org')).is_active);
  await page.getByRole('tab', { name: 'Deactivated' }).click();
  await page.getByRole('button', { name: 'Reactivate: Bo Park' }).click();
  await eventually('Bo is active', async () => (await userOf(parley, 'bo@example.org')).is_active);
});

scene('an administrator invites by email and by link, and revokes', async (s) => {
  const parley = await s.serve();
  const { page } = await opened(s, parley, 'ada@example.org', 'organization/invites');
  const form = page.getByRole('form', { name: 'Invite by email' });
  await form.getByLabel(/Email addresses/).fill('new@example.org');
  await form.getByRole('button', { name: 'Send invitations' }).click();
  await form.getByText('The invitations were sent.').waitFor();
  await page.getByRole('cell', { name: 'new@example.org', exact: true }).waitFor();
  await page.getByRole('form', { name: 'Invite by link' }).getByRole('button', { name: 'Create link' }).click();
  const link = await page.getByRole('textbox', { name: 'Invitation link' }).inputValue();
  assert.match(link, /\/join\//);
  await page.getByRole('button', { name: 'Revoke: new@example.org' }).click();
  await page.getByRole('dialog', { name: 'Revoke' }).getByRole('button', { name: 'Revoke' }).click();
  await eventually('one invitation is left', async () =>
    (await parley.call('ada@example.org', 'GET', 'invites')).invites.length === 1);
});

scene('a user changes name, alert words and muted users, and adds a bot', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, 'ann@example.org', 'settings/profile');
  const { page } = ann;
  await page.getByLabel('Full name').fill('Ann Leeds');
  await page.getByRole('button', { name: 'Save name' }).click();
  await eventually('the name is stored', async () => (await userOf(parley, 'ann@example.org')).full_name === 'Ann Leeds');
  await goTo(page, 'Account');
  ann.expect(/status of 40\d/);
  await page.getByLabel('Old password').fill('wrong');
  await page.getByLabel('New password').fill('another good pass 42');
  await page.getByRole('button', { name: 'Change password' }).click();
  await page.getByRole('alert').getByText('Wrong password!').waitFor();
  await goTo(page, 'Alert words');
  await page.getByRole('button', { name: 'Add an alert word' }).click();
  await page.getByLabel(/^Word/).fill('lunch');
  await page.getByRole('button', { name: 'Add', exact: true }).click();
  await page.getByRole('button', { name: 'Remove: lunch' }).click();
  await page.getByText('No alert words').waitFor();
  await goTo(page, 'Muted users');
  await page.getByRole('button', { name: 'Mute a user' }).click();
  await pick(page.getByRole('combobox', { name: 'User' }), 'Bo Park');
  await page.getByRole('button', { name: 'Mute', exact: true }).click();
  await page.getByRole('button', { name: 'Unmute: Bo Park' }).waitFor();
  await goTo(page, 'Bots');
  await page.getByRole('button', { name: 'Add a bot' }).click();
  await page.getByLabel('Name', { exact: true }).fill('Helper');
  await page.getByLabel(/^Address/).fill('helper');
  await page.getByRole('button', { name: 'Add bot', exact: true }).click();
  await page.getByRole('button', { name: 'Deactivate: Helper' }).waitFor();
  await goTo(page, 'Notifications');
  await page.getByLabel('Sounds of channels').click();
  await page.getByText('Saved', { exact: true }).waitFor();
});

scene('an owner changes profile, linkifiers, playgrounds, profile fields and retention', async (s) => {
  const parley = await s.serve();
  const { page } = await opened(s, parley, 'olive@example.org', 'organization/organization-profile');
  const begin = (what) => page.getByRole('button', { name: what, exact: true }).click();
  const add = () => page.getByRole('button', { name: 'Add', exact: true }).click();
  await page.getByLabel('Organization name').fill('New name');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await eventually('the name is stored', async () =>
    (await parley.call('ann@example.org', 'GET', 'server_settings')).realm_name === 'New name');
  await goTo(page, 'Linkifiers');
  await begin('Add a linkifier');
  await page.getByLabel(/^Pattern/).fill('#(?P<id>[0-9]+)');
  await page.getByLabel(/^Address template/).fill('https://example.org/{id}');
  await add();
  await page.getByRole('button', { name: /^Remove: / }).waitFor();
  await goTo(page, 'Code playgrounds');
  await begin('Add a playground');
  await page.getByLabel('Name', { exact: true }).fill('Play');
  await page.getByLabel('Language').fill('Go');
  await page.getByLabel(/^Address template/).fill('https://example.org/{code}');
  await add();
  await page.getByRole('button', { name: 'Remove: Play' }).waitFor();
  await goTo(page, 'Profile fields');
  await begin('Add a profile field');
  await page.getByLabel('Name', { exact: true }).fill('Team');
  await add();
  await page.getByRole('button', { name: 'Remove: Team' }).waitFor();
  await goTo(page, 'Data retention');
  await pick(page.getByLabel(/Keep messages/), '90 days');
  await page.getByText('Saved', { exact: true }).waitFor();
  await pick(page.getByLabel(/Keep messages/), 'Forever');
  await eventually('messages are kept for ever', async () =>
    (await parley.call('ann@example.org', 'POST', 'register', { fetch_event_types: '["realm"]' })).realm_message_retention_days === -1);
  await pick(page.getByLabel(/Keep messages/), '90 days');
  await page.getByText('Saved', { exact: true }).waitFor();
  await goTo(page, 'Channels');
  await page.getByRole('button', { name: 'Archive: general' }).waitFor();
  await goTo(page, 'Exports');
  await page.getByText('No exports').waitFor();
  await goTo(page, 'Custom emoji');
  await page.getByText('No custom emoji').waitFor();
});
