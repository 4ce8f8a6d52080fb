// Accounts in the own client: profile fields of every kind, API keys, bots, privacy, leaving.
import assert from 'node:assert/strict';
import { ADA, ANN, BO, OLIVE, opened, pick, registered, say, stored, text, userID } from './client.js';
import { PASSWORD, eventually } from './parley.js';
import { scene } from './scene.js';

const me = async (parley, email) => (await parley.call(email, 'GET', 'users/me', { include_custom_profile_fields: 'true' }));

scene('profile fields of every kind are made, ordered and filled, and the card shows them', async (s) => {
  const parley = await s.serve();
  const ada = await opened(s, parley, ADA, '#organization/profile-field-settings');
  const { page } = ada;
  const begin = async (type) => {
    await page.getByRole('button', { name: 'Add a profile field' }).click();
    await pick(page.getByRole('dialog', { name: 'Add a profile field' }).getByLabel('Type'), type);
  };
  const add = async (type, fields) => {
    await begin(type);
    for (const [name, value] of Object.entries(fields)) await page.getByRole('textbox', { name }).first().fill(value);
    await page.getByLabel('Display on user card').setChecked(fields.Name === 'Nickname'); // at most two fields can be
    await page.getByRole('button', { name: 'Add', exact: true }).click();
    await page.getByRole('button', { name: `Remove: ${fields.Name}` }).waitFor();
  };
  await add('Text (short)', { Name: 'Nickname' });
  await add('Text (long)', { Name: 'Biography' });
  await add('List of options', { Name: 'Team', Options: 'Kitchen\nGarden' });
  await add('Date', { Name: 'Birthday' });
  await add('Link', { Name: 'Website' });
  await add('Users', { Name: 'Mentor' });
  await add('Pronouns', { Name: 'Pronouns' });
  await begin('External account');
  await pick(page.getByRole('combobox', { name: 'Account' }), 'GitHub');
  await page.getByRole('button', { name: 'Add', exact: true }).click();
  await page.getByRole('button', { name: /^Remove: GitHub/ }).waitFor();
  await ada.accessible();
  await page.getByRole('button', { name: 'Edit: Team' }).click();
  const dialog = page.getByRole('dialog', { name: 'Edit profile field' });
  await dialog.getByLabel('Options').fill('Garden\nKitchen\nWorkshop');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('button', { name: 'Up: Website' }).click();
  await eventually('the order is stored', async () => {
    const { custom_profile_fields: list } = await registered(parley, ADA, 'custom_profile_fields');
    const order = list.sort((a, b) => a.order - b.order).map((f) => f.name);
    return order.indexOf('Website') < order.indexOf('Birthday') && JSON.parse(list.find((f) => f.name === 'Team').field_data)[0].text === 'Kitchen';
  });
  const ann = await opened(s, parley, ANN, '#settings/profile');
  await ann.page.getByLabel('Nickname').fill('Annie');
  await pick(ann.page.getByLabel(/^Team/), 'Workshop');
  await ann.page.getByLabel('Birthday').fill('1990-05-17');
  await ann.page.getByLabel('Website').fill('https://example.org/ann');
  await ann.page.getByLabel(/^GitHub/).fill('annlee');
  await ann.page.getByRole('button', { name: 'Save profile' }).click();
  await pick(ann.page.getByRole('region', { name: 'Mentor' }).getByRole('combobox'), 'Bo Park');
  await ann.accessible();
  await eventually('the values are stored', async () => Object.keys((await me(parley, ANN)).profile_data ?? {}).length >= 6);
  const bo = await opened(s, parley, BO, `#user/${await userID(parley, ANN)}`);
  const profile = bo.page.getByRole('dialog', { name: 'Ann Lee' });
  await profile.getByText('Workshop').waitFor();
  await profile.getByText('Bo Park').waitFor();
  assert.equal(await profile.getByRole('link', { name: 'annlee' }).getAttribute('href'), 'https://github.com/annlee');
  await profile.getByRole('link', { name: 'https://example.org/ann' }).waitFor();
});

scene('the API key is replaced, and further keys are added and revoked', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, ANN, '#settings/account');
  const works = async (key) => (await fetch(`${parley.site}/api/v1/users/me`,
    { headers: { authorization: `Basic ${Buffer.from(`${ANN}:${key}`).toString('base64')}` } })).status === 200;
  const form = (name) => ann.page.locator(`form[data-form="${name}"]`);
  await ann.page.getByRole('button', { name: 'Add a key for a program' }).click();
  await ann.page.getByLabel('Name of the program').fill('Backup');
  ann.expect(/status of 400 .*users\/me\/api_keys/);
  await form('add-key').getByRole('button', { name: 'Add key' }).click();
  await form('add-key').getByText('Password is incorrect.').waitFor(); // the session is not enough
  await form('add-key').getByLabel('Your password').fill(PASSWORD);
  await form('add-key').getByRole('button', { name: 'Add key' }).click();
  const further = await ann.page.getByRole('textbox', { name: 'The new key' }).inputValue();
  assert.ok(await works(further));
  await ann.accessible();
  await ann.page.getByRole('button', { name: 'Revoke: Backup' }).click();
  await ann.page.getByRole('dialog', { name: 'Revoke' }).getByRole('button', { name: 'Revoke' }).click();
  await ann.page.getByText('No further keys').waitFor();
  assert.ok(!await works(further));
  await form('show-key').getByLabel('Your password').fill(PASSWORD);
  await ann.page.getByRole('button', { name: 'Show key' }).click();
  const old = await ann.page.getByRole('textbox', { name: 'Your API key' }).inputValue();
  assert.ok(await works(old));
  await ann.page.getByRole('button', { name: 'New API key' }).click();
  await ann.page.getByRole('dialog', { name: 'Make a new API key?' }).getByRole('button', { name: 'New key' }).click();
  const shown = () => ann.page.getByRole('textbox', { name: 'Your API key' }).inputValue();
  await eventually('the new key is shown', async () => await shown() !== old);
  assert.ok(await works(await shown()));
  assert.ok(!await works(old));
});

