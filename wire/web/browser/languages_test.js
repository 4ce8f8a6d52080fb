// Languages and looks of the client: German, right to left, high contrast, and the width of a phone.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { pick } from './client.js';
import { eventually } from './parley.js';
import { scene } from './scene.js';

// enter opens the chat of a user with settings.
async function enter(s, address, settings, options) {
  const parley = await s.serve();
  await parley.setPassword('ann@example.org');
  await parley.call('ann@example.org', 'PATCH', 'settings', settings);
  const ann = await s.profile(parley, options);
  await ann.logIn('ann@example.org');
  await ann.page.goto(address);
  await ann.page.locator('.view-header, .settings-title').first().waitFor();
  return [ann, parley];
}

const TOPIC = '/#narrow/channel/1-general/topic/lunch';

// textsOf returns the catalogue of a language.
const textsOf = (code) => JSON.parse(fs.readFileSync(new URL(`../client/locale/${code}.json`, import.meta.url), 'utf8'));

const html = (p, name) => p.page.locator('html').getAttribute(name);

scene('the language is chosen in the settings, without loading the page again', async (s) => {
  const [ann] = await enter(s, '/#settings/preferences', { default_language: 'en' });
  await pick(ann.page.getByRole('combobox', { name: 'Language' }), 'Deutsch');
  await ann.page.getByRole('combobox', { name: 'Sprache' }).waitFor();
  await eventually('the page is German', async () => await html(ann, 'lang') === 'de');
  await pick(ann.page.getByRole('combobox', { name: 'Sprache' }), 'English');
  await ann.page.getByRole('combobox', { name: 'Language' }).waitFor();
});

scene('the main views are German for users of that language', async (s) => {
  const [ann] = await enter(s, '/#inbox', { default_language: 'de' });
  await ann.page.getByRole('link', { name: 'Eingang' }).first().waitFor();
  assert.equal(await html(ann, 'lang'), 'de');
  await ann.accessible();
});

scene('the tools of the compose box follow the language, without loading the page again', async (s) => {
  const [ann, parley] = await enter(s, TOPIC, { default_language: 'en' });
  await ann.page.locator('.compose-open').click();
  await ann.page.getByRole('button', { name: 'Upload files' }).waitFor();
  await parley.call('ann@example.org', 'PATCH', 'settings', { default_language: 'de' });
  await ann.page.getByRole('button', { name: 'Dateien hochladen' }).waitFor();
  await ann.page.getByRole('button', { name: 'Textbausteine' }).waitFor();
});

scene('settings and windows are German', async (s) => {
  const [ann] = await enter(s, '/#settings/profile', { default_language: 'de' });
  for (const [address, text] of [['#settings/account', 'Passwort ändern'], ['#settings/your-bots', 'Keine Bots'],
    ['#organization/users', 'Zuletzt aktiv'], ['#channels/new', 'Mitglieder können beitreten und alle Nachrichten lesen.'],
    ['#groups/all', 'Gruppen suchen'], ['#search-operators', 'Nachrichten, die dich erwähnen']]) {
    await ann.page.goto(`/${address}`);
    await ann.page.getByText(text).or(ann.page.getByPlaceholder(text)).first().waitFor();
  }
  await ann.page.goto('/#settings/preferences');
  await ann.page.getByRole('combobox', { name: 'Sprache' }).waitFor();
  await ann.accessible();
});

scene('every language is shown at once when it is chosen on another device', async (s) => {
  const [ann, parley] = await enter(s, '/#settings/preferences', { default_language: 'en' });
  for (const code of ['de', 'fr', 'es', 'pt', 'it', 'nl', 'ja', 'zh-Hans', 'ar']) {
    await parley.call('ann@example.org', 'PATCH', 'settings', { default_language: code.toLowerCase() });
    await ann.page.getByRole('combobox', { name: textsOf(code).Language, exact: true }).waitFor();
    await eventually(`the page is ${code}`, async () => await html(ann, 'lang') === code);
    await ann.accessible();
  }
});

scene('texts of a language without a table are English, and are labelled as English', async (s) => {
  const [ann] = await enter(s, '/#inbox', { default_language: 'pl' });
  await ann.page.getByRole('link', { name: 'Inbox' }).first().waitFor();
  assert.equal(await html(ann, 'lang'), 'en');
});

scene('the page runs from right to left for Arabic, also on a phone', async (s) => {
  const [ann, parley] = await enter(s, TOPIC, { default_language: 'ar' });
  await parley.call('bo@example.org', 'POST', 'messages', { type: 'channel', to: 'general', topic: 'lunch', content: 'hello' });
  await ann.page.locator('.message').filter({ hasText: 'hello' }).waitFor();
  assert.equal(await html(ann, 'dir'), 'rtl');
  const channels = await ann.page.getByRole('link', { name: textsOf('ar').Inbox }).first().boundingBox();
  const message = await ann.page.locator('.message .content').first().boundingBox();
  assert.ok(channels.x > message.x, 'the column of channels is at the right');
  await ann.accessible();
});

scene('high contrast is accessible', async (s) => {
  const [ann, parley] = await enter(s, TOPIC, { high_contrast_mode: 'true' });
  await parley.call('bo@example.org', 'POST', 'messages', { type: 'channel', to: 'general', topic: 'lunch', content: 'hello' });
  await ann.page.locator('.message').filter({ hasText: 'hello' }).waitFor();
  assert.equal(await html(ann, 'data-contrast'), 'high');
  await ann.accessible();
});
