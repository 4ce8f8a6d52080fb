// Requests that pages of other sites cause: forms, scripts, links, frames and cookies. None of them may change anything
// or read anything. The other sites are real: another port of the same host, whose requests carry the cookies, another
// host, and a subdomain of the organization's host, which can set cookies for it.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import { PASSWORD } from './parley.js';
import { scene } from './scene.js';

// A site of an attacker, on a port of its own. Its pages are set by "page"; every host name leads to it.
class OtherSite {
  html = '';
  cookies = [];
  #server = http.createServer((_, answer) => {
    answer.setHeader('Set-Cookie', this.cookies);
    answer.setHeader('Content-Type', 'text/html; charset=utf-8');
    answer.end(`<!doctype html><title>Other site</title>${this.html}`);
  });

  static async open() {
    const site = new OtherSite();
    site.#server.listen(0, '127.0.0.1');
    await once(site.#server, 'listening');
    site.port = site.#server.address().port;
    return site;
  }

  close() {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');

// form returns a form that sends itself as soon as the scene asks it to.
function form(action, fields, enctype = 'application/x-www-form-urlencoded') {
  const inputs = Object.entries(fields).map(([name, value]) => `<input name="${escaped(name)}" value="${escaped(value)}">`);
  return `<form method="post" action="${action}" enctype="${enctype}">${inputs.join('')}</form>`;
}

const MESSAGE = { type: 'channel', to: '"general"', topic: 'forged', content: 'forged' };
const NAME = { full_name: 'Forged' };

// forgeries are requests that would change something if the token and the origin were not checked.
const forgeries = [
  ['/json/messages', MESSAGE],
  ['/json/messages', { ...MESSAGE, csrfmiddlewaretoken: 'a'.repeat(32) }],
  ['/json/settings', { ...NAME, method: 'PATCH' }],
  ['/json/users/me', { method: 'DELETE' }],
  ['/json/users/me/api_key/regenerate', { password: PASSWORD }],
  ['/json/users/me/api_keys', { label: 'forged', password: PASSWORD }],
  ['/json/fetch_api_key', { password: PASSWORD }],
  ['/accounts/logout/', {}],
  ['/accounts/sessions/', { session: 'others' }],
  ['/accounts/login/', { username: 'olive@example.org', password: PASSWORD }],
  ['/accounts/login/local/', { direct_email: 'olive@example.org' }],
];

// unharmed fails if a forged request has changed something of Ann.
async function unharmed(parley, ann, context) {
  assert.equal(await ann.user(), 'ann@example.org', context);
  const call = (path, query) => parley.call('ann@example.org', 'GET', path, query);
  assert.equal((await call('users/me')).full_name, 'Ann Lee', context);
  const { messages } = await call('messages', { anchor: 'newest', num_before: 100, num_after: 0,
    narrow: '[["topic","forged"]]' });
  assert.equal(messages.length, 0, context);
}

async function withSite(body) {
  const site = await OtherSite.open();
  try {
    await body(site);
  } finally {
    site.close();
  }
}

scene('forms of other sites change nothing', (s) => withSite(async (site) => {
  const parley = await s.serveNew();
  await parley.setPassword('ann@example.org', 'olive@example.org');
  const [ann, second] = [await s.profile(parley), await s.profile(parley)];
  for (const p of [ann, second]) await p.logIn('ann@example.org');
  const { value: session } = await ann.cookie('sessionid');
  // With the cookies (another port is another origin of the same site), and without them.
  for (const host of [`127.0.0.1:${site.port}`, `localhost:${site.port}`]) {
    for (const [path, fields] of forgeries) {
      for (const enctype of ['application/x-www-form-urlencoded', 'multipart/form-data', 'text/plain']) {
        site.html = form(parley.site + path, fields, enctype);
        await ann.visit(`http://${host}/`);
        const { status, method } = await ann.submit();
        const context = `${path} as ${enctype} from ${host}`;
        // 405: in text/plain there is no field "method". Without the cookies the answer is a redirect to the login page.
        assert.ok([403, 405].includes(status) || method === 'GET', `${context}: ${method} ${status}`);
        assert.equal((await ann.cookie('sessionid')).value, session, context);
      }
    }
    await unharmed(parley, ann, host);
    assert.equal(await second.user(), 'ann@example.org');
  }
}));

scene('scripts of other sites change nothing and read nothing', (s) => withSite(async (site) => {
  const parley = await s.serveNew();
  await parley.setPassword('ann@example.org', 'olive@example.org');
  const ann = await s.profile(parley);
  await ann.logIn('ann@example.org');
  const { value: token } = await ann.cookie('csrftoken');
  ann.expect(/blocked by CORS policy/, /status of 40[0-9]/, /ERR_FAILED/, /ERR_BLOCKED_BY_/, /Failed to load resource/);
  for (const host of [`127.0.0.1:${site.port}`, `localhost:${site.port}`]) {
    await ann.visit(`http://${host}/`);
    for (const [path, fields] of forgeries) {
      for (const [mode, headers] of [['no-cors', {}], ['cors', {}], ['cors', { 'X-CSRFToken': token }]]) {
        const read = await ann.sends(parley.site + path, { method: 'POST', mode, credentials: 'include', headers }, fields);
        assert.equal(read, null, `${path} in mode ${mode} from ${host} can be read`);
      }
    }
    for (const method of ['PATCH', 'DELETE', 'PUT']) {
      assert.equal(await ann.sends(`${parley.site}/json/settings`, { method, mode: 'cors', credentials: 'include' }, NAME),
        null, `${method} from ${host}`);
    }
    for (const path of ['/json/users/me', '/json/messages?anchor=newest&num_before=9&num_after=0', '/', '/login/',
      '/accounts/sessions/', '/json/events?queue_id=x&last_event_id=-1']) {
      for (const mode of ['cors', 'no-cors']) {
        assert.equal(await ann.sends(parley.site + path, { mode, credentials: 'include' }), null, `GET ${path} from ${host}`);
      }
    }
    const tus = { 'Tus-Resumable': '1.0.0', 'Upload-Length': '3' };
    assert.equal(await ann.sends(`${parley.site}/api/v1/tus/`, { method: 'POST', mode: 'cors', credentials: 'include',
      headers: tus }), null, `an upload from ${host}`);
    await unharmed(parley, ann, host);
  }
}));

scene('links, pictures and frames of other sites change nothing', (s) => withSite(async (site) => {
  const parley = await s.serveNew();
  await parley.setPassword('ann@example.org');
  const ann = await s.profile(parley);
  await ann.logIn('ann@example.org');
  const query = new URLSearchParams({ ...MESSAGE, method: 'POST' });
  const links = [`/json/messages?${query}`, `/json/settings?method=PATCH&full_name=Forged`, '/accounts/logout/',
    '/accounts/sessions/?session=others', '/accounts/login/local/?direct_email=olive@example.org'];
  ann.expect(/status of 40[0-9]/, /frame-ancestors/, /ERR_BLOCKED_BY_/, /ERR_FAILED/, /chrome-error/);
  for (const link of links) { // the cookies are sent: the user follows the link
    site.html = `<a href="${escaped(parley.site + link)}">Go</a>`;
    await ann.visit(`http://localhost:${site.port}/`);
    await ann.page.getByRole('link').click();
    await ann.page.waitForLoadState();
    await unharmed(parley, ann, link);
  }
  site.html = links.map((x) => `<img alt="" src="${escaped(parley.site + x)}">`).join('');
  await ann.visit(`http://127.0.0.1:${site.port}/`);
  for (const path of ['/', '/login/?preview', '/accounts/sessions/', '/nonesuch/']) {
    site.html = `<iframe src="${parley.site}${path}"></iframe>`;
    await ann.visit(`http://127.0.0.1:${site.port}/`);
    const text = await ann.page.frames()[1].locator('body').innerText().catch(() => '');
    assert.doesNotMatch(text, /Parley|session|Password|page/i, `${path} in a frame`);
  }
  await unharmed(parley, ann, 'pictures and frames');
}));

scene('a cookie that was planted before the login opens nothing', async (s) => {
  const parley = await s.serveNew();
  await parley.setPassword('ann@example.org', 'olive@example.org');
  const [ann, thief] = [await s.profile(parley), await s.profile(parley)];
  const planted = 'a'.repeat(32);
  for (const p of [ann, thief]) {
    await p.context.addCookies(['sessionid', 'csrftoken'].map((name) => ({ name, value: planted, url: parley.site })));
  }
  await ann.logIn('ann@example.org');
  for (const name of ['sessionid', 'csrftoken']) assert.notEqual((await ann.cookie(name)).value, planted, name);
  assert.equal(await thief.user(), null);
  // The session of a thief, planted into Ann's browser, is not the one after her login, and ends.
  await thief.logIn('olive@example.org');
  await ann.logOut();
  await ann.context.addCookies(await thief.context.cookies());
  await ann.visit('/login/?preview');
  await ann.fill({ 'Email address': 'ann@example.org', Password: PASSWORD });
  await ann.press('Log in');
  assert.deepEqual([await ann.user(), await thief.user()], ['ann@example.org', null]);
});

scene('cookies that a subdomain sets for the host help no forgery', (s) => withSite(async (site) => {
  const parley = await s.serveNew('--url', 'http://chat.localhost:PORT');
  await parley.setPassword('ann@example.org');
  const ann = await s.profile(parley);
  const planted = 'b'.repeat(32);
  const other = `http://other.chat.localhost:${site.port}/`;
  // A longer path makes browsers send the planted token before the real one.
  site.cookies = [`csrftoken=${planted}; Domain=chat.localhost; Path=/json`,
    `csrftoken=${planted}; Domain=chat.localhost; Path=/accounts`];
  await ann.visit(other);
  assert.equal((await ann.context.cookies(`${parley.site}/accounts/`))[0]?.value, planted, 'the cookie was not planted');
  site.html = form(`${parley.site}/accounts/login/local/`, { direct_email: 'olive@example.org', csrfmiddlewaretoken: planted });
  await ann.visit(other);
  assert.equal((await ann.submit()).status, 403);
  assert.equal(await ann.user(), null);
  await ann.context.clearCookies();
  site.cookies = [];
  await ann.logIn('ann@example.org');
  site.cookies = [`csrftoken=${planted}; Domain=chat.localhost; Path=/json`];
  for (const [path, fields] of [['/json/messages', MESSAGE], ['/json/settings', { ...NAME, method: 'PATCH' }]]) {
    site.html = form(parley.site + path, { ...fields, csrfmiddlewaretoken: planted });
    await ann.visit(other);
    assert.equal((await ann.submit()).status, 403, path);
  }
  await unharmed(parley, ann, 'planted token');
}));

scene('forms with a forged, missing or old token are refused with a page', async (s) => {
  const parley = await s.serveNew();
  await parley.setPassword('ann@example.org');
  const [ann, other] = [await s.profile(parley), await s.profile(parley)];
  for (const p of [ann, other]) await p.logIn('ann@example.org');
  await other.visit('/accounts/sessions/');
  const field = (p) => p.page.locator('input[name=csrfmiddlewaretoken]').first();
  const stolen = await field(other).inputValue();
  for (const token of ['', 'x', stolen, 'A'.repeat(4000), null]) {
    await ann.visit('/accounts/sessions/');
    await ann.page.locator('input[name=csrfmiddlewaretoken]').evaluateAll((list, value) => {
      for (const e of list) value === null ? e.remove() : e.setAttribute('value', value);
    }, token);
    await ann.press('End all other sessions', 403);
    assert.equal(await ann.heading(), 'Please try again');
    await ann.accessible();
  }
  assert.deepEqual([await ann.user(), await other.user()], ['ann@example.org', 'ann@example.org']);
  // A page from before a login has the token of a visitor.
  await ann.visit('/accounts/password/reset/');
  const login = await ann.context.newPage();
  await login.goto('/login/?preview');
  await login.getByRole('button', { name: 'Bo Park' }).click();
  await login.waitForURL(`${parley.site}/`);
  await ann.fill({ 'Email address': 'ann@example.org' });
  await ann.press('Send the link', 403);
});

// Every address that a browser may read as another host, or as a script.
const unsafe = (site) => ['https://example.com/', '//example.com/', '///example.com/', '////example.com', '/\\example.com/',
  '\\\\example.com/', '\\/example.com', '/\t/example.com/', '/\n/example.com/', ' //example.com', '/%09/example.com',
  'javascript:alert(1)', 'data:text/html,x', 'http:example.com', 'http:/example.com', 'https:example.com', '//example.com\\@127.0.0.1',
  `${site}@example.com/`, `${site}.example.com/`, '/\u0000/example.com', '/\r\nLocation: https://example.com', './/example.com',
  '/..//example.com', '/.//example.com', '/%2e%2e//example.com', '/x/..//example.com', '?next=//example.com', '#//example.com'];

scene('a login returns to this server only', async (s) => {
  const parley = await s.serveNew();
  const ann = await s.profile(parley);
  ann.expect(/status of 40[0-9]/);
  const outside = [];
  await ann.context.route((url) => url.origin !== parley.site, (route) => {
    outside.push(route.request().url());
    return route.abort();
  });
  for (const next of unsafe(parley.site)) {
    const context = JSON.stringify(next);
    await ann.context.clearCookies();
    await ann.page.goto(`/login/?next=${encodeURIComponent(next)}`);
    await ann.page.getByRole('button', { name: 'Bo Park' }).click(); // the hidden field has the address
    await ann.page.waitForURL((url) => url.pathname !== '/login/', { waitUntil: 'load' });
    assert.equal(new URL(ann.page.url()).origin, parley.site, context);
    assert.equal(await ann.user(), 'bo@example.org', context);
    await ann.page.goto(`/login/?next=${encodeURIComponent(next)}`); // with a session the server redirects at once
    assert.equal(new URL(ann.page.url()).origin, parley.site, context);
  }
  assert.deepEqual(outside, []);
  for (const next of ['/accounts/sessions/', '/accounts/sessions/?a=b&c=%2F']) {
    await ann.visit(`/login/?next=${encodeURIComponent(next)}`);
    assert.equal(ann.path(), next);
  }
});
