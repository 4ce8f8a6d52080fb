// Channels, permissions, folders and topics in the own client, beyond one group for each permission.
import assert from 'node:assert/strict';
import { ADA, ANN, BO, OLIVE, opened, pick, registered, say, stored, text, userID } from './client.js';
import { eventually } from './parley.js';
import { scene } from './scene.js';

const channelOf = async (parley, name) =>
  (await parley.call(OLIVE, 'GET', 'streams', { include_all: 'true' })).streams.find((c) => c.name === name);

scene('a permission is given to particular users and groups', async (s) => {
  const parley = await s.serve();
  const olive = await opened(s, parley, OLIVE, '#organization/organization-permissions');
  const field = olive.page.getByLabel('Add custom emoji');
  await pick(field, 'Particular users and groups…');
  const dialog = olive.page.getByRole('dialog', { name: 'Add custom emoji' });
  await dialog.getByRole('button', { name: 'Remove All members' }).click();
  await pick(dialog.getByRole('combobox', { name: 'Find users and groups' }), 'Bo Park');
  await pick(dialog.getByRole('combobox', { name: 'Find users and groups' }), 'Moderators and above');
  await olive.accessible();
  await dialog.getByRole('button', { name: 'Save' }).click();
  const bo = await userID(parley, BO);
  await stored('the users and groups are stored', parley, ANN, 'realm',
    (r) => r.realm_can_add_custom_emoji_group.direct_members?.includes(bo));
  await eventually('the field names them', async () => (await field.inputValue()).includes('Bo Park'));
});

scene('a channel is created with its folder, subscribers, permissions and time to keep messages', async (s) => {
  const parley = await s.serve();
  await parley.call(OLIVE, 'POST', 'channel_folders/create', { name: 'Places', description: '' });
  const olive = await opened(s, parley, OLIVE, '#channels/new');
  const ann = await opened(s, parley, ANN);
  const dialog = olive.page.getByRole('dialog', { name: 'New channel' });
  await dialog.getByLabel('Name', { exact: true }).fill('orchard');
  await pick(dialog.getByRole('combobox', { name: 'Find users' }), 'Ann Lee');
  await dialog.getByText('More settings and permissions').click();
  await pick(dialog.getByLabel('Folder'), 'Places');
  await pick(dialog.getByLabel('Messages without a topic'), 'Not allowed');
  await pick(dialog.getByLabel('Keep messages'), '30 days');
  await dialog.getByLabel('New users are subscribed').check();
  await pick(dialog.getByLabel('Send messages'), 'Moderators and above');
  await pick(dialog.getByLabel('Start topics'), 'Administrators and owners');
  await olive.accessible();
  await dialog.getByRole('button', { name: 'Create' }).click();
  await ann.page.locator('.left .side-link', { hasText: 'orchard' }).waitFor();
  await ann.page.locator('.left').getByRole('button', { name: /Places/ }).waitFor();
  const c = await channelOf(parley, 'orchard');
  assert.equal(c.message_retention_days, 30);
  assert.equal(c.topics_policy, 'disable_empty_topic');
  assert.ok(c.folder_id > 0);
  const { realm_user_groups: groups, realm_default_streams: defaults } =
    await registered(parley, OLIVE, 'realm_user_groups', 'default_streams');
  const name = (id) => groups.find((g) => g.id === id).name;
  assert.equal(name(c.can_send_message_group), 'role:moderators');
  assert.equal(name(c.can_create_topic_group), 'role:administrators');
  assert.ok(defaults.includes(c.stream_id));
});

scene('channel folders are added, renamed, ordered and archived, and the sidebar follows', async (s) => {
  const parley = await s.serve();
  const ada = await opened(s, parley, ADA, '#organization/channel-folders');
  const ann = await opened(s, parley, ANN);
  for (const name of ['First', 'Second']) {
    await ada.page.getByRole('button', { name: 'Add a folder' }).click();
    await ada.page.getByLabel('Name', { exact: true }).fill(name);
    await ada.page.getByRole('button', { name: 'Add', exact: true }).click();
    await ada.page.getByRole('button', { name: `Edit: ${name}` }).waitFor();
  }
  await ada.accessible();
  const { channel_folders: folders } = await parley.call(ADA, 'GET', 'channel_folders');
  await parley.call(ADA, 'PATCH', 'streams/1', { folder_id: String(folders.find((f) => f.name === 'Second').id) });
  await ann.page.locator('.left').getByRole('button', { name: /Second/ }).waitFor();
  await ada.page.getByRole('button', { name: 'Up: Second' }).click();
  await eventually('the order is stored', async () => (await parley.call(ADA, 'GET', 'channel_folders')).channel_folders
    .sort((a, b) => a.order - b.order)[0].name === 'Second');
  await ada.page.getByRole('button', { name: 'Up: Second' }).waitFor({ state: 'detached' }); // the rows have changed places
  await ada.page.getByRole('button', { name: 'Edit: Second' }).click();
  await ada.page.getByRole('dialog', { name: 'Edit folder' }).getByLabel('Name').fill('Rooms');
  await ada.page.getByRole('dialog', { name: 'Edit folder' }).getByRole('button', { name: 'Save' }).click();
  await ann.page.locator('.left').getByRole('button', { name: /Rooms/ }).waitFor();
  await ada.page.getByRole('button', { name: 'Archive: First' }).click();
  await eventually('the folder is gone', async () => await ada.page.getByRole('button', { name: 'Edit: First' }).count() === 0);
  await ada.page.getByLabel('Show archived folders').check();
  await ada.page.getByRole('button', { name: 'Restore: First' }).click();
  await ada.page.getByRole('button', { name: 'Archive: First' }).waitFor();
});

