// All views of the client: those of the middle, every window, menu, card and picker, and the pages that the server
// makes. A view has a name, an address, and perhaps a step that opens it from there. WITHOUT_LOGIN are the pages that
// visitors see. every_view_test.js compares the names with the router and the sections of the settings.
import { png, upload, wav } from './media.js';
import { fill } from './shots_content.js';

export const ANN = 'ann@example.org';
export const OLIVE = 'olive@example.org';

const TOPIC = '#narrow/channel/1-general/topic/lunch';
const button = (page, name) => page.getByRole('button', { name, exact: true }).first();
const dialog = (page, name) => page.getByRole('dialog', { name, exact: true }).last().waitFor();
const menu = (page, name) => page.getByRole('menu', { name, exact: true }).waitFor();

// item chooses an item of a menu that a button opens.
const item = (opener, name, shown) => async (page) => {
  await opener(page);
  await page.getByRole('menuitem', { name }).first().click();
  await shown(page);
};

const mainMenu = async (page) => {
  await leftColumn(page);
  await button(page, 'Main menu').click();
  await menu(page, 'Main menu');
};

// leftColumn opens the left column where the window is too narrow to show it.
async function leftColumn(page) {
  if (page.viewportSize().width >= 700) return;
  if (!await page.locator('.left').isVisible()) await button(page, 'Channels').click();
}

// actions opens the menu of the last message that contains a text.
const actions = (has) => async (page) => {
  const row = page.locator('.message', { hasText: has }).last();
  await row.scrollIntoViewIfNeeded();
  await row.hover();
  await row.getByRole('button', { name: 'Message actions' }).click();
  await menu(page, 'Message actions');
};

const compose = (content = '') => async (page) => {
  await page.locator('.compose-open').click();
  const field = page.getByRole('textbox', { name: 'Message', exact: true });
  await field.waitFor();
  await field.fill('');
  if (content) await field.pressSequentially(content);
};

// tool presses a tool of the compose box.
const tool = (name, shown) => async (page) => {
  await compose('Two words')(page);
  await button(page, name).click();
  await shown(page);
};

const search = (text) => async (page) => {
  if (page.viewportSize().width < 700) await page.locator('.search').click();
  const field = page.getByRole('combobox', { name: 'Search' }).first();
  await field.click();
  await field.fill(text);
  await page.getByRole('option').first().waitFor();
};

const SETTINGS = ['profile', 'account', 'privacy', 'preferences', 'integrations', 'notifications', 'your-bots',
  'alert-words', 'uploaded-files', 'muted-users', 'topics'];
const ORGANIZATION = ['organization-profile', 'organization-settings', 'joining', 'organization-permissions',
  'organization-level-user-defaults', 'users', 'invites', 'channels', 'channel-folders', 'emoji-settings',
  'linkifier-settings', 'playground-settings', 'profile-field-settings', 'data-retention', 'data-exports-admin', 'usage',
  'audit-log', 'compliance', 'data-places'];

const MIDDLE = [
  ['inbox', '#inbox'],
  ['recent conversations', '#recent'],
  ['combined feed', '#feed'],
  ['channel', '#narrow/channel/1-general'],
  ['topics of a channel', '#topics/channel/1-general'],
  ['topic', TOPIC],
  ['formatted messages', '#narrow/channel/1-general/topic/formatting'],
  ['sounds, videos and pictures', '#narrow/channel/1-general/topic/media'],
  ['topic without messages', '#narrow/channel/1-general/topic/nothing%20yet'],
  ['direct messages', (ids) => `#narrow/dm/${ids.bo}`],
  ['mentions', '#narrow/is/mentioned'],
  ['starred messages', '#narrow/is/starred'],
  ['results of a search', '#narrow/channel/1-general/search/soup'],
  ['search without results', '#narrow/search/zebra'],
  ['unknown channel', '#narrow/channel/999-none'],
  ['around one message', (ids) => `${TOPIC}/near/${ids.lunch}`],
];

