// Scenes: tests of node's runner in which profiles of one Chromium visit servers. At the end of a scene, each profile
// must have seen no error in its console, no violation of the content security policy and no failed request that the
// scene did not expect.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { chromium } from 'playwright-core';
import { axe } from './look.js';
import { PASSWORD, Parley, TIMEOUT_MS, send } from './parley.js';

const SCENE_MS = 180_000; // the longest scene takes a tenth of this alone, and others run beside it

// SLOW makes the pages that many times slower, and each request to the API and each of its answers up to that many
// tenths of a second late. A scene that fails with it has asked for something before a user could see it, or has found a
// fault that users with a slow device or network see.
const SLOW = Number(process.env.SLOW || 0);

// FEATURES are switched off. Chromium obeys only the last such list, so the first ones repeat Playwright's. The pages of
// the address bar (WebUIOmnibox), which no scene sees, would cost each profile a process of its own.
const FEATURES = ['AvoidUnnecessaryBeforeUnloadCheckSync', 'DestroyProfileOnBrowserClose', 'HttpsUpgrades',
  'HttpsFirstBalancedModeAutoEnable', 'LensOverlay', 'MediaRouter', 'PaintHolding', 'ThirdPartyStoragePartitioning',
  'AvoidCorsURLLoaderRestartOnRedirect', 'OptimizationHints', 'NetworkTimeServiceQuerying', 'AimEnabled',
  'PreconnectToSearch', 'WebUIOmniboxPopup', 'WebUIOmniboxAimPopup'];

// CAMERA gives pages a camera with a moving picture and a microphone with a tone, without a question to the user.
// Calls may go to a server on this machine.
const CAMERA = ['--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream',
  '--allow-loopback-in-peer-connection'];

// FIREFOX is the program of a Firefox that visits the pages in place of Chromium. ONLY_CHROMIUM are the scenes that need
// what its protocol lacks.
const FIREFOX = process.env.PARLEY_FIREFOX;
const ONLY_CHROMIUM = {
  'files are uploaded by the button, by paste and by drop': 'Firefox gives pasted files to no event of a script',
  'formatted text is pasted as Markdown, and code as it is': 'Firefox gives pasted text to no event of a script',
  'a star and a reaction that are set, removed and set at once stay set': 'Firefox does not report the end of delayed requests',
  'a mention of everyone in a large channel asks first': 'Firefox takes no changed answer after a reload',
};

// LOST fits the problems of pages whose server ends.
export const LOST = /ERR_(EMPTY_RESPONSE|CONNECTION_RESET|CONNECTION_REFUSED|SOCKET_NOT_CONNECTED)|NS_ERROR_(CONNECTION_REFUSED|NET_RESET)/;

let browser; // started by the first scene of a file

async function launched() {
  browser ??= FIREFOX ? launchFirefox() : chromium.launch({ executablePath: process.env.PARLEY_CHROMIUM, timeout: TIMEOUT_MS,
    args: ['--no-sandbox', '--disable-dev-shm-usage', ...CAMERA, `--disable-features=${FEATURES}`] });
  return browser;
}

// launchFirefox uses the release of Playwright whose commands the Firefox of Debian knows.
async function launchFirefox() {
  const { firefox } = await import('playwright-for-firefox');
  const mouse = 2 + 4; // it is fine and can hover: without a screen Firefox has no mouse
  return firefox.launch({ channel: 'moz-firefox', executablePath: FIREFOX, timeout: TIMEOUT_MS,
    firefoxUserPrefs: { 'ui.primaryPointerCapabilities': mouse, 'ui.allPointerCapabilities': mouse } });
}

// goByHash lets a page go to a place of the same document. Firefox reports no load of it, for which goto waits.
function goByHash(page) {
  const goTo = page.goto.bind(page);
  page.goto = (address, options) => {
    const [before, hash] = address.split('#');
    if (page.url() === 'about:blank') return goTo(address, options);
    const isHere = before === '' || new URL(before, page.url()).href === page.url().split('#')[0];
    return hash && isHere ? page.evaluate((x) => { location.hash = x; }, hash) : goTo(address, options);
  };
}