scene('muted and followed topics are listed, changed and reset', async (s) => {
  const parley = await s.serve();
  await say(parley, BO, 'Noise', 'noise');
  await parley.call(ANN, 'POST', 'user_topics', { stream_id: '1', topic: 'noise', visibility_policy: '1' });
  const ann = await opened(s, parley, ANN, '#settings/topics');
  const choice = ann.page.getByLabel('Notifications of noise');
  await eventually('it is muted', async () => await choice.inputValue() === 'Muted');
  await ann.accessible();
  await pick(choice, 'Followed');
  await stored('it is followed', parley, ANN, 'user_topic',
    (r) => r.user_topics.some((x) => x.topic_name === 'noise' && x.visibility_policy === 3));
  await ann.page.getByRole('button', { name: 'Reset to the default: noise' }).click();
  await eventually('it is gone', async () => await choice.count() === 0);
});

scene('the settings of the organization reach open pages: limits of edits, automatic messages', async (s) => {
  const parley = await s.serve();
  const ada = await opened(s, parley, ADA, '#organization/organization-settings');
  const ann = await opened(s, parley, ANN, '#narrow/channel/1-general/topic/lunch');
  await say(parley, ANN, 'Mine');
  await text(ann, 'Mine').waitFor();
  await ada.accessible();
  await ada.page.getByLabel('Allow message editing').click();
  const row = ann.page.locator('.message', { hasText: 'Mine' });
  await eventually('the menu has no editing', async () => {
    await row.hover();
    await row.getByRole('button', { name: 'Message actions' }).click();
    const found = await ann.page.getByRole('menuitem', { name: 'View source' }).count() > 0;
    await ann.page.keyboard.press('Escape');
    return found;
  });
  await pick(ada.page.getByLabel('Time limit for deleting messages'), 'For one week');
  await pick(ada.page.getByLabel('Time limit for moving messages to another topic'), 'At any time');
  await pick(ada.page.getByLabel('Announce new channels in'), '#general');
  await pick(ada.page.getByLabel('Edit history'), 'Only moves are shown');
  await ada.page.getByLabel('Language of code blocks without one').fill('go');
  await ada.page.getByRole('button', { name: 'Save language' }).click();
  await stored('all is stored', parley, ANN, 'realm', (r) => r.realm_message_content_delete_limit_seconds === 604800 &&
    r.realm_move_messages_within_stream_limit_seconds === null && r.realm_new_stream_announcements_stream_id === 1 &&
    r.realm_message_edit_history_visibility_policy === 'moves' && r.realm_default_code_block_language === 'go');
});

scene('an owner limits joining to domains, and a member cannot', async (s) => {
  const parley = await s.serve();
  const olive = await opened(s, parley, OLIVE, '#organization/joining');
  const ann = await opened(s, parley, ANN, '#organization/joining');
  assert.equal(await ann.page.getByLabel('Invitations are required for joining this organization').isDisabled(), true);
  await olive.page.getByRole('button', { name: 'Add a domain' }).click();
  await olive.page.getByRole('textbox', { name: /^Domain/ }).fill('example.org');
  await olive.page.getByLabel('Also the domains below it').check();
  await olive.page.getByRole('button', { name: 'Add domain', exact: true }).click();
  await olive.page.getByRole('button', { name: 'Remove: example.org' }).waitFor();
  await olive.page.getByLabel('Only addresses of the domains below can join').click();
  await pick(olive.page.getByLabel('Waiting period before new members turn into full members'), 'After 7 days');
  await olive.accessible();
  await stored('all is stored', parley, ANN, 'realm',
    (r) => r.realm_emails_restricted_to_domains && r.realm_waiting_period_threshold === 7);
  await olive.page.getByRole('button', { name: 'Remove: example.org' }).click();
  await eventually('the domain is gone', async () => await olive.page.getByRole('button', { name: 'Remove: example.org' }).count() === 0);
});

scene('new users begin with the settings that an administrator chose', async (s) => {
  const parley = await s.serve();
  const ada = await opened(s, parley, ADA, '#organization/organization-level-user-defaults');
  await pick(ada.page.getByLabel('Theme'), 'Dark');
  await ada.page.getByLabel('Enter sends messages').check();
  await stored('the defaults are stored', parley, ADA, 'realm_user_settings_defaults',
    (r) => r.realm_user_settings_defaults.color_scheme === 2 && r.realm_user_settings_defaults.enter_sends);
  const own = await registered(parley, ADA, 'user_settings');
  assert.equal(own.user_settings.enter_sends, false);
  await ada.accessible();
});