const WINDOWS = [
  ...SETTINGS.map((x) => [`settings: ${x}`, `#settings/${x}`]),
  ...ORGANIZATION.map((x) => [`organization: ${x}`, `#organization/${x}`, null, 'olive']),
  ['organization as a member sees it', '#organization/organization-permissions'],
  ['all channels', '#channels/all'],
  ['subscribed channels', '#channels/subscribed'],
  ['new channel', '#channels/new'],
  ['channel: general', '#channels/1/general/general', null, 'olive'],
  ['channel: personal', '#channels/1/general/personal'],
  ['channel: permissions', '#channels/1/general/permissions', null, 'olive'],
  ['channel: subscribers', '#channels/1/general/subscribers', null, 'olive'],
  ['user groups', '#groups/all'],
  ['new user group', '#groups/new', null, 'olive'],
  ['user group', (ids) => `#groups/${ids.cooks}`, null, 'olive'],
  ['profile of a user', (ids) => `#user/${ids.bo}`],
  ['unknown user', '#user/99999'],
  ['invite', '#invite', null, 'olive'],
  ['drafts', '#drafts'],
  ['scheduled messages', '#scheduled'],
  ['reminders', '#reminders'],
  ['shortcuts', '#keyboard-shortcuts'],
  ['formatting', '#message-formatting'],
  ['search operators', '#search-operators'],
  ['about', '#about-zulip'],
];