after(async () => (await browser)?.close());

// scene adds a test. Its body gets a Scene, which ends the servers and profiles that it has started.
export function scene(name, body, timeout = SCENE_MS) {
  test(name, { timeout, skip: FIREFOX && ONLY_CHROMIUM[name] }, async () => {
    const s = new Scene();
    try {
      await body(s);
      s.check();
    } catch (error) {
      error.stack += s.context();
      throw error;
    } finally {
      await s.close();
    }
  });
}

// slowDown lets the pages of a profile run as SLOW describes. The requests of fetch are delayed by the page itself, so that
// routes of scenes and a missing network work as ever.
async function slowDown(context) {
  context.on('page', async (page) => {
    try {
      const session = await context.newCDPSession(page);
      await session.send('Emulation.setCPUThrottlingRate', { rate: SLOW });
    } catch { /* the page is closed already */ }
  });
  await context.addInitScript((most) => {
    const { fetch, setTimeout } = window; // a scene can replace the clock
    const delay = () => new Promise((resolve) => { setTimeout(resolve, Math.random() * most); });
    window.fetch = async (address, options) => {
      if (!String(address?.url ?? address).includes('/json/')) return fetch(address, options);
      if (!options?.keepalive) await delay(); // such a request is sent although the page is left
      const answer = await fetch(address, options);
      await delay();
      options?.signal?.throwIfAborted();
      return answer;
    };
  }, SLOW * 100);
}

class Scene {
  #servers = [];
  #profiles = [];

  // serve starts a server with further flags. Its people have a password and can log in quickly.
  async serve(...options) {
    const server = await Parley.copy(...options);
    this.#servers.push(server);
    return server;
  }

  // serveNew starts a server on which nobody has a password or a session, for scenes about these.
  async serveNew(...options) {
    const server = await Parley.serve(...options);
    this.#servers.push(server);
    return server;
  }

  // profile opens a browser profile: cookies of its own, one page. Service workers are off: requests that they make are
  // hidden from the scenes that watch requests. A scene about them passes serviceWorkers: 'allow'.
  async profile(server, options = {}) {
    const context = await (await launched()).newContext({ baseURL: server.site, locale: 'en-US',
      serviceWorkers: 'block', ...options });
    context.setDefaultTimeout(TIMEOUT_MS);
    if (SLOW) await slowDown(context);
    const p = new Profile(server, context, await context.newPage());
    if (FIREFOX) goByHash(p.page);
    await p.listen();
    this.#profiles.push(p);
    return p;
  }

