// Channels, user groups and profiles of the own client: their pages, with two people at once.
import assert from 'node:assert/strict';
import { pick } from './client.js';
import { eventually } from './parley.js';
import { scene } from './scene.js';

const PAGE = { ada: 'ada@example.org', ann: 'ann@example.org', bo: 'bo@example.org' };

async function opened(s, parley, name, address) {
  await parley.setPassword(PAGE[name]);
  const p = await s.profile(parley);
  await p.logIn(PAGE[name]);
  await p.page.goto(`/${address}`);
  await p.page.locator('.view-header, dialog').first().waitFor();
  return p;
}

const channel = async (parley, id = 1) => (await parley.call(PAGE.ada, 'GET', `streams/${id}`)).stream;
const me = async (parley, name) => (await parley.call(PAGE[name], 'GET', 'users/me')).user_id;
const dialog = (p) => p.page.getByRole('dialog').last();
const groupOf = async (parley, name) =>
  (await parley.call(PAGE.ada, 'GET', 'user_groups')).user_groups.find((g) => g.name === name);

scene('a switch and a choice keep the new value until the event comes', async (s) => {
  const parley = await s.serve();
  const { page, context } = await opened(s, parley, 'ann', '#channels/1/general/personal');
  let pass;
  const held = new Promise((resolve) => { pass = resolve; });
  await context.route('**/json/events?*', async (route) => { await held; await route.continue().catch(() => {}); });
  // The poll that is parked now brings the first event; the next one is held.
  await page.getByLabel('Pin to the top').click();
  await page.getByText('Saved', { exact: true }).first().waitFor();
  await page.getByLabel('Mute channel').click();
  await page.getByText('Saved', { exact: true }).first().waitFor();
  await pick(page.getByLabel('Emails'), 'On');
  await eventually('all is stored', async () => {
    const { subscriptions } = await parley.call(PAGE.ann, 'GET', 'users/me/subscriptions');
    const sub = subscriptions.find((x) => x.stream_id === 1);
    return sub.is_muted && sub.pin_to_top && sub.email_notifications;
  });
  assert.equal(await page.getByLabel('Mute channel').isChecked(), true);
  assert.equal(await page.getByLabel('Emails').inputValue(), 'On');
  pass();
  await eventually('the sidebar shows it', async () => await page.locator('.left li.muted', { hasText: 'general' }).count() > 0);
  assert.equal(await page.getByLabel('Mute channel').isChecked(), true);
  assert.equal(await page.getByLabel('Pin to the top').isChecked(), true);
});

scene('a switch and a choice show the stored value after a refusal, with the error', async (s) => {
  const parley = await s.serve();
  const ada = await opened(s, parley, 'ada', '#channels/1/general/general');
  const { page, context } = ada;
  ada.expect(/status of 400/);
  await context.route('**/json/streams/1', (route) => route.fulfill({ status: 400, contentType: 'application/json',
    body: JSON.stringify({ result: 'error', code: 'BAD_REQUEST', msg: 'No, thank you' }) }));
  const field = page.getByLabel('Access');
  await pick(field, 'Private, shared history');
  await page.getByRole('alert').getByText('No, thank you').waitFor();
  assert.equal(await field.inputValue(), 'Public');
  const box = page.getByLabel('New users are subscribed');
  const before = await box.isChecked();
  await box.click();
  await eventually('the box is as before', async () => await box.isChecked() === before);
  await eventually('both errors are shown', async () => await page.getByRole('alert').getByText('No, thank you').count() === 2);
});

scene('an administrator changes name, description, access and topics of a channel, and another page follows', async (s) => {
  const parley = await s.serve();
  const ada = await opened(s, parley, 'ada', '#channels/1/general/general');
  const bo = await opened(s, parley, 'bo', '#channels/1/general/general');
  await ada.accessible();
  await ada.page.getByLabel('Name', { exact: true }).fill('plaza');
  await ada.page.getByLabel('Description').fill('The place in the middle');
  await ada.page.getByRole('button', { name: 'Save', exact: true }).click();
  await eventually('the name is stored', async () => (await channel(parley)).name === 'plaza');
  await bo.page.getByRole('dialog', { name: 'plaza' }).waitFor();
  assert.equal(await bo.page.getByLabel('Name', { exact: true }).isDisabled(), true);
  await bo.page.getByText('You cannot change this channel.').waitFor();
  await pick(ada.page.getByLabel('Messages without a topic'), 'Not allowed');
  await eventually('the policy is stored', async () => (await channel(parley)).topics_policy === 'disable_empty_topic');
  await eventually('the other page has the policy', async () =>
    await bo.page.getByLabel('Messages without a topic').inputValue() === 'Not allowed');
  await pick(ada.page.getByLabel('Access'), 'Private, shared history');
  await eventually('the channel is private', async () => (await channel(parley)).invite_only);
  await eventually('the other page has the access', async () =>
    await bo.page.getByLabel('Access').inputValue() === 'Private, shared history');
});

