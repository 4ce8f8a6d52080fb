// Pages of visitors: signing up, joining, replacing a password or an address, finding accounts, organizations.
import assert from 'node:assert/strict';
import { PASSWORD } from './parley.js';
import { scene } from './scene.js';

const OTHER = 'yellow ferret 17 door';
const WEAK = 'password';

scene('a visitor signs up with a confirmed address', async (s) => {
  const parley = await s.serveNew();
  const visitor = await s.profile(parley);
  await visitor.visit('/register/', 403);
  assert.match(await visitor.alert(), /You need an invitation/);
  await visitor.accessible();
  await parley.call('olive@example.org', 'PATCH', 'realm', { invite_required: 'false' });
  await visitor.visit('/login/');
  await visitor.follow('Sign up');
  await visitor.accessible();
  await visitor.fill({ 'Email address': 'x@mailinator.com' });
  await visitor.press('Sign up', 400);
  assert.match(await visitor.alert(), /\w/);
  await visitor.accessible();
  await visitor.fill({ 'Email address': 'new@example.net' });
  await visitor.press('Sign up');
  assert.equal(await visitor.heading(), 'Check your email');
  await visitor.accessible();
  const link = await parley.link('new@example.net', '/accounts/do_confirm/');
  await visitor.visit(link);
  assert.equal(await visitor.page.getByLabel('Email address').inputValue(), 'new@example.net');
  await visitor.accessible();
  await visitor.fill({ 'Full name': 'New Person', Password: WEAK });
  await visitor.press('Sign up', 400);
  assert.match(await visitor.alert(), /[Pp]assword/);
  assert.equal(await visitor.page.getByLabel('Full name').inputValue(), 'New Person');
  await visitor.accessible();
  await visitor.fill({ Password: OTHER });
  await visitor.press('Sign up');
  assert.equal(visitor.path(), '/');
  assert.equal(await visitor.user(), 'new@example.net');
  const again = await s.profile(parley);
  await again.visit(link, 404);
  await again.accessible();
});

scene('an invited person joins and is logged in', async (s) => {
  const parley = await s.serveNew();
  const olive = (method, path, form) => parley.call('olive@example.org', method, path, form);
  await olive('POST', 'invites', { invitee_emails: 'one@example.net', stream_ids: '[]' });
  const { invite_link: open } = await olive('POST', 'invites/multiuse', { stream_ids: '[]' });
  const byMail = await parley.link('one@example.net', '/join/');
  for (const [link, email] of [[byMail, 'one@example.net'], [open, 'two@example.net']]) {
    const visitor = await s.profile(parley);
    await visitor.visit(link);
    assert.equal(await visitor.heading(), 'Join Parley Demo');
    await visitor.accessible();
    if (link === open) await visitor.fill({ 'Email address': email });
    await visitor.fill({ 'Full name': 'Invited Person', Password: WEAK });
    await visitor.press('Join', 400);
    assert.match(await visitor.alert(), /[Pp]assword/);
    await visitor.accessible();
    await visitor.fill({ Password: OTHER });
    await visitor.press('Join');
    assert.equal(visitor.path(), '/');
    assert.equal(await visitor.user(), email);
  }
  const late = await s.profile(parley);
  for (const link of [byMail, `${byMail}x`, '/join/nonesuch/']) {
    await late.visit(link, 404);
    await late.accessible();
  }
  assert.equal(await late.user(), null);
});

scene('a forgotten password is replaced by a link that works once and ends sessions', async (s) => {
  const parley = await s.serveNew();
  await parley.setPassword('ann@example.org');
  const [ann, visitor] = [await s.profile(parley), await s.profile(parley)];
  await ann.logIn('ann@example.org');
  for (const address of ['unknown@example.net', 'ann@example.org']) {
    await visitor.visit('/login/');
    await visitor.follow('Forgot your password?');
    await visitor.accessible();
    await visitor.fill({ 'Email address': address });
    await visitor.press('Send the link');
    assert.equal(visitor.path(), '/accounts/password/reset/done/');
  }
  await visitor.accessible();
  const link = await parley.link('ann@example.org', '/accounts/password/reset/');
  assert.equal(parley.emails('unknown@example.net').length, 0);
  await visitor.visit(link);
  await visitor.accessible();
  const set = async (first, second, status) => {
    await visitor.fill({ 'New password': first, 'New password again': second });
    await visitor.press('Set the password', status);
  };
  await set(OTHER, `${OTHER}x`, 400);
  assert.match(await visitor.alert(), /differ/);
  await set(WEAK, WEAK, 400);
  assert.match(await visitor.alert(), /[Pp]assword/);
  await visitor.accessible();
  assert.equal(await ann.user(), 'ann@example.org');
  const open = await s.profile(parley); // a second window with the same link, opened before it was used
  await open.visit(link);
  await set(OTHER, OTHER);
  assert.equal(visitor.path(), '/accounts/password/done/');
  await visitor.accessible();
  assert.equal(await ann.user(), null);
  await open.fill({ 'New password': PASSWORD, 'New password again': PASSWORD });
  await open.press('Set the password', 404);
  await open.accessible();
  await open.visit(link, 404);
  await visitor.follow('Log in');
  await visitor.fill({ 'Email address': 'ann@example.org', Password: PASSWORD });
  await visitor.press('Log in');
  assert.match(await visitor.alert(), /incorrect/);
  await visitor.fill({ Password: OTHER });
  await visitor.press('Log in');
  assert.equal(await visitor.user(), 'ann@example.org');
});