scene('a bot with an outgoing webhook is added, renamed, deactivated and reactivated', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, ANN, '#settings/your-bots');
  const { page } = ann;
  await page.getByRole('button', { name: 'Add a bot' }).click();
  await pick(page.getByLabel('Bot type'), 'Outgoing webhook: an address is called when the bot is mentioned');
  await page.getByLabel('Name', { exact: true }).fill('Caller');
  await page.getByRole('textbox', { name: 'Address', exact: true }).fill('caller');
  await page.getByLabel('Address that is called').fill('https://example.org/hook');
  await page.getByRole('button', { name: 'Add bot', exact: true }).click();
  await page.getByRole('button', { name: 'Edit: Caller' }).click();
  const dialog = page.getByRole('dialog', { name: 'Caller' });
  await dialog.getByText('[api]').waitFor();
  await ann.accessible();
  await dialog.getByLabel('Name', { exact: true }).fill('Caller two');
  await dialog.getByLabel('Address that is called').fill('https://example.org/other');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('button', { name: 'Deactivate: Caller two' }).click();
  const { bots } = await parley.call(ANN, 'GET', 'bots');
  assert.equal(bots[0].services[0].base_url, 'https://example.org/other');
  await page.getByRole('dialog', { name: 'Deactivate' }).getByRole('button', { name: 'Deactivate' }).click();
  await page.getByRole('button', { name: 'Reactivate: Caller two' }).click();
  await page.getByRole('button', { name: 'Deactivate: Caller two' }).waitFor();
});

scene('a user hides their address and activity, and sets a time zone', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, ANN, '#settings/privacy');
  await pick(ann.page.getByLabel('Who can see your email address'), 'Nobody');
  await ann.page.getByLabel('Let recipients see when you are typing in channels').click();
  await ann.accessible();
  await stored('the settings are stored', parley, ANN, 'user_settings',
    (r) => r.user_settings.email_address_visibility === 4 && !r.user_settings.send_stream_typing_notifications);
  await ann.page.getByRole('navigation', { name: 'Sections' }).getByRole('link', { name: 'Profile', exact: true }).click();
  await pick(ann.page.getByLabel('Time zone'), 'Asia/Tokyo');
  await eventually('the time zone is stored', async () => (await me(parley, ANN)).timezone === 'Asia/Tokyo');
  const bo = await opened(s, parley, BO, `#user/${await userID(parley, ANN)}`);
  await bo.page.getByText('Local time').waitFor();
  assert.equal(await bo.page.getByText(ANN, { exact: true }).count(), 0);
});

scene('a user leaves the organization', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, ANN, '#settings/account');
  ann.expect(/status of 401/, /console: /);
  await ann.page.getByRole('button', { name: 'Deactivate account' }).click();
  await ann.page.getByRole('dialog', { name: 'Deactivate your account?' }).getByRole('button', { name: 'Deactivate' }).click();
  await ann.page.waitForURL(/\/login\//);
  const { members } = await parley.call(OLIVE, 'GET', 'users');
  assert.equal(members.find((u) => u.full_name === 'Ann Lee').is_active, false);
});

scene('linkifiers are changed and ordered, and code has links to playgrounds', async (s) => {
  const parley = await s.serve();
  const ada = await opened(s, parley, ADA, '#organization/linkifier-settings');
  const add = async (pattern) => {
    await ada.page.getByRole('button', { name: 'Add a linkifier' }).click();
    await ada.page.getByLabel(/^Pattern/).fill(pattern);
    await ada.page.getByLabel(/^Address template/).fill('https://example.org/{id}');
    await ada.page.getByRole('button', { name: 'Add', exact: true }).click();
    await ada.page.getByRole('button', { name: `Edit: ${pattern}` }).waitFor();
  };
  await add('T(?P<id>[0-9]+)');
  await add('B(?P<id>[0-9]+)');
  await ada.page.getByRole('button', { name: 'Up: B(?P<id>[0-9]+)' }).click();
  await stored('the order is stored', parley, ADA, 'realm_linkifiers', (r) => r.realm_linkifiers[0].pattern.startsWith('B'));
  await ada.page.getByRole('button', { name: 'Up: T(?P<id>[0-9]+)' }).waitFor(); // the rows have changed places here, too
  await ada.page.getByRole('button', { name: 'Edit: T(?P<id>[0-9]+)' }).click();
  const dialog = ada.page.getByRole('dialog', { name: 'Edit linkifier' });
  await dialog.getByLabel(/^Address template/).fill('https://example.org/tickets/{id}');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await eventually('it is stored', async () => (await registered(parley, ADA, 'realm_linkifiers'))
    .realm_linkifiers[1].url_template.includes('tickets'));
  await parley.call(ADA, 'POST', 'realm/playgrounds', { name: 'Go play', pygments_language: 'Go', url_template: 'https://example.org/play{?code}' });
  await say(parley, BO, 'See T42\n```go\nx := 1 & 2\n```');
  const ann = await opened(s, parley, ANN, '#narrow/channel/1-general/topic/lunch');
  assert.equal(await text(ann, 'See T42').getByRole('link', { name: 'T42' }).getAttribute('href'), 'https://example.org/tickets/42');
  await text(ann, 'See T42').hover();
  const link = ann.page.getByRole('link', { name: 'View in Go play' });
  assert.match(await link.getAttribute('href'), /^https:\/\/example\.org\/play\?code=x%20%3A%3D%201%20%26%202/);
});
