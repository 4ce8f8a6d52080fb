// Screenshots of the client: each view in light and dark, some at the width of a phone, some from right to left.
// node shots.js DIR [PATTERN] writes them as PNG files; a pattern chooses views by their names. With a third argument,
// "page", it writes the smaller WebP files of .github/docs/screens.md and the picture of the README instead.
import fs from 'node:fs';
import path from 'node:path';
import { chromium } from 'playwright-core';
import { PASSWORD, Parley, TIMEOUT_MS } from './parley.js';
import { fill } from './shots_content.js';

const ANN = 'ann@example.org';
const TOPIC = '#narrow/channel/1-general/topic/lunch';
const DESKTOP = { width: 1280, height: 800 };
const PHONE = { width: 375, height: 740 };
const README = { width: 1000, height: 640 }; // a PNG file, which must be smaller than 150 kB

const dir = path.resolve(process.argv[2] ?? 'shots');
const wanted = new RegExp(process.argv[3] ?? '');
const forPage = process.argv[4] === 'page';
const QUALITY = 62; // of WebP files: text stays sharp, and a view has about 40 kB
fs.mkdirSync(dir, { recursive: true });

// click opens what a button, found by its label, opens.
const click = (name, role = 'button') => (page) => page.getByRole(role, { name, exact: true }).first().click();

// Each view has a name, an address and perhaps a step after opening. Visitors see the pages without a login.
const VIEWS = [
  ['login', '/login/', null, 'visitor'],
  ['register', '/accounts/password/reset/', null, 'visitor'],
  ['inbox', '#inbox'],
  ['inbox-empty', '#inbox', null, 'olive'],
  ['recent', '#recent'],
  ['feed', '#feed'],
  ['topic', TOPIC],
  ['content', '#narrow/channel/1-general/topic/formatting'],
  ['compose', TOPIC, async (page) => {
    await page.locator('.compose-open').click();
    await page.getByRole('textbox', { name: 'Message', exact: true }).pressSequentially('Who is coming? @b');
    await page.locator('.completions [role=option]').first().waitFor();
  }],
  ['topics', '#topics/channel/1-general'],
  ['empty-topic', '#narrow/channel/1-general/topic/nothing%20yet'],
  ['dm', async (ids) => `#narrow/dm/${ids.bo}`],
  ['channel', '#narrow/channel/1-general'],
  ['mentions', '#narrow/is/mentioned'],
  ['starred', '#narrow/is/starred'],
  ['search', '#narrow/channel/1-general/search/soup', async (page) => {
    await page.getByRole('combobox', { name: 'Search' }).first().click();
  }],
  ['channels', '#channels/all'],
  ['channel-new', '#channels/new'],
  ['channel-permissions', '#channels/1/general/permissions', null, 'olive'],
  ['groups', '#groups/all'],
  ['profile', async (ids) => `#user/${ids.bo}`],
  ['card', TOPIC, async (page) => { await page.getByRole('button', { name: 'About Bo Park' }).first().click(); }],
  ['menu', '#inbox', async (page) => {
    if (page.viewportSize().width < 700) await click('Channels')(page); // a phone has it in the column
    await click('Main menu')(page);
  }],
  ['settings-profile', '#settings/profile'],
  ['settings-preferences', '#settings/preferences'],
  ['settings-notifications', '#settings/notifications'],
  ['organization', '#organization/organization-profile', null, 'olive'],
  ['organization-permissions', '#organization/organization-permissions', null, 'olive'],
  ['organization-settings', '#organization/organization-settings', null, 'olive'],
  ['folders', '#organization/channel-folders', null, 'olive'],
  ['status', '#inbox', async (page) => {
    await page.getByRole('button', { name: 'Main menu' }).click();
    await page.getByRole('menuitem', { name: 'Set a status' }).click();
    await page.getByRole('dialog', { name: 'Your status' }).waitFor();
  }],
  ['sidebar', '#inbox', async (page) => {
    if (page.viewportSize().width < 700) await page.getByRole('button', { name: 'Channels', exact: true }).first().click();
  }],
  ['users', '#organization/users', null, 'olive'],
  ['invitations', '#organization/invites', null, 'olive'],
  ['drafts', '#drafts'],
  ['scheduled', '#scheduled'],
  ['server', '/admin/server', async (page) => {
    await page.locator('figure polyline').first().waitFor({ state: 'attached' }); // a flat line counts as hidden
    await page.waitForTimeout(14_000); // the charts get some points
  }, 'olive'],
  ['shortcuts', '#inbox', (page) => page.keyboard.press('?')],
  ['emoji', TOPIC, async (page) => {
    await page.locator('.message').last().hover();
    await page.locator('.message').last().getByRole('button', { name: 'Add a reaction' }).last().click();
    await page.locator('.emoji-picker').waitFor();
  }],
];

const onPhone = ['login', 'inbox', 'recent', 'topics', 'feed', 'topic', 'content', 'compose', 'channels', 'channel-new',
  'profile', 'settings-profile', 'users', 'menu', 'sidebar', 'shortcuts'];
const inGerman = ['inbox', 'topics', 'channel-new', 'settings-preferences', 'settings-notifications',
  'organization-settings', 'organization-permissions', 'users', 'invitations', 'drafts', 'shortcuts'];
const fromRight = ['inbox', 'content', 'channels', 'settings-preferences', 'compose', 'menu'];

// onPage are the 20 views of .github/docs/screens.md. The last two are the topic at the width of a phone, and the
// formatted messages from right to left.
const onPage = ['login', 'inbox', 'recent', 'feed', 'channel', 'topic', 'dm', 'compose', 'search', 'mentions', 'starred',
  'drafts', 'channels', 'channel-permissions', 'profile', 'settings-preferences', 'organization', 'server'];

