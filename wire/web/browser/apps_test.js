// Logins in a browser for phone and desktop apps, and servers that browsers reach over TLS.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { withCertificate } from './certificate.js';
import { PASSWORD, send } from './parley.js';
import { scene } from './scene.js';

const LOGIN = { 'Email address': 'ann@example.org', Password: PASSWORD };

scene('a phone app gets its API key from a login in the browser', async (s) => {
  const parley = await s.serve();
  await parley.setPassword('ann@example.org');
  const ann = await s.profile(parley);
  const secret = crypto.randomBytes(32);
  await ann.visit(`/login/?mobile_flow_otp=${secret.toString('hex')}`);
  await ann.accessible();
  await ann.fill({ ...LOGIN, Password: 'not this one' });
  await ann.press('Log in');
  assert.match(await ann.alert(), /incorrect/);
  await ann.fill(LOGIN);
  // Chromium follows the redirect to the app's own scheme only if the page's policy allows that, and finds no app here.
  ann.expect(/zulip:/);
  const [answer] = await Promise.all([ann.page.waitForResponse((r) => r.status() === 302),
    ann.page.getByRole('button', { name: 'Log in' }).click()]);
  const to = new URL(await answer.headerValue('location'));
  assert.equal(to.protocol + to.host, 'zulip:login');
  assert.equal(to.searchParams.get('realm'), parley.site);
  assert.equal(to.searchParams.get('email'), 'ann@example.org');
  const key = Buffer.from(to.searchParams.get('otp_encrypted_api_key'), 'hex').map((b, i) => b ^ secret[i]).toString();
  const { status } = await send({ port: parley.port, path: '/api/v1/users/me', headers: {
    authorization: `Basic ${Buffer.from(`ann@example.org:${key}`).toString('base64')}` } });
  assert.equal(status, 200);
  assert.equal(await ann.user(), null, 'the browser itself is logged in');
  assert.ok(!ann.problems.some((x) => /policy|form-action/i.test(x)), ann.problems.join('\n'));
});

scene('a desktop app gets a login token from a login in the browser', async (s) => {
  const parley = await s.serve();
  await parley.setPassword('ann@example.org');
  const [ann, app, thief] = [await s.profile(parley), await s.profile(parley), await s.profile(parley)];
  const secret = crypto.randomBytes(32);
  await ann.visit(`/login/?desktop_flow_otp=${secret.toString('hex')}`);
  await ann.fill(LOGIN);
  await ann.press('Log in');
  await ann.accessible();
  const sealed = Buffer.from(await ann.page.getByLabel('Text for the app').inputValue(), 'hex');
  const aes = crypto.createDecipheriv('aes-256-gcm', secret, sealed.subarray(0, 12));
  aes.setAuthTag(sealed.subarray(-16));
  const token = aes.update(sealed.subarray(12, -16), null, 'utf8') + aes.final('utf8');
  assert.equal(await ann.user(), null, 'the browser itself is logged in');
  await app.visit(`/accounts/login/subdomain/${token}`);
  assert.equal(app.path(), '/');
  assert.equal(await app.user(), 'ann@example.org');
  await thief.visit(`/accounts/login/subdomain/${token}`, 404);
  await thief.accessible();
  assert.equal(await thief.user(), null);
});

scene('a secret of an app that is not well-formed is refused with a page', async (s) => {
  const parley = await s.serve();
  const ann = await s.profile(parley);
  const good = '5a'.repeat(32);
  for (const query of ['mobile_flow_otp=x', `desktop_flow_otp=${good}00`, `mobile_flow_otp=${'z'.repeat(64)}`,
    `mobile_flow_otp=${good}&desktop_flow_otp=${good}`]) {
    await ann.visit(`/login/?${query}`, 400);
    await ann.accessible();
  }
});

scene('over TLS the cookies belong to the host alone', (s) => withCertificate(async (key, certificate) => {
  const parley = await s.serveNew('--tls-key', key, '--tls-cert', certificate, '--url', 'https://chat.localhost:PORT');
  await parley.setPassword('ann@example.org');
  const ann = await s.profile(parley, { ignoreHTTPSErrors: true });
  await ann.visit('/login/');
  await ann.fill(LOGIN);
  await ann.press('Log in');
  assert.equal(ann.path(), '/');
  const cookies = await ann.context.cookies();
  assert.deepEqual(cookies.map((x) => x.name).sort(), ['__Host-csrftoken', '__Host-sessionid']);
  for (const { name, secure, httpOnly, sameSite, domain } of cookies) {
    assert.deepEqual({ secure, httpOnly, sameSite, domain },
      { secure: true, httpOnly: true, sameSite: 'Lax', domain: 'chat.localhost' }, name);
  }
  await ann.visit('/accounts/sessions/');
  await ann.press('End session'); // a form over TLS: the browser sends the origin
  assert.equal(ann.path(), '/login/?next=%2Faccounts%2Fsessions%2F');
}));
