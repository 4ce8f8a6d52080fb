// Every form of the client is sent three times: as it opens, with other choices, and again without touching a choice. The
// last request must carry the choices, dates and check boxes of the first one: a form that was sent has its defaults
// again. A form that keeps its values sends those of the second request. A choice without a default must be made each time.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { ANN, BO, OLIVE, mainMenu, messageMenu, opened, pick, say, userID } from './client.js';
import { eventually } from './parley.js';
import { scene } from './scene.js';

const SOURCES = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../client/src');
const PICTURE = { name: 'picture.png', mimeType: 'image/png', buffer: Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64') };
const MAX_CHOICES = 4; // check boxes of one form that are changed; integrations have dozens of events

const section = (name) => async (p) => {
  await p.page.goto(`/#${name}`);
  await p.page.locator('.settings-title, .dialog-text').first().waitFor();
};

// again is for forms that close when they were sent: they are opened each time.
const again = (open) => ({ open, closes: true });

const choose = (label, option, then) => async (p) => {
  await then(p);
  await pick(p.page.getByRole('combobox', { name: label, exact: true }), option);
};

const row = (where, button) => async (p) => {
  await section(where)(p);
  await p.page.getByRole('button', { name: button }).click();
};

// openBox opens the compose box, unless it is open.
async function openBox(p) {
  await p.page.locator('.compose-text, .compose-open').first().waitFor();
  if (await p.page.locator('.compose-open').count()) await p.page.locator('.compose-open').click();
}

// FORMS are the forms by their names, with the way to open them (as in the address), the request that they send, the texts
// that are typed each time (N is another number each time) and what the first request must contain.
//   shows: a field that then has the result   keep: the values stay after success   picks: the choice has no default   closes: the form ends when it was sent
const text = (name, value) => ({ [`[name="${name}"]`]: value });
const FORMS = {
  'own-name': { open: section('settings/profile'), to: 'PATCH settings', texts: text('name', 'Olive textN'), keep: true },
  'own-picture': { open: section('settings/profile'), to: 'POST users/me/avatar' },
  'own-profile': { open: section('settings/profile'), to: 'PATCH users/me/profile_data', texts: text('FIELD', 'textN'), keep: true },
  'change-address': { open: section('settings/account'), to: 'PATCH settings', texts: text('email', 'textN@example.net'), keep: true },
  'change-password': { open: section('settings/account'), to: 'PATCH settings',
    texts: { ...text('old', 'purple otter 84 lamp'), ...text('new', 'purple otter 84 lamp') } },
  'show-key': { open: section('settings/account'), to: 'POST fetch_api_key', texts: text('password', 'purple otter 84 lamp') },
  'own-data': { open: section('settings/account'), to: 'POST users/me/data_exports', texts: text('password', 'purple otter 84 lamp') },
  'add-key': { ...again(row('settings/account', 'Add a key for a program')), to: 'POST users/me/api_keys', texts: { ...text('label', 'textN'), ...text('password', 'purple otter 84 lamp') },
    got: { expires_in: '0' } },
  'add-alert-word': { ...again(row('settings/alert-words', 'Add an alert word')), to: 'POST users/me/alert_words', texts: text('word', 'textN') },
  'mute-user': { ...again(row('settings/muted-users', 'Mute a user')), to: 'POST users/me/muted_users/', picks: '[name=user]' },
  'add-bot': { ...again(choose('Bot type', 'Outgoing webhook: an address is called when the bot is mentioned', row('settings/your-bots', 'Add a bot'))), to: 'POST bots',
    texts: { ...text('name', 'Bot textN'), ...text('short', 'textN'), ...text('url', 'https://example.org/textN') },
    got: { interface_type: '1' } },
  'change-bot': { ...again(row('settings/your-bots', 'Edit: Caller')), to: 'PATCH bots/', texts: text('url', 'https://example.org/textN'),
    keep: true, got: { service_interface: '1' } },
  integration: { open: choose('Service', 'GitHub', section('settings/integrations')), to: 'POST bots',
    texts: { ...text('bot', 'Github textN'), ...text('topic', 'textN') }, keep: true, shows: 'Address of the webhook' },
  'organization-profile': { open: section('organization/organization-profile'), to: 'PATCH realm', texts: text('name', 'Org textN'), keep: true },
  icon: { open: section('organization/organization-profile'), to: 'POST realm/icon' },
  'light-logo': { open: section('organization/organization-profile'), to: 'POST realm/logo' },
  'dark-logo': { open: section('organization/organization-profile'), to: 'POST realm/logo' },
  jitsi: { open: section('organization/organization-settings'), to: 'PATCH realm', texts: text('jitsi_server_url', 'https://textN.example.org'), keep: true },
  'code-language': { open: section('organization/organization-settings'), to: 'PATCH realm', texts: text('default_code_block_language', 'textN'), keep: true },
  'welcome-message': { open: section('organization/organization-settings'), to: 'PATCH realm', texts: text('welcome_message_custom_text', 'textN'), keep: true },
  'add-domain': { ...again(row('organization/joining', 'Add a domain')), to: 'POST realm/domains', texts: text('domain', 'textN.example.org'),
    got: { allow_subdomains: 'false' } },
  'invite-by-email': { open: section('organization/invites'), to: 'POST invites', texts: text('emails', 'textN@example.net'),
    got: { invite_as: '400', invite_expires_in_minutes: '14400', stream_ids: '[1]' } },
  'invite-by-link': { open: section('organization/invites'), to: 'POST invites/multiuse',
    got: { invite_as: '400', invite_expires_in_minutes: '14400', stream_ids: '[1]' } },
  'add-folder': { ...again(row('organization/channel-folders', 'Add a folder')), to: 'POST channel_folders/create', texts: text('name', 'textN') },
  'change-folder': { ...again(row('organization/channel-folders', /^Edit: /)), to: 'PATCH channel_folders/', texts: text('name', 'Folder textN'), keep: true },
  'add-emoji': { ...again(row('organization/emoji-settings', 'Add an emoji')), to: 'POST realm/emoji/', texts: text('name', 'textN') },
  'add-linkifier': { ...again(row('organization/linkifier-settings', 'Add a linkifier')), to: 'POST realm/filters',
    texts: { ...text('pattern', 'textN-(?P<id>[0-9]+)'), ...text('template', 'https://example.org/{id}') } },
  'change-linkifier': { ...again(row('organization/linkifier-settings', /^Edit: /)), to: 'PATCH realm/filters/',
    texts: text('pattern', 'old-textN-(?P<id>[0-9]+)'), keep: true },
  'add-playground': { ...again(row('organization/playground-settings', 'Add a playground')), to: 'POST realm/playgrounds',
    texts: { ...text('name', 'textN'), ...text('language', 'Go'), ...text('template', 'https://example.org/{code}') } },
  'add-profile-field': { ...again(row('organization/profile-field-settings', 'Add a profile field')), to: 'POST realm/profile_fields', texts: text('name', 'textN'),
    got: { display_in_profile_summary: 'false', required: 'false', editable_by_user: 'true' } },
  'change-profile-field': { ...again(row('organization/profile-field-settings', 'Edit: Floor')), to: 'PATCH realm/profile_fields/',
    texts: text('hint', 'textN'), keep: true },
  'change-user': { open: row('organization/users', 'Edit: Bo Park'), keep: true, to: 'PATCH users/', texts: text('name', 'Bo textN') },
  'ask-compliance': { ...again(row('organization/compliance', 'Ask for a compliance export')), to: 'POST compliance_exports', texts: text('search', 'textN') },
  'start-export': { open: section('organization/data-exports-admin'), to: 'POST export/realm', got: { export_type: 'public' } },
  'confirm-password': { ...again(async (p) => {
    p.expect(/Failed to load resource: .* status of 403 /);
    await p.page.route('**/json/export/realm', (r) => r.request().method() !== 'POST' ? r.continue() : r.fulfill({ status: 403,
      json: { result: 'error', code: 'CONFIRMATION_REQUIRED', msg: 'Log in again.', by_password: true } }));
    await section('organization/data-exports-admin')(p);
    await p.page.locator('[data-form=start-export] button[type=submit]').click();
  }), to: 'POST users/me/confirmation', texts: text('password', 'purple otter 84 lamp') },
  'change-channel': { open: section('channels/1/general/general'), to: 'PATCH streams/', texts: text('description', 'textN'), keep: true },
  'add-subscriber': { open: section('channels/1/general/subscribers'), to: 'POST users/me/subscriptions', picks: '[name=user]' },
  'create-channel': { ...again(async (p) => {
    await section('channels/new')(p);
    await p.page.locator('.more-settings summary').click();
  }), to: 'POST users/me/subscriptions', texts: text('name', 'channel textN'), except: '[name=default]', // not for private ones
 
  got: { invite_only: 'false', announce: 'false', is_default_stream: undefined } },
  'create-group': { ...again(section('groups/new')), to: 'POST user_groups/create', texts: text('name', 'group textN') },
  'change-group': { open: section('groups/GROUP'), to: 'PATCH user_groups/', texts: text('description', 'textN'), keep: true },
  'add-group-member': { open: section('groups/GROUP'), to: 'POST user_groups/', picks: '[name=user]' },
  'add-subgroup': { open: section('groups/GROUP'), to: 'POST user_groups/', picks: '[name=group]' },
  snippet: { ...again(async (p) => {
    if (!await p.page.getByRole('dialog', { name: 'Snippets' }).count()) {
      await openBox(p);
      await p.page.getByRole('button', { name: 'Snippets' }).click();
    }
    await p.page.getByRole('button', { name: 'New snippet' }).click();
  }), to: 'POST saved_snippets', texts: { ...text('title', 'textN'), ...text('content', 'textN') } },
  status: { ...again((p) => mainMenu(p, 'Set a status')), to: 'POST users/me/status', texts: { input: 'textN' } },
  'send-later': { ...again(async (p) => {
    await openBox(p);
    await p.page.locator('.compose-text').fill('Later');
    await p.page.getByRole('button', { name: 'More ways to send' }).click();
    await p.page.getByRole('menuitem', { name: 'Send later' }).click();
  }), to: 'POST scheduled_messages' },
  'remind-me': { ...again((p) => messageMenu(p, 'Count me in', 'Remind me')), to: 'POST reminders', texts: { 'input:not([type])': 'textN' } },
  'move-messages': { ...again((p, round) => messageMenu(p, `Movable ${round}`, 'Move')), to: 'PATCH messages/', texts: { 'input:not([type])': 'textN' },
    got: { propagate_mode: 'change_later', send_notification_to_old_thread: 'false', send_notification_to_new_thread: 'true' } },
  'add-to-widget': { open: async (p) => p.page.goto('/#narrow/channel/1-general/topic/poll'), to: 'POST submessage', texts: { input: 'textN' } },
};

test('every form of the client is in the table', () => {
  const listed = fs.readFileSync(path.join(SOURCES, 'forms/form_names.ts'), 'utf8').matchAll(/^ {2}"([^"]+)",$/gm);
  assert.deepEqual(Object.keys(FORMS).sort(), [...listed].map((m) => m[1]).sort());
  let elements = 0;
  for (const file of fs.readdirSync(SOURCES, { recursive: true }).filter((f) => f.endsWith('.tsx'))) {
    const source = fs.readFileSync(path.join(SOURCES, file), 'utf8');
    for (const { index } of source.matchAll(/<form\b/g)) {
      elements++;
      const tag = source.slice(index, index + 200);
      assert.match(tag, /^<form\s[^>]*?data-form=("[a-z-]+"|\{p\.form\})/, `${file}: a form without a name`);
      for (const [, name] of tag.matchAll(/^<form\s[^>]*?data-form="([a-z-]+)"/g)) assert.ok(FORMS[name], `${file}: ${name} is not in the table`);
    }
    assert.doesNotMatch(source, /new FormData\(|\.reset\(\)|default(Value|Checked)=/, `${file}: the state of a form is data`);
  }
  assert.ok(elements >= 6, `only ${elements} forms were found`);
});

// normal returns the fields of a request, with the number of the round and the mark of multipart bodies left out.
function normal(request) {
  const body = (request.postDataBuffer() ?? Buffer.alloc(0)).toString('latin1').replaceAll(/-+WebKitFormBoundary\w+/g, '-')
    .replaceAll(/text\d/g, 'textN').replaceAll(/%22idx%22%3A\d/g, '%22idx%22%3A0'); // options of polls are counted
  const fields = body.startsWith('-') ? { multipart: body } : Object.fromEntries(new URLSearchParams(body));
  if (fields.short_name) delete fields.short_name; // it has a random end
  const { pathname } = new URL(request.url());
  return { to: `${request.method()} ${pathname}`.replaceAll(/text\d/g, 'textN').replace(/messages\/\d+/, 'messages/ID'), ...fields };
}

// chooseOthers changes the choices, dates and check boxes of a form.
async function chooseOthers(form, except) {
  let changed = 0;
  for (const field of await form.locator('[role=combobox]:enabled:visible').all()) {
    await field.click();
    const others = form.page().locator('.picker-option:not([aria-selected=true])', { hasNotText: /^(None|Particular users and groups…)$/ });
    if (await others.count() === 0) {
      await field.press('Escape');
      continue;
    }
    await others.first().click();
    changed++;
  }
  for (const box of (await form.locator('input[type=checkbox]:enabled:visible').all()).slice(0, MAX_CHOICES)) {
    if (except && await box.and(form.locator(except)).count()) continue;
    await box.setChecked(!await box.isChecked());
    changed++;
  }
  const radios = form.locator('input[type=radio]:enabled:visible');
  if (await radios.count()) changed += await radios.nth(1).check().then(() => 1);
  for (const field of await form.locator('[data-date]').all()) {
    await field.fill('2031-04-05');
    changed++;
  }
  return changed;
}

// result waits for another address than before, and returns what does not differ each time.
async function result(p, label, before) {
  const field = p.page.getByLabel(label, { exact: true }).last();
  const address = await eventually('another address', async () => {
    const now = await field.inputValue();
    return now !== before && now;
  });
  return address.replace(/api_key=[^&]*/, '').replace(/text\d/, 'textN');
}

// sendThrice sends a form three times and compares what the server got.
async function sendThrice(p, name) {
  const spec = FORMS[name];
  const form = p.page.locator(`[data-form="${name}"]`).first();
  const [method, to] = spec.to.split(' ');
  const sent = [];
  let changed = 0;
  for (let round = 1; round <= 3; round++) {
    if (round === 1 || spec.closes) await spec.open(p, round);
    await form.waitFor();
    for (const details of await form.locator('details.events:not([open]) summary').all()) await details.click();
    for (const [selector, value] of Object.entries(spec.texts ?? {})) {
      await form.locator(selector).fill(value.replace('N', round));
    }
    for (const file of await form.locator('input[type=file]').all()) {
      assert.equal(await file.inputValue(), '', `${name}: a file of the last time is left`);
      await file.setInputFiles(PICTURE);
    }
    if (spec.picks) {
      const field = form.locator(spec.picks);
      assert.equal(await field.inputValue(), '', `${name}: round ${round}: nobody has chosen yet`);
      await field.click();
      await p.page.locator('.picker-option').first().click();
    } else if (round === 2) changed = await chooseOthers(form, spec.except);
    const before = spec.shows && round > 1 ? await p.page.getByLabel(spec.shows, { exact: true }).last().inputValue() : '';
    const request = p.page.waitForRequest((r) => r.method() === method && new URL(r.url()).pathname.startsWith(`/json/${to}`));
    await form.locator('button[type=submit]').click();
    const answer = await (await request).response();
    assert.equal(answer.status(), 200, `${name}: round ${round}: ${await answer.text()}`);
    sent.push(normal(await request));
    if (spec.closes) await form.waitFor({ state: 'detached' });
    else if (await form.locator('p[role]').count()) await form.locator('p[role=status]:not(:empty)').waitFor();
    else await p.page.waitForFunction((n) => document.querySelector(`[data-form="${n}"] input`).value === '', name);
    if (spec.shows) sent.at(-1).shown = await result(p, spec.shows, before);
  }
  for (const [field, value] of Object.entries(spec.got ?? {})) assert.equal(sent[0][field], value, `${name}: ${field}`);
  if (spec.picks) return changed;
  if (changed) assert.notDeepEqual(sent[1], sent[0], `${name}: the choices are sent`);
  assert.deepEqual(sent[2], spec.keep ? sent[1] : sent[0], `${name}: what is sent after other choices were sent`);
  return changed;
}

// prepared is a server with a folder, a linkifier, a bot, profile fields and a group, to change them.
async function prepared(s) {
  const parley = await s.serve();
  const olive = (...args) => parley.call(OLIVE, ...args);
  await olive('POST', 'channel_folders/create', { name: 'Folder', description: '' });
  await olive('POST', 'realm/filters', { pattern: 'old-(?P<id>[0-9]+)', url_template: 'https://example.org/{id}' });
  await olive('POST', 'bots', { full_name: 'Caller', short_name: 'caller', bot_type: '3', interface_type: '1',
    payload_url: '"https://example.org/call"' });
  await olive('POST', 'realm/profile_fields', { name: 'Floor', field_type: '1' });
  const data = { 0: { text: 'Berlin', order: '1' }, 1: { text: 'Paris', order: '2' } };
  await olive('POST', 'realm/profile_fields', { name: 'Town', field_type: '3', field_data: JSON.stringify(data) });
  await olive('POST', 'realm/profile_fields', { name: 'Since', field_type: '4' });
  const { custom_fields: fields } = await olive('GET', 'realm/profile_fields');
  await olive('PATCH', `users/${await userID(parley, ANN)}`, { role: '100' }); // two owners must agree
  await olive('PATCH', 'compliance_exports', { two_owners: 'true' });
  FORMS['own-profile'].texts = text(String(fields.find((f) => f.name === 'Floor').id), 'textN');
  const { group_id: id } = await olive('POST', 'user_groups/create', { name: 'cooks', description: '',
    members: JSON.stringify([await userID(parley, OLIVE)]) });
  for (const form of ['change-group', 'add-group-member', 'add-subgroup']) FORMS[form].open = section(`groups/${id}/cooks`);
  for (const [topic, content] of [['lunch', 'Count me in'], ['old 1', 'Movable 1'], ['old 2', 'Movable 2'], ['old 3', 'Movable 3'],
    ['poll', '/poll What?\nSoup']]) {
    await say(parley, OLIVE, content, topic);
  }
  await olive('POST', 'default_streams', { stream_id: '1' }); // invitations subscribe to it
  return parley;
}

// ALL are the scenes, with their forms in the order in which they are sent: the password ends other sessions, and the
// address of the user is theirs until they follow a link.
const ALL = {
  'of the user': ['own-name', 'own-picture', 'own-profile', 'add-key', 'show-key', 'own-data', 'add-alert-word',
    'mute-user', 'add-bot', 'change-bot', 'integration', 'change-address', 'change-password'],
  'of the organization': ['organization-profile', 'icon', 'light-logo', 'dark-logo', 'jitsi', 'code-language', 'welcome-message',
    'add-domain', 'invite-by-email', 'invite-by-link', 'change-folder', 'add-folder', 'change-user'],
  'of the lists of the organization': ['add-emoji', 'change-linkifier', 'add-linkifier', 'add-playground', 'add-profile-field',
    'change-profile-field', 'start-export', 'confirm-password', 'ask-compliance'],
  'of channels, groups and messages': ['change-channel', 'add-subscriber', 'create-channel', 'create-group', 'change-group',
    'add-group-member', 'add-subgroup', 'snippet', 'send-later', 'status', 'remind-me', 'move-messages', 'add-to-widget'],
};

test('every form of the table is sent', () => {
  assert.deepEqual(Object.values(ALL).flat().sort(), Object.keys(FORMS).sort());
});

for (const [title, names] of Object.entries(ALL)) {
  scene(`the forms ${title} send their defaults again after other choices`, async (s) => {
    const parley = await prepared(s);
    const p = await opened(s, parley, OLIVE, '#inbox', { typed: true });
    const faults = []; // one form each: the others are sent all the same
    let changed = 0;
    for (const name of names) {
      if (name === 'send-later') await p.page.getByRole('dialog').getByRole('button', { name: 'Close' }).click(); // the snippets
      if (['snippet', 'send-later', 'remind-me'].includes(name)) await p.page.goto('/#narrow/channel/1-general/topic/lunch');
      if (name === 'move-messages') await p.page.goto('/#narrow/channel/1-general');
      try {
        changed += await sendThrice(p, name);
      } catch (error) {
        faults.push(`${name}: ${error.stack}`);
        await p.page.reload();
      }
    }
    assert.deepEqual(faults, []);
    assert.ok(changed > 0, 'at least one form has choices');
  });
}