  check() {
    for (const p of this.#profiles) p.check();
  }

  // context describes the end of a failed scene.
  context() {
    const pages = this.#profiles.map((p) => `\n at ${p.page.url()}: ${p.problems.join('; ')}`);
    const logs = this.#servers.map((s) => `\n log: ${s.text().split('\n').filter((x) => /ERROR|panic|FATAL/.test(x)).slice(-5).join('\n')}`);
    return [...pages, ...logs].join('');
  }

  async close() {
    for (const p of this.#profiles) await p.context.close();
    for (const s of this.#servers) await s.close();
  }
}

export class Profile {
  problems = []; // that no expected pattern fits
  #expected = [/Service Worker registration blocked by Playwright/];

  constructor(server, context, page) {
    Object.assign(this, { server, context, page });
  }

  // listen collects the problems of all pages of the profile.
  async listen() {
    await this.context.addInitScript(() => {
      document.addEventListener('securitypolicyviolation', (e) => {
        console.error(`policy violated: ${e.violatedDirective} by ${e.blockedURI} at ${e.sourceFile}`);
      });
    });
    this.context.on('console', (m) => {
      if (['error', 'warning'].includes(m.type())) this.#note(`console: ${m.text()} (${m.location().url})`);
    });
    this.context.on('weberror', (e) => this.#note(`script: ${e.error().message}`));
    this.context.on('requestfailed', (r) => {
      // Chromium reports navigations that a redirect or a later navigation replaced.
      if (!['net::ERR_ABORTED', 'NS_BINDING_ABORTED'].includes(r.failure()?.errorText)) this.#note(`request: ${r.url()} ${r.failure()?.errorText}`);
    });
  }

  #note(text) {
    if (!this.#expected.some((x) => x.test(text))) this.problems.push(text);
  }

  // expect lets the profile see problems that fit a pattern from now on.
  expect(...patterns) { this.#expected.push(...patterns); }

  // check fails if the profile has seen problems.
  check() { assert.deepEqual(this.problems, []); }

  // visit opens an address and returns the answer, which must have the status.
  async visit(address, status = 200) {
    if (status >= 400) this.expect(new RegExp(`Failed to load resource: .* status of ${status} `));
    const answer = await this.page.goto(address);
    assert.equal(answer.status(), status, `status of ${address}`);
    return answer;
  }

  // path returns path and query of the page.
  path() {
    const { pathname, search } = new URL(this.page.url());
    return pathname + search;
  }

  heading() { return this.page.locator('h1').innerText(); }

  // alert returns the error that the page shows.
  alert() { return this.page.getByRole('alert').innerText(); }

  // fill fills the labelled fields of the page's form.
  async fill(fields) {
    for (const [label, value] of Object.entries(fields)) {
      await this.page.getByLabel(label, { exact: true }).fill(value);
    }
  }

  // press clicks a button and waits for the page that follows, whose answer must have the status.
  async press(button, status = 200) {
    await this.#go(this.page.getByRole('button', { name: button, exact: true }), status);
  }

  // follow clicks a link and waits for its page.
  async follow(link, status = 200) {
    await this.#go(this.page.getByRole('link', { name: link, exact: true }), status);
  }

  async #go(element, status) {
    if (status >= 400) this.expect(new RegExp(`Failed to load resource: .* status of ${status} `));
    const [answer] = await Promise.all([this.#nextPage(), element.click()]);
    assert.equal(answer.status(), status, `status of ${answer.url()}`);
  }

  // #nextPage waits for the next page, after redirects, and returns its answer.
  async #nextPage() {
    const isPage = (r) => r.request().isNavigationRequest() && r.frame() === this.page.mainFrame() &&
      (r.status() < 300 || r.status() >= 400);
    const [answer] = await Promise.all([this.page.waitForResponse(isPage), this.page.waitForEvent('domcontentloaded')]);
    await this.page.waitForLoadState();
    return answer;
  }

  // showNoScript shows the page of a path as browsers without scripts do, so that the scene's own scripts still run.
  async showNoScript(path) {
    await this.context.route(this.server.site + path, async (route) => {
      const answer = await route.fetch({ maxRedirects: 0 });
      const body = (await answer.text()).replaceAll(/<\/?noscript>|<script[^>]*><\/script>|<link rel="modulepreload"[^>]*>/g, '');
      await route.fulfill({ response: answer, body });
    });
  }

  // logIn logs in: with a session that the server already has, or with the form. The form leads to the page with the
  // sessions, which has no script. A session of the server may be too old for dangerous acts: typed chooses the form.
  async logIn(email, password = PASSWORD, typed = false) {
    const plain = this.server.site.startsWith('http:'); // cookies over TLS have another name
    const session = plain && !typed && password === PASSWORD ? this.server.session?.(email) : undefined;
    if (session) {
      await this.context.addCookies([{ name: 'sessionid', value: session, url: this.server.site }]);
      assert.equal(await this.user(), email);
      return;
    }
    await this.visit('/login/?next=/accounts/sessions/');
    await this.fill({ 'Email address': email, Password: password });
    await this.press('Log in');
    assert.equal(this.path(), '/accounts/sessions/');
    assert.equal(await this.user(), email);
  }

  // logOut sends the form that a start page without scripts has.
  async logOut() {
    await this.visit('/accounts/sessions/');
    await this.page.evaluate(() => { document.forms[0].action = '/accounts/logout/'; });
    await this.submit();
    assert.equal(this.path(), '/login/');
  }

  // user returns the email address of the user that the profile's session belongs to, or null.
  async user(site = this.server.site) {
    const { host, port } = new URL(site);
    const cookie = (await this.context.cookies(site)).map((x) => `${x.name}=${x.value}`).join('; ');
    const { status, text } = await send({ port, path: '/json/users/me', headers: { host, cookie } });
    assert.ok([200, 401].includes(status), `status ${status}`);
    return status === 200 ? JSON.parse(text).delivery_email : null;
  }

  // cookie returns a cookie by its name.
  async cookie(name) { return (await this.context.cookies()).find((x) => x.name === name); }

  // request sends a request with the profile's cookies, beside the page, and returns its status and body. The content
  // security policy of pages without scripts forbids fetch.
  async request(method, address, form, headers = {}) {
    const answer = await this.context.request.fetch(address, { method, form, headers, maxRedirects: 0 });
    const text = await answer.text();
    let json;
    try { json = JSON.parse(text); } catch { /* a page */ }
    return { status: answer.status(), headers: answer.headers(), text, json };
  }

  // fetch sends a request from a script of the page, where its policy allows that, and returns its status and body.
  // A body of URLSearchParams is sent as a form.
  fetch(address, options = {}) {
    const form = options.body instanceof URLSearchParams ? options.body.toString() : null;
    return this.page.evaluate(async ([to, how, encoded]) => {
      const answer = await fetch(to, encoded === null ? how : { ...how, body: new URLSearchParams(encoded) });
      const text = await answer.text();
      let json;
      try { json = JSON.parse(text); } catch { /* a page */ }
      return { status: answer.status, text, json };
    }, [address, form === null ? options : { ...options, body: null }, form]);
  }

  // submit sends the page's form, without its button. It returns status and method of the page that follows, after
  // redirects.
  async submit() {
    this.expect(/Failed to load resource: .* status of 40[0-9] /);
    const [answer] = await Promise.all([this.#nextPage(), this.page.evaluate(() => document.forms[0].submit())]);
    return { status: answer.status(), method: answer.request().method() };
  }

  // sends sends a request from a script of the page, with form fields as its body, and returns the part of the answer
  // that the script can read, or null.
  sends(address, options, fields) {
    return this.page.evaluate(async ([to, how, form]) => {
      try {
        const answer = await fetch(to, form ? { ...how, body: new URLSearchParams(form) } : how);
        return await answer.text() || null;
      } catch {
        return null;
      }
    }, [address, options, fields]);
  }

  // accessible checks the page with axe-core in light and dark, and at the width of a phone, where it must not be wider
  // than the screen. Dark differs from light in its colours, so only these are checked again. Nothing moves meanwhile:
  // axe-core would measure colours in between. every_view_test.js has the views of the client on phones.
  async accessible() {
    const before = this.page.viewportSize();
    await this.resize({ width: 1280, height: 720 });
    for (const colorScheme of ['light', 'dark']) {
      await this.page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      const found = await axe(this.page, colorScheme === 'dark' ? ['color-contrast'] : undefined);
      assert.deepEqual(found, [], `axe-core at ${this.path()} "${await this.page.title()}" ${colorScheme}`);
    }
    await this.resize({ width: 320, height: 720 });
    const scrolled = await this.page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(scrolled <= 0, `${this.path()}: the page is ${scrolled} pixels too wide`);
    await this.page.emulateMedia({ colorScheme: null, reducedMotion: null });
    await this.resize(before);
  }

  // resize waits until the page knows its new width: a browser tells it before it draws the next frame. A key that is
  // pressed before that has the meaning that it has at the old width.
  async resize(size) {
    await this.page.setViewportSize(size);
    await this.page.evaluate(() => new Promise((drawn) => {
      requestAnimationFrame(() => requestAnimationFrame(drawn));
    }));
  }
}
