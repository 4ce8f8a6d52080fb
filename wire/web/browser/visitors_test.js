// Visitors without an account read web-public channels, and nothing else.
import assert from 'node:assert/strict';
import { scene } from './scene.js';

scene('a visitor reads the web-public channels of an organization that allows it', async (s) => {
  const parley = await s.serve();
  const say = (email, to, topic, content) => parley.call(email, 'POST', 'messages', { type: 'stream', to, topic, content });
  await say('ann@example.org', 'open house', 'the garden', 'Everyone may read this: **bees** and @**Bo Park**.');
  await say('bo@example.org', 'open house', 'the pond', '```spoiler Fish\nThere are seven.\n```');
  await say('ann@example.org', 'general', 'lunch', 'Only members read this.');
  const visitor = await s.profile(parley);
  await visitor.visit('/');
  assert.equal(visitor.path(), '/login/');
  await parley.call('olive@example.org', 'PATCH', 'realm', { enable_spectator_access: 'true' });
  await visitor.page.goto('/');
  await visitor.page.getByText('Everyone may read this').waitFor();
  assert.deepEqual(await visitor.page.locator('.left .side-link:not(.topic)').allInnerTexts(), ['open house']);
  await visitor.accessible();
  await visitor.page.getByRole('button', { name: 'Fish' }).click();
  await visitor.page.getByText('There are seven.').waitFor();
  await visitor.page.locator('.topics').getByRole('link', { name: 'the garden' }).click();
  await visitor.page.getByText('There are seven.').waitFor({ state: 'detached' });
  assert.equal(await visitor.page.locator('.compose, .compose-open, .message-tools').count(), 0);
  assert.equal(await visitor.page.getByText('Only members read this.').count(), 0);
  await visitor.page.goto('/#narrow/channel/1-general');
  await visitor.page.getByText('There is no such channel, or you cannot see it.').waitFor();
  await visitor.page.goto('/#narrow/channel/4-open-house/topic/the.20pond');
  await visitor.page.getByRole('link', { name: 'Log in' }).click();
  await visitor.page.getByLabel('Password').waitFor();
  assert.match(visitor.page.url(), /\/login\/#narrow\/channel\/4-open-house/);
});

scene('visitors read Arabic from right to left', async (s) => {
  const parley = await s.serve();
  await parley.call('olive@example.org', 'PATCH', 'realm', { enable_spectator_access: 'true' });
  const visitor = await s.profile(parley, { locale: 'ar' });
  await visitor.page.goto('/');
  await visitor.page.getByRole('link', { name: 'تسجيل الدخول' }).waitFor();
  assert.equal(await visitor.page.locator('html').getAttribute('dir'), 'rtl');
  await visitor.accessible();
});
