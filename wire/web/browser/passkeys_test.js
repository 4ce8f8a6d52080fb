// Passkeys: Chromium's virtual authenticator stands for the device.
import assert from 'node:assert/strict';
import { PASSWORD } from './parley.js';
import { scene } from './scene.js';

// device gives the page of a profile an authenticator, whose user proves a PIN. It returns its id and the session with
// which it is changed.
async function device(profile) {
  const session = await profile.context.newCDPSession(profile.page);
  await session.send('WebAuthn.enable');
  const { authenticatorId } = await session.send('WebAuthn.addVirtualAuthenticator', { options: { protocol: 'ctap2',
    transport: 'internal', hasResidentKey: true, hasUserVerification: true, isUserVerified: true,
    automaticPresenceSimulation: true } });
  return { session, authenticatorId };
}

scene('a passkey is added, replaces the password, is a second factor, and is removed', async (s) => {
  const parley = await s.serveNew('--url', 'http://chat.localhost:PORT');
  await parley.setPassword('ann@example.org');
  const ann = await s.profile(parley);
  await device(ann);
  await ann.logIn('ann@example.org');
  await ann.visit('/accounts/passkeys/');
  await ann.accessible();
  await ann.fill({ 'Name of the device': 'Blue phone' });
  await ann.press('Add a passkey');
  assert.equal(await ann.page.locator('code').count(), 10, 'recovery codes');
  await ann.accessible();
  const recovery = await ann.page.locator('code').first().innerText();
  await ann.follow('Continue');
  assert.equal(await ann.page.getByLabel('Name', { exact: true }).inputValue(), 'Blue phone');
  await ann.accessible();

  await ann.logOut();
  await ann.visit('/login/?next=/accounts/sessions/');
  await ann.accessible();
  // The page asks the device at once, so the link leads through it to the end of the login.
  await ann.page.getByRole('link', { name: 'Log in with a passkey' }).click();
  await ann.page.waitForURL('**/accounts/sessions/');
  assert.equal(await ann.user(), 'ann@example.org');

  await ann.logOut();
  await ann.fill({ 'Email address': 'ann@example.org', Password: PASSWORD });
  await ann.page.getByRole('button', { name: 'Log in', exact: true }).click();
  await ann.page.waitForURL((url) => url.pathname === '/');
  assert.equal(await ann.user(), 'ann@example.org');

  const other = await s.profile(parley); // without the device
  const { session, authenticatorId } = await device(other);
  await other.visit('/login/?next=/accounts/sessions/');
  await other.fill({ 'Email address': 'ann@example.org', Password: PASSWORD });
  await other.press('Log in');
  await other.page.getByRole('alert').filter({ hasText: 'No passkey was used' }).waitFor();
  await other.accessible();
  await session.send('WebAuthn.removeVirtualAuthenticator', { authenticatorId });
  await other.fill({ Code: recovery });
  await other.press('Log in');
  assert.equal(await other.user(), 'ann@example.org');
  await other.visit('/accounts/passkeys/');
  await other.fill({ Name: 'Lost phone' });
  await other.press('Rename');
  assert.equal(await other.page.getByLabel('Name', { exact: true }).inputValue(), 'Lost phone');
  await other.press('Remove');
  assert.match(await other.page.locator('main').innerText(), /Your account has no passkey/);
  const last = await s.profile(parley);
  await last.visit('/login/?next=/accounts/sessions/');
  assert.equal(await last.page.getByRole('link', { name: 'Log in with a passkey' }).count(), 0);
  await last.fill({ 'Email address': 'ann@example.org', Password: PASSWORD });
  await last.press('Log in');
  assert.equal(last.path(), '/accounts/sessions/', 'the password is enough again');
});
