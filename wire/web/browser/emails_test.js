// Emails that pages cause, and the links in them. Accounts younger than a minute get no email about a login.
import assert from 'node:assert/strict';
import { sleep } from './parley.js';
import { scene } from './scene.js';

const NEW_ACCOUNT_MS = 61_000;

scene('a login from a new device sends an email, and links switch off each kind of emails', async (s) => {
  const began = Date.now();
  const parley = await s.serveNew();
  await parley.setPassword('bo@example.org');
  const bo = (method, path, form) => parley.call('bo@example.org', method, path, form);
  const { user_id: id } = await bo('GET', 'users/me');
  await bo('PATCH', 'settings', { email_notifications_batching_period_seconds: '1' });
  await parley.call('ann@example.org', 'POST', 'messages', { type: 'direct', to: `[${id}]`, content: 'hi' });
  const settings = { missed_messages: 'enable_offline_email_notifications', login: 'enable_login_emails' };
  await parley.link('bo@example.org', '/accounts/unsubscribe/missed_messages/');
  await sleep(began + NEW_ACCOUNT_MS - Date.now());

  const firefox = { userAgent: 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0' };
  const logins = () => parley.emails('bo@example.org').filter((x) => /New login/.test(x)).length;
  const [first, second, other] = [await s.profile(parley), await s.profile(parley), await s.profile(parley, firefox)];
  await first.logIn('bo@example.org');
  await parley.link('bo@example.org', '/accounts/unsubscribe/login/');
  await second.logIn('bo@example.org'); // the same device
  await other.logIn('bo@example.org');
  await parley.email('bo@example.org', /from Firefox/);
  assert.equal(logins(), 2);
  await first.visit(await parley.link('bo@example.org', '/accounts/sessions/'));
  const browsers = first.page.getByRole('listitem').filter({ hasText: /Chrome|Firefox/ }); // others are of calls
  assert.equal(await browsers.getByRole('button', { name: 'End session' }).count(), 3);

  for (const [kind, setting] of Object.entries(settings)) {
    const enabled = async () => (await bo('POST', 'register', { event_types: '["user_settings"]',
      client_capabilities: '{"user_settings_object":true,"notification_settings_null":true}' })).user_settings[setting];
    const link = await parley.link('bo@example.org', `/accounts/unsubscribe/${kind}/`);
    await first.visit(link);
    await first.accessible();
    assert.equal(await enabled(), true, `${kind}: opening the link changes nothing`);
    await first.press('Unsubscribe');
    await first.accessible();
    assert.equal(await enabled(), false, kind);
    await first.visit(`${link}x`, 404);
  }
  await first.visit('/accounts/unsubscribe/nonesuch/1.x', 404);
  await first.accessible();
  await (await s.profile(parley, { userAgent: 'Another' })).logIn('bo@example.org');
  await sleep(500);
  assert.equal(logins(), 2, 'emails after they were switched off');
}, 300_000);