scene('permissions of a channel are changed, and another page follows', async (s) => {
  const parley = await s.serve();
  const ada = await opened(s, parley, 'ada', '#channels/1/general/permissions');
  const bo = await opened(s, parley, 'bo', '#channels/1/general/permissions');
  await ada.accessible();
  assert.equal(await bo.page.getByLabel('Send messages').isDisabled(), true);
  await pick(ada.page.getByLabel('Send messages'), 'Moderators and above');
  await eventually('the other page follows', async () =>
    await bo.page.getByLabel('Send messages').inputValue() === await ada.page.getByLabel('Send messages').inputValue());
  const { msg } = await parley.call(PAGE.bo, 'POST', 'messages', { type: 'stream', to: 'general', topic: 'x', content: 'x' })
    .catch((err) => ({ msg: err.message }));
  assert.match(msg, /BAD_REQUEST|STREAM|permission|authorized/i);
});

scene('subscribers are added and removed, and their sidebars follow', async (s) => {
  const parley = await s.serve();
  await parley.call(PAGE.ada, 'POST', 'users/me/subscriptions', { subscriptions: JSON.stringify([{ name: 'garden' }]) });
  const ada = await opened(s, parley, 'ada', '#channels/all');
  const bo = await opened(s, parley, 'bo', '#inbox');
  await ada.page.getByRole('link', { name: 'Settings of garden' }).click();
  await dialog(ada).getByText('Created by').getByRole('button', { name: 'Ada Admin' }).click();
  await ada.page.locator('dialog .popover').getByRole('dialog', { name: 'Ada Admin' }).waitFor();
  await ada.page.keyboard.press('Escape'); // closes the card only
  await ada.page.locator('dialog .popover').waitFor({ state: 'detached' });
  await dialog(ada).getByRole('link', { name: 'Subscribers' }).click();
  await ada.page.getByText('1 subscriber', { exact: true }).waitFor();
  await ada.accessible();
  await pick(ada.page.getByRole('combobox', { name: 'User' }), 'Bo Park');
  await ada.page.getByRole('button', { name: 'Add', exact: true }).click();
  await ada.page.getByText('2 subscribers', { exact: true }).waitFor();
  await bo.page.locator('.left .side-link', { hasText: 'garden' }).waitFor();
  await ada.page.getByRole('button', { name: 'Unsubscribe: Bo Park' }).click();
  await ada.page.getByText('1 subscriber', { exact: true }).waitFor();
  await eventually('the channel left the sidebar', async () => await bo.page.locator('.left .side-link', { hasText: 'garden' }).count() === 0);
});

scene('after leaving a channel its subscribers are fetched again', async (s) => {
  const parley = await s.serve();
  const bo = await opened(s, parley, 'bo', '#channels/1/general/subscribers');
  const leave = bo.page.getByRole('button', { name: 'Unsubscribe: Bo Park' });
  await leave.click();
  await eventually('Bo left', async () => await leave.count() === 0);
  await bo.page.getByRole('list', { name: 'Subscribers' }).getByText('Ann Lee').waitFor();
});

scene('a channel is archived and restored', async (s) => {
  const parley = await s.serve();
  await parley.call(PAGE.ada, 'POST', 'users/me/subscriptions',
    { subscriptions: JSON.stringify([{ name: 'garden' }]), principals: JSON.stringify([await me(parley, 'ada'), await me(parley, 'bo')]) });
  const { stream_id: id } = await parley.call(PAGE.ada, 'GET', 'get_stream_id', { stream: 'garden' });
  const ada = await opened(s, parley, 'ada', `#channels/${id}/garden/general`);
  const bo = await opened(s, parley, 'bo', '#inbox');
  await bo.page.locator('.left .side-link', { hasText: 'garden' }).waitFor();
  await ada.page.getByRole('button', { name: 'Archive channel' }).click();
  await dialog(ada).getByRole('button', { name: 'Archive', exact: true }).click();
  await ada.page.getByText('The channel is archived.').waitFor();
  await eventually('the channel left the sidebar', async () => await bo.page.locator('.left .side-link', { hasText: 'garden' }).count() === 0);
  await ada.page.getByRole('button', { name: 'Restore channel' }).click();
  await bo.page.locator('.left .side-link', { hasText: 'garden' }).waitFor();
});

