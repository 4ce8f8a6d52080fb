// Login and logout with the form.
import assert from 'node:assert/strict';
import { PASSWORD } from './parley.js';
import { scene } from './scene.js';

scene('a user logs in and out', async (s) => {
  const parley = await s.serve();
  await parley.setPassword('ann@example.org');
  const ann = await s.profile(parley);
  await ann.visit('/');
  assert.equal(ann.path(), '/login/');
  assert.equal(await ann.heading(), 'Parley Demo');
  await ann.accessible();
  await ann.fill({ 'Email address': 'ann@example.org', Password: PASSWORD });
  await ann.press('Log in');
  assert.equal(ann.path(), '/');
  assert.equal((await ann.request('GET', '/json/users/me')).json.email, 'ann@example.org');
  await ann.press('Log out');
  assert.equal(ann.path(), '/login/');
  assert.equal((await ann.request('GET', '/json/users/me')).status, 401);
});
