// Every view of the client, one after the other: axe-core finds nothing in it, and on the screen of a phone nothing is
// cut off, covered or too small. VIEWS chooses views by a pattern of their names; SHOTS is a folder for their pictures.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { ANN, OLIVE, furnish, VIEWS, WITHOUT_LOGIN } from './all_views.js';
import { opened } from './client.js';
import { axe, room } from './look.js';
import { scene } from './scene.js';

const wanted = new RegExp(process.env.VIEWS ?? '');
const { SHOTS } = process.env;
const LONG_MS = 600_000;
const STEP_MS = 5000; // of one step in a page that is already open

// LOOKS are the looks that a user can choose in the settings.
const LOOKS = {
  light: {},
  dark: { options: { colorScheme: 'dark' } },
  contrast: { settings: { high_contrast_mode: 'true' } },
  'contrast-dark': { options: { colorScheme: 'dark' }, settings: { high_contrast_mode: 'true' } },
  rtl: { settings: { default_language: 'he' } },
};
const WINDOWS = new RegExp('^#(settings|organization|channels|groups|user|drafts|scheduled|reminders|about-|keyboard-|'
  + 'message-f|search-o|invite)');
const PHONE = { viewport: { width: 375, height: 700 }, hasTouch: true, isMobile: true };

// close closes the windows, menus and columns of the last view.
async function close(page) {
  for (let i = 0; i < 6; i++) {
    if (await page.locator('dialog[open], .popover, .compose-box, .editor, .completions').count() === 0) break;
    await page.keyboard.press('Escape');
  }
  const closes = page.locator('.right .only-narrow');
  if (await closes.isVisible()) await closes.click();
  const shade = page.locator('.shade');
  if (await shade.isVisible()) await shade.click({ position: { x: page.viewportSize().width - 5, y: 300 } });
}

async function visit(page, view, ids) {
  const address = typeof view.address === 'function' ? view.address(ids) : view.address;
  if (address.startsWith('#') && page.url().includes('/#')) {
    await close(page);
    await page.evaluate(async (x) => {
      location.hash = x;
      await new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); });
    }, address);
  } else {
    await page.goto(address.startsWith('#') ? `/${address}` : address);
  }
  if (address.startsWith('#')) {
    await page.locator('.view-header').waitFor();
    await page.locator('[aria-busy=true]').first().waitFor({ state: 'detached' });
    if (WINDOWS.test(address)) {
      await page.locator('dialog[open]').first().waitFor();
      await page.locator('dialog [aria-busy=true]').first().waitFor({ state: 'detached' });
    }
  }
  await view.step?.(page);
  await page.mouse.move(0, 0);
}

async function go(s, label, options, settings, look) {
  const parley = await s.serve();
  const ids = await furnish(parley);
  for (const email of [ANN, OLIVE]) {
    await parley.call(email, 'PATCH', 'settings', { web_mark_read_on_scroll_policy: '3', ...settings });
  }
  const context = { reducedMotion: 'reduce', colorScheme: 'light', viewport: { width: 1280, height: 800 }, ...options };
  const ann = await opened(s, parley, ANN, '#inbox', context);
  const olive = await opened(s, parley, OLIVE, '#inbox', context);
  const pages = { ann, olive };
  const faults = [];
  for (const p of Object.values(pages)) p.context.setDefaultTimeout(STEP_MS);
  let count = 0;
  for (const view of VIEWS.filter((v) => wanted.test(v.name))) {
    const p = pages[view.user];
    try {
      await visit(p.page, view, ids);
      if (SHOTS) await p.page.screenshot({ path: `${SHOTS}/${view.name.replace(/\W+/g, '-')}-${label}.png` });
      for (const fault of await look(p.page)) faults.push([view.name, fault]);
    } catch (error) {
      faults.push([view.name, `not opened: ${error.message.slice(0, 1500)}`]);
      await p.page.goto('/#inbox');
    }
    count += 1;
  }
  const visitor = await s.profile(parley, context);
  visitor.expect(/status of 40[0-9]/);
  for (const [name, address] of WITHOUT_LOGIN.filter(([n]) => wanted.test(n))) {
    await visitor.page.goto(typeof address === 'function' ? address(ids) : address);
    for (const fault of await look(visitor.page)) faults.push([name, fault]);
    count += 1;
  }
  console.log(`${count} views`);
  if (faults.length) throw new Error(summary(faults));
}