scene('a new address is confirmed by a link that works once', async (s) => {
  const parley = await s.serveNew();
  await parley.call('ann@example.org', 'PATCH', 'settings', { email: 'annie@example.net' });
  const link = await parley.link('annie@example.net', '/accounts/confirm_new_email/');
  const ann = await s.profile(parley);
  await ann.visit(link);
  assert.match(await ann.page.locator('main').innerText(), /annie@example\.net/);
  await ann.accessible();
  assert.equal((await parley.call('ann@example.org', 'GET', 'users/me')).delivery_email, 'ann@example.org');
  await ann.press('Confirm');
  assert.match(await ann.page.locator('main').innerText(), /log in as annie@example\.net/);
  await ann.accessible();
  await ann.visit(link, 404);
  await ann.visit('/login/');
  await ann.press('Ann Lee Member');
  assert.equal(await ann.user(), 'annie@example.net');
});

scene('users find their accounts and go to their organization', async (s) => {
  const parley = await s.serveNew();
  const visitor = await s.profile(parley);
  await visitor.visit('/accounts/find/');
  await visitor.accessible();
  await visitor.fill({ 'Email addresses, separated by commas': 'not an address' });
  await visitor.press('Find accounts', 400);
  await visitor.accessible();
  await visitor.fill({ 'Email addresses, separated by commas': 'ann@example.org, unknown@example.net' });
  await visitor.press('Find accounts');
  assert.equal(await visitor.heading(), 'Check your email');
  await parley.link('ann@example.org', '/login/');
  assert.equal(parley.emails('unknown@example.net').length, 0);
  await visitor.visit('/accounts/go/');
  await visitor.accessible();
  await visitor.fill({ 'Name in the address of the organization': 'nonesuch' });
  await visitor.press('Continue', 404);
  assert.match(await visitor.alert(), /no organization/);
  await visitor.accessible();
});

scene('a visitor creates an organization where the operator allows it', async (s) => {
  const closed = await s.profile(await s.serveNew());
  await closed.visit('/new/', 404);
  await closed.accessible();
  const parley = await s.serveNew('--open-organizations', '--url', 'http://chat.localhost:PORT');
  const boss = await s.profile(parley);
  await boss.visit('/new/');
  await boss.accessible();
  await boss.fill({ 'Email address': 'boss@example.net', 'Name of the organization': 'Garden Club',
    'Name in the address of the organization': '-x' });
  await boss.press('Continue', 400);
  await boss.accessible();
  await boss.fill({ 'Name in the address of the organization': 'garden' });
  await boss.press('Continue');
  assert.equal(await boss.heading(), 'Check your email');
  const link = await parley.link('boss@example.net', '/accounts/new_organization/');
  await boss.visit(link);
  assert.equal(await boss.heading(), 'Create Garden Club');
  await boss.accessible();
  await boss.fill({ 'Full name': 'Boss', Password: OTHER });
  await boss.press('Create the organization');
  const site = `http://garden.chat.localhost:${parley.port}`;
  assert.equal(boss.page.url(), `${site}/`);
  assert.equal(await boss.user(site), 'boss@example.net');
  assert.equal(await boss.user(), null, 'the session counts in another organization');
  await boss.visit(link, 400);
  await boss.visit('/accounts/go/');
  await boss.fill({ 'Name in the address of the organization': 'Garden' });
  await boss.press('Continue');
  assert.equal(boss.page.url(), `${site}/`); // by /login/, as there is a session
  boss.expect(/status of 404/);
  await boss.page.goto(`http://none.chat.localhost:${parley.port}/login/`);
  await boss.accessible();
});

scene('unknown addresses and missing rights are pages too', async (s) => {
  const parley = await s.serveNew();
  const visitor = await s.profile(parley);
  await visitor.visit('/nonesuch/', 404);
  assert.equal(await visitor.alert(), 'There is no page at this address.');
  await visitor.accessible();
  for (const path of ['/accounts/accept_terms/', '/desktop_home/']) {
    await visitor.visit(path);
    assert.equal(visitor.path(), '/login/', path);
  }
  await visitor.visit('/accounts/password/reset/done/');
  await visitor.accessible();
});