const STEPS = [
  ['main menu', '#inbox', mainMenu, 'olive'],
  ['themes', '#inbox', item(mainMenu, 'Theme', (page) => menu(page, 'Theme'))],
  ['status', '#inbox', item(mainMenu, 'Set a status', (page) => dialog(page, 'Your status'))],
  ['people', TOPIC, async (page) => {
    if (await page.locator('.right').count() === 0) await button(page, 'People').click();
    await page.locator('.right .person').first().waitFor();
  }],
  ['left column', TOPIC, leftColumn],
  ['menu of a channel', TOPIC, async (page) => {
    await leftColumn(page);
    await page.locator('.left li.open > .side-row').hover();
    await button(page, 'Actions of general').click();
    await menu(page, 'Actions of the channel');
  }],
  ['menu of a topic', TOPIC, async (page) => {
    await leftColumn(page);
    await page.locator('.topics .side-row').first().hover();
    await button(page, 'Actions of the topic').click();
    await menu(page, 'Actions of the topic');
  }],
  ['menu of a view', TOPIC, async (page) => {
    await button(page, 'Actions of this view').click();
    await menu(page, 'Actions of this view');
  }],
  ['notifications of a topic', TOPIC, async (page) => {
    await page.getByRole('button', { name: /^Notifications of this topic/ }).click();
    await menu(page, 'Notifications of this topic');
  }],
  ['menu of a message', TOPIC, actions('the table is reserved')],
  ['emoji picker', TOPIC, async (page) => {
    await page.locator('.message').last().hover();
    await page.locator('.message').last().getByRole('button', { name: 'Add a reaction' }).last().click();
    await page.locator('.emoji-picker [role=option], .emoji-picker button').first().waitFor();
  }],
  ['editor of a message', TOPIC, item(actions('the table is reserved'), 'Edit',
    (page) => page.getByRole('textbox', { name: 'Text of the message' }).waitFor())],
  ['source of a message', TOPIC, item(actions('Count me in'), 'View source',
    (page) => page.locator('.editor').first().waitFor())],
  ['move messages', TOPIC, item(actions('the table is reserved'), 'Move', (page) => dialog(page, 'Move messages'))],
  ['remind me', TOPIC, item(actions('Count me in'), 'Remind me', (page) => dialog(page, 'Remind me'))],
  ['read receipts', TOPIC, item(actions('the table is reserved'), 'Read by', async (page) => {
    await dialog(page, 'Read by');
    await page.locator('dialog [aria-busy]').waitFor({ state: 'detached' });
  })],
  ['reactions of a message', '#narrow/channel/1-general/topic/formatting', item(actions('Plan for the week'),
    'See who reacted', (page) => dialog(page, 'Reactions'))],
  ['card of a user in a window', '#channels/1/general/subscribers', async (page) => {
    await page.locator('dialog').getByRole('button', { name: 'Bo Park' }).first().click();
    await page.locator('dialog .popover .card').waitFor();
  }],
  ['delete a message', TOPIC, item(actions('Lentil soup is my choice'), 'Delete',
    (page) => dialog(page, 'Delete this message?')), 'olive'],
  ['edit history', TOPIC, async (page) => {
    await button(page, 'edited').click();
    await dialog(page, 'Edit history');
    await page.locator('dialog section').first().waitFor();
  }],
  ['card of a user', TOPIC, async (page) => {
    await button(page, 'About Bo Park').click();
    await page.locator('.popover .card, .popover .user-card').first().waitFor();
  }],
  ['card of a group', '#narrow/channel/1-general/topic/formatting', async (page) => {
    await page.locator('.user-group-mention').last().click();
    await page.locator('.popover').waitFor();
  }],
  ['viewer of pictures', '#narrow/channel/1-general/topic/media', async (page) => {
    await page.locator('.message_inline_image a').first().click();
    await page.locator('dialog.lightbox').waitFor();
  }],
  ['compose box', TOPIC, compose('Who is coming?')],
  ['compose box of direct messages', (ids) => `#narrow/dm/${ids.bo}`, compose('Hello')],
  ['completion of people', TOPIC, async (page) => {
    await compose('Who is coming? @b')(page);
    await page.locator('.completions [role=option]').first().waitFor();
  }],
  ['completion of languages', TOPIC, async (page) => {
    await compose('```p')(page);
    await page.locator('.completions [role=option]').first().waitFor();
  }],
  ['completion of emoji', TOPIC, async (page) => {
    await compose('Good :ta')(page);
    await page.locator('.completions [role=option]').first().waitFor();
  }],
  ['preview', TOPIC, tool('Preview', (page) => page.locator('.compose-preview').waitFor())],
  ['ways to send', TOPIC, tool('More ways to send', (page) => menu(page, 'More ways to send'))],
  ['send later', TOPIC, item(tool('More ways to send', (page) => menu(page, 'More ways to send')), 'Send later',
    (page) => dialog(page, 'Send later'))],
  ['snippets', TOPIC, tool('Snippets', (page) => dialog(page, 'Snippets'))],
  ['editor of a snippet', TOPIC, tool('Snippets', async (page) => {
    await button(page, 'New snippet').click();
    await page.locator('dialog textarea').waitFor();
  })],
  ['emoji for the compose box', TOPIC, tool('Emoji', (page) => page.locator('.emoji-picker').waitFor())],
  ['new poll', TOPIC, tool('Poll', (page) => dialog(page, 'New poll'))],
  ['new todo list', TOPIC, tool('Todo list', (page) => dialog(page, 'New todo list'))],
  ['time for a message', TOPIC, tool('Time', (page) => dialog(page, 'Insert a time'))],
  ['calendar', TOPIC, tool('Time', async (page) => {
    await dialog(page, 'Insert a time');
    await button(page, 'Open the calendar').click();
    await page.locator('.calendar').waitFor();
  })],
  ['list of a picker', '#settings/preferences', async (page) => {
    await page.getByRole('combobox', { name: 'Theme' }).click();
    await page.locator('.picker-option').first().waitFor();
  }],
  ['editor of a user', '#organization/users', async (page) => {
    await page.getByRole('button', { name: 'Edit: Bo Park' }).click();
    await dialog(page, 'Edit Bo Park');
  }, 'olive'],
  ['new linkifier', '#organization/linkifier-settings', async (page) => {
    await button(page, 'Add a linkifier').click();
    await dialog(page, 'Add a linkifier');
  }, 'olive'],
  ['suggestions of a search', TOPIC, search('so')],
  ['suggestions of an operator', TOPIC, search('from:b')],
  ['mark all as read', '#inbox', async (page) => {
    await button(page, 'Mark all as read').click();
    await dialog(page, 'Mark all as read?');
  }],
  ['topics of the inbox', '#inbox', async (page) => {
    await page.getByRole('button', { name: /^Topics that are listed/ }).click();
    await menu(page, 'Topics');
  }],
  ['inbox with a collapsed channel and a filter', '#inbox', async (page) => {
    await page.locator('.inbox-toggle').first().click();
    await page.getByRole('searchbox', { name: 'Filter conversations' }).fill('e');
  }],
  ['editor of a linkifier', '#organization/linkifier-settings', async (page) => {
    await page.getByRole('button', { name: /^Edit/ }).first().click();
    await dialog(page, 'Edit linkifier');
  }, 'olive'],
  ['editor of a profile field', '#organization/profile-field-settings', async (page) => {
    await page.getByRole('button', { name: /^Edit/ }).first().click();
    await dialog(page, 'Edit profile field');
  }, 'olive'],
  ['editor of a folder', '#organization/channel-folders', async (page) => {
    await page.getByRole('button', { name: /^Edit/ }).first().click();
    await dialog(page, 'Edit folder');
  }, 'olive'],
  ['editor of a bot', '#settings/your-bots', async (page) => {
    await page.getByRole('button', { name: /^Edit.*Soup bot/ }).click();
    await dialog(page, 'Soup bot');
  }, 'olive'],
  ['question before an account is deactivated', '#settings/account', async (page) => {
    await page.getByRole('button', { name: /^Deactivate/ }).first().click();
    await dialog(page, 'Deactivate your account?');
  }],
];