const server = await Parley.serve();
const browser = await chromium.launch({ executablePath: process.env.PARLEY_CHROMIUM, timeout: TIMEOUT_MS,
  args: ['--no-sandbox', '--disable-dev-shm-usage'] });
try {
  const users = ['ann', 'olive'];
  await server.setPassword(...users.map((u) => `${u}@example.org`));
  const ids = await fill(server);
  const states = {};
  for (const user of users) states[user] = await logIn(`${user}@example.org`);
  const take = (suffix, names, options) => shoot(suffix, names, states, ids, options);
  if (forPage) await takePage(take);
  else await takeAll(take);
} finally {
  await browser.close();
  await server.close();
}

async function takePage(take) {
  // Both colours show the same state: nothing is marked as read meanwhile.
  for (const user of ['ann', 'olive']) {
    await server.call(`${user}@example.org`, 'PATCH', 'settings', { web_mark_read_on_scroll_policy: '3' });
  }
  for (const colorScheme of ['light', 'dark']) {
    await take(colorScheme, onPage, { viewport: DESKTOP, colorScheme });
    await take(`phone-${colorScheme}`, ['topic'], { viewport: PHONE, colorScheme, hasTouch: true, isMobile: true });
  }
  await take('readme', ['topic'], { viewport: README, colorScheme: 'light' });
  await server.call(ANN, 'PATCH', 'settings', { default_language: 'ar' });
  for (const colorScheme of ['light', 'dark']) await take(`rtl-${colorScheme}`, ['content'], { viewport: DESKTOP, colorScheme });
}

async function takeAll(take) {
  const all = VIEWS.map(([name]) => name);
  await take('light', all, { viewport: DESKTOP, colorScheme: 'light' });
  await take('dark', all, { viewport: DESKTOP, colorScheme: 'dark' });
  const phone = { viewport: PHONE, colorScheme: 'light', hasTouch: true, isMobile: true };
  await take('phone', onPhone, phone);
  await language('de');
  await take('german', inGerman, { viewport: DESKTOP, colorScheme: 'light' });
  await take('german-phone', ['topics', 'channel-new', 'users', 'shortcuts'], phone);
  await language('en');
  await server.call(ANN, 'PATCH', 'settings', { default_language: 'he' });
  await take('rtl', fromRight, { viewport: DESKTOP, colorScheme: 'light' });
  await server.call(ANN, 'PATCH', 'settings', { default_language: 'en', high_contrast_mode: 'true' });
  await take('contrast', ['inbox', 'content'], { viewport: DESKTOP, colorScheme: 'light' });
}

// language sets the language of both people whose views are shown.
async function language(code) {
  for (const user of ['ann', 'olive']) {
    await server.call(`${user}@example.org`, 'PATCH', 'settings', { default_language: code });
  }
}

// logIn returns the cookies of a session.
async function logIn(email) {
  const context = await browser.newContext({ baseURL: server.site });
  const page = await context.newPage();
  await page.goto('/login/');
  await page.getByLabel('Email address', { exact: true }).fill(email);
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await page.getByRole('button', { name: 'Log in', exact: true }).click();
  await page.locator('.view-header').waitFor();
  const state = await context.storageState();
  await context.close();
  return state;
}

// settled waits until nothing loads: the page has drawn itself, and its pictures and fonts are there.
async function settled(page) {
  await page.locator('[aria-busy=true]').first().waitFor({ state: 'detached' });
  await page.waitForTimeout(500); // late parts of the client are fetched after the first drawing
  await page.evaluate(async () => {
    await document.fonts.ready;
    const shown = [...document.images].filter((x) => !x.complete && x.loading !== 'lazy');
    await Promise.all(shown.map((x) => new Promise((done) => { x.onload = x.onerror = done; })));
  });
}

async function shoot(suffix, names, states, ids, options) {
  for (const [name, address, step, user = 'ann'] of VIEWS) {
    if (!names.includes(name) || !wanted.test(`${name}-${suffix}`)) continue;
    const context = await browser.newContext({ baseURL: server.site, locale: 'en-US', reducedMotion: 'reduce',
      serviceWorkers: 'block', ...options, storageState: states[user] });
    context.setDefaultTimeout(TIMEOUT_MS);
    const page = await context.newPage();
    const to = typeof address === 'function' ? await address(ids) : address;
    await page.goto(to.startsWith('#') ? `/${to}` : to);
    if (user !== 'visitor' && to.startsWith('#')) await page.locator('.view-header').waitFor();
    await settled(page);
    try {
      await step?.(page);
      if (step) await settled(page);
    } catch (error) {
      console.log(`${name}-${suffix}: ${error.message.split('\n')[0]}`);
    }
    await page.mouse.move(0, 0);
    if (suffix === 'readme') await page.screenshot({ path: path.join(dir, '../client.png') });
    else if (forPage) await saveSmall(page, `${name}-${suffix}.webp`);
    else await page.screenshot({ path: path.join(dir, `${name}-${suffix}.png`) });
    const box = page.locator('.compose-text');
    if (await box.count()) await box.fill(''); // else it becomes a draft, which later views would show
    await context.close();
  }
}

// saveSmall writes a screenshot in a format that Playwright does not have.
async function saveSmall(page, name) {
  const devtools = await page.context().newCDPSession(page);
  const { data } = await devtools.send('Page.captureScreenshot', { format: 'webp', quality: QUALITY });
  fs.writeFileSync(path.join(dir, name), Buffer.from(data, 'base64'));
}
