// Login and logout with the form.
import assert from 'node:assert/strict';
import { PASSWORD } from './parley.js';
import { scene } from './scene.js';

const LOGIN = { 'Email address': 'ann@example.org', Password: PASSWORD };
const WRONG = { ...LOGIN, Password: 'not this one' };

scene('a user logs in and out, without scripts', async (s) => {
  const parley = await s.serveNew();
  await parley.setPassword('ann@example.org');
  const ann = await s.profile(parley);
  await ann.showNoScript('/');
  await ann.visit('/');
  assert.equal(ann.path(), '/login/');
  assert.equal(await ann.heading(), 'Parley Demo');
  await ann.accessible();
  await ann.fill(LOGIN);
  await ann.press('Log in');
  assert.equal(ann.path(), '/');
  await ann.visit('/'); // routes of the scene do not see redirected requests
  await ann.accessible();
  assert.equal(await ann.user(), 'ann@example.org');
  for (const name of ['sessionid', 'csrftoken']) {
    const { httpOnly, sameSite, path } = await ann.cookie(name);
    assert.deepEqual({ httpOnly, sameSite, path }, { httpOnly: true, sameSite: 'Lax', path: '/' }, name);
  }
  assert.equal(await ann.page.evaluate(() => document.cookie), '', 'cookies that scripts can read');
  await ann.visit('/accounts/logout/'); // a link does not log out
  await ann.visit('/');
  assert.equal(await ann.user(), 'ann@example.org');
  await ann.press('Log out');
  assert.equal(ann.path(), '/login/');
  assert.equal(await ann.user(), null);
  await ann.page.goBack();
  assert.equal(ann.path(), '/login/', 'the page before a logout is not shown again');
});

scene('a wrong password shows the form again, with the same text for unknown addresses', async (s) => {
  const parley = await s.serveNew('--login-limit', '0');
  await parley.setPassword('ann@example.org');
  const ann = await s.profile(parley);
  const texts = new Set();
  for (const address of ['ann@example.org', 'unknown@example.org']) {
    await ann.visit('/login/?next=/accounts/sessions/');
    await ann.fill({ ...WRONG, 'Email address': address });
    await ann.press('Log in');
    assert.equal(await ann.page.getByLabel('Email address').inputValue(), address);
    assert.equal(await ann.page.getByLabel('Password').inputValue(), '');
    texts.add(await ann.alert());
    assert.equal(await ann.cookie('sessionid'), undefined);
  }
  assert.deepEqual([...texts], ['Your username or password is incorrect']);
  await ann.accessible();
  await ann.fill(LOGIN);
  await ann.press('Log in');
  assert.equal(ann.path(), '/accounts/sessions/', 'the address to return to outlives a wrong password');
});

scene('after five wrong passwords the right one is refused too, for this account only', async (s) => {
  const parley = await s.serveNew();
  await parley.setPassword('ann@example.org', 'olive@example.org');
  const ann = await s.profile(parley);
  await ann.visit('/login/');
  for (let i = 0; i < 5; i += 1) {
    await ann.fill(WRONG);
    await ann.press('Log in');
    assert.match(await ann.alert(), /incorrect/);
  }
  await ann.fill(LOGIN);
  await ann.press('Log in');
  assert.match(await ann.alert(), /too many attempts/);
  await ann.accessible();
  assert.equal(await ann.user(), null);
  const olive = await s.profile(parley);
  await olive.logIn('olive@example.org');
});

scene('a demo logs in with one click', async (s) => {
  const parley = await s.serveNew();
  const bo = await s.profile(parley);
  await bo.visit('/login/?next=/accounts/sessions/');
  await bo.press('Bo Park Member');
  assert.equal(bo.path(), '/accounts/sessions/');
  assert.equal(await bo.user(), 'bo@example.org');
});

scene('pages are shown in the language of the browser', async (s) => {
  const parley = await s.serveNew();
  const ann = await s.profile(parley, { locale: 'de-DE' });
  for (const path of ['/login/', '/accounts/password/reset/', '/accounts/find/', '/accounts/go/']) {
    await ann.visit(path);
    assert.equal(await ann.page.locator('html').getAttribute('lang'), 'de');
    await ann.accessible();
  }
});

scene('a session is kept in the profile that logged in, until it is deactivated', async (s) => {
  const parley = await s.serveNew();
  await parley.setPassword('ann@example.org');
  const [ann, visitor] = [await s.profile(parley), await s.profile(parley)];
  await ann.logIn('ann@example.org');
  assert.equal(await visitor.user(), null);
  await ann.visit('/login/'); // with a session there is nothing to log in
  assert.equal(ann.path(), '/');
  await ann.visit('/accounts/sessions/'); // a page without polls, which would fail below
  const { user_id: id } = await parley.call('ann@example.org', 'GET', 'users/me');
  await parley.call('olive@example.org', 'DELETE', `users/${id}`);
  await ann.page.reload();
  assert.equal(ann.path(), '/login/?next=%2Faccounts%2Fsessions%2F');
  await ann.fill(LOGIN);
  await ann.press('Log in');
  assert.match(await ann.alert(), /deactivated/);
  await ann.accessible();
});

scene('a deactivated organization says so', async (s) => {
  const parley = await s.serveNew();
  await parley.setPassword('ann@example.org');
  const ann = await s.profile(parley);
  await ann.logIn('ann@example.org');
  await ann.visit('/accounts/deactivated/'); // not yet
  assert.equal(ann.path(), '/');
  await ann.visit('/accounts/sessions/');
  await parley.operate('realm', 'close');
  for (const path of ['/', '/login/', '/accounts/sessions/', '/register/', '/accounts/password/reset/']) {
    await ann.visit(path);
    assert.equal(ann.path(), '/accounts/deactivated/', path);
  }
  assert.match(await ann.page.locator('main').innerText(), /This organization has been deactivated/);
  await ann.accessible();
  await parley.operate('realm', 'reopen');
  await ann.visit('/');
  assert.equal(ann.path(), '/login/', 'a session from before goes on');
});