const SERVER_PAGES = [
  ['page: server', '/admin/server', (page) => page.locator('figure').first().waitFor(), 'olive'],
  ['page: sessions', '/accounts/sessions/'],
];

export const WITHOUT_LOGIN = [
  ['page: login', '/login/'],
  ['page: register', '/register/'],
  ['page: forgotten password', '/accounts/password/reset/'],
  ['page: link sent', '/accounts/password/reset/done/'],
  ['page: password changed', '/accounts/password/done/'],
  ['page: find accounts', '/accounts/find/'],
  ['page: go to an organization', '/accounts/go/'],
  ['page: new organization', '/new/'],
  ['page: link without effect', '/join/unknown/'],
  ['page: unknown', '/no/such/page/'],
  ['page: description of the API', '/api/docs'],
  ['page: an operation of the API', '/api/docs/post-messages'],
  ['page: invitation', (ids) => ids.invitation],
];

export const VIEWS = [...MIDDLE, ...WINDOWS, ...STEPS, ...SERVER_PAGES]
  .map(([name, address, step, user = 'ann']) => ({ name, address, step, user }));

// furnish fills the organization, so that no view is empty, and returns ids for the addresses.
export async function furnish(server) {
  const ids = await fill(server);
  const { messages } = await server.call(ANN, 'GET', 'messages', { anchor: 'newest', num_before: '50', num_after: '0',
    narrow: '[{"operator":"topic","operand":"lunch"}]' });
  ids.lunch = messages[0].id;
  const own = messages.find((m) => m.sender_id === ids.ann);
  const changed = 'Soup! The place at the corner has **leek soup** today.';
  await server.call(ANN, 'PATCH', `messages/${own.id}`, { content: changed });
  const { user_groups } = await server.call(OLIVE, 'GET', 'user_groups');
  ids.cooks = user_groups.find((g) => g.name === 'cooks').id;
  const write = (email, topic, content) => server.call(email, 'POST', 'messages', { type: 'stream', to: 'general', topic,
    content, read_by_sender: 'true' });
  await write(OLIVE, 'lunch', 'Lentil soup is my choice');
  const { id } = await write(OLIVE, 'formatting', 'Thanks, @*cooks*!');
  await write(OLIVE, 'formatting', '/todo Shopping\nLeeks: two\nSalt');
  for (const content of await media(server)) await write(ANN, 'media', content);
  const soon = String(Math.floor(Date.now() / 1000) + 50_000);
  await server.call(ANN, 'POST', 'reminders', { message_id: String(id), scheduled_delivery_timestamp: soon,
    note: 'Bring salt' });
  await server.call(ANN, 'POST', 'saved_snippets', { title: 'Greeting', content: 'Good morning everyone' });
  await server.call(ANN, 'POST', 'users/me/alert_words', { alert_words: '["soup"]' });
  const gus = await server.call('gus@example.org', 'GET', 'users/me');
  await server.call(ANN, 'POST', `users/me/muted_users/${gus.user_id}`);
  await server.call(ANN, 'POST', 'user_topics', { stream_id: '1', topic: 'lunch', visibility_policy: '3' });
  const olive = (method, endpoint, form) => server.call(OLIVE, method, endpoint, form);
  await olive('POST', 'bots', { full_name: 'Soup bot', short_name: 'soup', bot_type: '1' });
  await olive('POST', 'realm/filters', { pattern: '#(?P<id>[0-9]+)', url_template: 'https://example.org/{id}' });
  await olive('POST', 'realm/playgrounds', { name: 'Go', pygments_language: 'Go',
    url_template: 'https://go.example.org/{code}' });
  await olive('POST', 'realm/profile_fields', { name: 'Favourite dish', field_type: '1', hint: 'Of all kitchens' });
  await olive('POST', 'channel_folders/create', { name: 'House', description: 'Everything about the house' });
  const { invite_link } = await olive('POST', 'invites/multiuse', { stream_ids: '[1]', invite_expires_in_minutes: 'null' });
  ids.invitation = new URL(invite_link).pathname;
  return ids;
}

// media uploads pictures, a sound and a film, and returns messages with them.
async function media(server) {
  const files = [['red.png', 'image/png', png(220, 40, 40)], ['blue.png', 'image/png', png(40, 60, 200)],
    ['bell.wav', 'audio/wav', wav(2)], ['film.webm', 'video/webm', Buffer.from('1a45dfa3', 'hex')]];
  const links = [];
  for (const [name, type, data] of files) links.push(`[${name}](${await upload(server, ANN, name, type, data)})`);
  return [links.slice(0, 2).join('\n'), ...links.slice(2)];
}