scene('a group is created, gets members and a permission, and is deactivated', async (s) => {
  const parley = await s.serve();
  const ada = await opened(s, parley, 'ada', '#groups/all');
  const bo = await opened(s, parley, 'bo', '#groups/all');
  await ada.accessible();
  await ada.page.getByRole('button', { name: 'New user group' }).click();
  await ada.page.getByLabel('Name', { exact: true }).fill('cooks');
  await ada.page.getByLabel('Description').fill('The kitchen');
  await ada.page.getByRole('button', { name: 'Create', exact: true }).click();
  await ada.page.getByRole('dialog', { name: 'cooks' }).waitFor();
  await ada.accessible();
  await bo.page.getByRole('link', { name: 'cooks' }).waitFor();
  await pick(ada.page.getByRole('combobox', { name: 'User' }), 'Bo Park');
  await ada.page.getByRole('button', { name: 'Add', exact: true }).click();
  await bo.page.goto('/#groups/your');
  await bo.page.getByRole('link', { name: 'cooks' }).click();
  await bo.page.getByRole('list', { name: 'Members' }).getByText('Bo Park').waitFor();
  await bo.page.getByText('You cannot change this group.').waitFor();
  await pick(ada.page.getByLabel('Mention the group'), 'Moderators and above');
  await eventually('the other page follows', async () =>
    await bo.page.getByLabel('Mention the group').inputValue() === await ada.page.getByLabel('Mention the group').inputValue());
  await ada.page.getByRole('button', { name: 'Deactivate group' }).click();
  await dialog(ada).getByRole('button', { name: 'Deactivate', exact: true }).click();
  await bo.page.getByText('The group is deactivated.').waitFor();
  await ada.page.getByRole('button', { name: 'Reactivate group' }).click();
  await eventually('the group is back', async () => (await groupOf(parley, 'cooks'))?.deactivated === false);
});

scene('groups contain groups, and members leave and join', async (s) => {
  const parley = await s.serve();
  const members = JSON.stringify([await me(parley, 'bo')]);
  await parley.call(PAGE.ada, 'POST', 'user_groups/create', { name: 'cooks', description: '', members });
  await parley.call(PAGE.ada, 'POST', 'user_groups/create', { name: 'bakers', description: '', members: '[]' });
  const { id } = await groupOf(parley, 'cooks');
  const everyone = (await groupOf(parley, 'role:members')).id;
  await parley.call(PAGE.ada, 'PATCH', `user_groups/${id}`, { can_join_group: JSON.stringify({ new: everyone }) });
  const ada = await opened(s, parley, 'ada', `#groups/${id}`);
  const bo = await opened(s, parley, 'bo', `#groups/${id}`);
  await pick(ada.page.getByRole('combobox', { name: 'Group', exact: true }), 'bakers');
  await ada.page.getByRole('button', { name: 'Add group' }).click();
  await bo.page.getByRole('link', { name: 'bakers' }).waitFor();
  await ada.page.getByRole('button', { name: 'Remove: bakers' }).click();
  await eventually('the subgroup is gone', async () => await bo.page.getByRole('link', { name: 'bakers' }).count() === 0);
  await bo.page.getByRole('button', { name: 'Leave' }).click();
  await bo.page.getByRole('button', { name: 'Join' }).click();
  await ada.page.getByRole('list', { name: 'Members' }).getByText('Bo Park').waitFor();
  await bo.page.getByRole('button', { name: 'Leave' }).waitFor();
});