// summary names each fault once, with the views that have it.
function summary(faults) {
  const views = new Map();
  for (const [view, fault] of faults) views.set(fault, [...views.get(fault) ?? [], view]);
  return [...views].map(([fault, names]) => `${fault} (${names.slice(0, 4).join(', ')}${
    names.length > 4 ? ` and ${names.length - 4} more` : ''})`).join('\n');
}

// quick checks a view in all looks: all rules in the light one, and in the others the colours or the places. The
// attributes are those that the settings change (ui/theme.ts).
async function quick(page) {
  const found = [...await axe(page), ...await room(page, 0)];
  const colours = async (name, attributes, back) => {
    await page.evaluate((x) => Object.assign(document.documentElement.dataset, x), attributes);
    found.push(...(await axe(page, ['color-contrast'])).map((x) => `${name}: ${x}`));
    await page.evaluate((x) => Object.assign(document.documentElement.dataset, x), back);
  };
  const { theme, contrast } = await page.evaluate(() => ({ ...document.documentElement.dataset }));
  if (theme) { // the pages that the server makes follow the system only
    await colours('dark', { theme: 'dark' }, { theme });
    await colours('high contrast', { contrast: 'high' }, { contrast });
  } else {
    await page.emulateMedia({ colorScheme: 'dark' });
    found.push(...(await axe(page, ['color-contrast'])).map((x) => `dark: ${x}`));
    await page.emulateMedia({ colorScheme: 'light' });
  }
  await page.evaluate(() => { document.documentElement.dir = 'rtl'; });
  found.push(...(await room(page, 0)).map((x) => `right to left: ${x}`));
  await page.evaluate(() => { document.documentElement.dir = 'ltr'; });
  return found;
}

// MODES=light,rtl or MODES=all looks at the views with the settings of the user, and all rules. It takes 30 seconds for
// each mode.
const modes = process.env.MODES === 'all' ? Object.keys(LOOKS) : (process.env.MODES ?? '').split(',').filter(Boolean);

for (const mode of modes) {
  scene(`axe-core finds nothing in any view: ${mode}`, async (s) => {
    const { options, settings } = LOOKS[mode];
    await go(s, mode, options, settings, async (page) => [...await axe(page), ...await room(page, 0)]);
  }, LONG_MS);
}

if (modes.length === 0) {
  scene('the table of views has all windows and sections of the settings', async (s) => {
    const router = fs.readFileSync(new URL('../client/src/store/router.ts', import.meta.url), 'utf8');
    const windows = router.match(/const overlays = new Set\(\[([^\]]*)\]/)[1].match(/[\w-]+/g);
    const p = await opened(s, await s.serve(), OLIVE, '#settings/profile');
    const links = () => p.page.locator('.settings-columns nav a')
      .evaluateAll((all) => all.map((a) => a.getAttribute('href')));
    const all = [...windows.map((x) => `#${x}`), ...await links()];
    await p.page.goto('/#organization/users');
    await p.page.locator('.settings-title', { hasText: 'Users' }).waitFor();
    all.push(...await links());
    const known = VIEWS.map((v) => (typeof v.address === 'function' ? v.address({}) : v.address));
    const missing = all.filter((x) => x !== '#streams' && !known.some((k) => k === x || k.startsWith(`${x}/`)));
    assert.deepEqual(missing, []); // #streams is an older name of #channels
  });

  scene('axe-core finds nothing in any view, in all looks', async (s) => {
    await go(s, 'light', {}, {}, quick);
  }, LONG_MS);

  scene('on a phone axe-core finds nothing, every view fits, and fingers find each control', async (s) => {
    await go(s, 'phone', PHONE, {}, async (page) => {
      const found = [...await axe(page), ...await room(page)];
      await page.setViewportSize({ width: 320, height: 640 });
      found.push(...(await room(page)).map((x) => `320 pixels: ${x}`));
      await page.setViewportSize(PHONE.viewport);
      return found;
    });
  }, LONG_MS);
}