scene('the profile of a user opens from the card and follows changes', async (s) => {
  const parley = await s.serve();
  await parley.call(PAGE.ada, 'POST', 'user_groups/create', { name: 'cooks', description: '', members: JSON.stringify([await me(parley, 'bo')]) });
  await parley.call(PAGE.bo, 'POST', 'messages', { type: 'stream', to: 'general', topic: 'lunch', content: 'Hello @**Bo Park**' });
  const ann = await opened(s, parley, 'ann', '#narrow/channel/1-general/topic/lunch');
  await ann.page.locator('.content .user-mention').click();
  await ann.page.getByRole('button', { name: 'Profile', exact: true }).click();
  const profile = ann.page.getByRole('dialog', { name: 'Bo Park' });
  await profile.getByRole('link', { name: 'cooks' }).waitFor();
  await profile.getByRole('link', { name: 'general' }).waitFor();
  await ann.accessible();
  await parley.call(PAGE.bo, 'PATCH', 'settings', { full_name: 'Bo Stone' });
  await ann.page.getByRole('dialog', { name: 'Bo Stone' }).waitFor();
  await ann.page.getByRole('button', { name: 'Mute user' }).click();
  await ann.page.getByRole('button', { name: 'Unmute user' }).click();
  await ann.page.getByRole('button', { name: 'Direct message', exact: true }).click();
  await ann.page.waitForURL(/#narrow\/dm\//);
});

scene('unknown users, channels and groups say so', async (s) => {
  const parley = await s.serve();
  const { page } = await opened(s, parley, 'ann', '#user/99999');
  await page.getByText('There is no such user, or you cannot see them.').waitFor();
  await page.goto('/#channels/99999/x');
  await page.getByText('There is no such channel, or you cannot see it.').waitFor();
  await page.goto('/#groups/99999');
  await page.getByText('There is no such group.').waitFor();
});

scene('the window for invitations invites, and members without the right are told', async (s) => {
  const parley = await s.serve();
  const ada = await opened(s, parley, 'ada', '#invite');
  await ada.accessible();
  const form = ada.page.getByRole('form', { name: 'Invite by email' });
  await form.getByLabel(/Email addresses/).fill('new@example.org');
  await form.getByRole('button', { name: 'Send invitations' }).click();
  await ada.page.getByRole('cell', { name: 'new@example.org', exact: true }).waitFor();
  const { id } = await groupOf(parley, 'role:administrators');
  await parley.call('olive@example.org', 'PATCH', 'realm', { can_invite_users_group: JSON.stringify({ new: id }) });
  const bo = await opened(s, parley, 'bo', '#invite');
  await bo.page.getByText('You cannot invite users by email.').waitFor();
});

scene('a mention of a group opens its card', async (s) => {
  const parley = await s.serve();
  const members = JSON.stringify([await me(parley, 'bo')]);
  await parley.call(PAGE.ada, 'POST', 'user_groups/create', { name: 'cooks', description: 'The kitchen', members });
  const bo = await opened(s, parley, 'bo', '#narrow/channel/1-general/topic/lunch');
  await parley.call(PAGE.ada, 'POST', 'messages', { type: 'stream', to: 'general', topic: 'lunch', content: 'Hello @*cooks*' });
  await bo.page.locator('.content .user-group-mention.mentions-me').click();
  const card = bo.page.getByRole('dialog', { name: 'cooks' });
  await card.getByText('Bo Park').waitFor();
  await bo.accessible();
  await bo.page.keyboard.press('Escape');
  await bo.page.locator('.content .user-group-mention').focus();
  await bo.page.keyboard.press('Enter');
  await bo.page.getByRole('button', { name: 'Open the group' }).click();
  await bo.page.getByRole('list', { name: 'Members' }).getByText('Bo Park').waitFor();
});

scene('help windows open from the main menu and are accessible', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, 'ann', '#inbox');
  for (const [item, sign] of [['Message formatting', 'Others see'], ['Search operators', 'Messages that you sent'],
    ['About', 'Version of the protocol']]) {
    await ann.page.getByRole('button', { name: 'Main menu' }).first().click();
    await ann.page.getByRole('menuitem', { name: item, exact: true }).click();
    await ann.page.getByText(sign).first().waitFor();
    await ann.accessible();
    await ann.page.keyboard.press('Escape');
    await eventually('the window is closed', async () => await ann.page.getByRole('dialog').count() === 0);
  }
});

scene('the sheet of shortcuts opens with a question mark and lists them', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, 'ann', '#inbox');
  await ann.page.keyboard.press('?');
  const sheet = ann.page.getByRole('dialog', { name: 'Keyboard shortcuts' });
  await sheet.getByText('Mark as unread from here').waitFor();
  await ann.accessible();
  await ann.page.keyboard.press('Escape');
  await eventually('the sheet is closed', async () => await sheet.count() === 0);
  await ann.page.keyboard.press('t');
  await ann.page.locator('h1', { hasText: 'Recent' }).waitFor();
});
