// The official web app from an unpacked release: a small one with the layout of a real one, made here. Its script
// records the values that the page gives to it.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after } from 'node:test';
import { scene } from './scene.js';

const SCRIPT = 'app.0123456789abcdef0123.js';
const LATE = 'late.cccccccccccccccccccc.js';
const STYLE = 'app.bbbbbbbbbbbbbbbbbbbb.css';

const RECORDER = `'use strict';
const address = document.currentScript.src;
document.addEventListener('DOMContentLoaded', async () => {
  const page = document.querySelector('#page-params');
  const params = JSON.parse(page.dataset.params);
  page.remove();
  const late = document.createElement('script');
  late.src = new URL('${LATE}', address).href;
  document.head.append(late);
  const token = document.querySelector('input[name=csrfmiddlewaretoken]').value;
  const post = async (to, form) => {
    const body = new URLSearchParams(form);
    return (await fetch(to, { method: 'POST', headers: { 'X-CSRFToken': token }, body })).json();
  };
  const state = params.state_data ?? await post('/json/register', { apply_markdown: 'true' });
  self.recorded = { params, state, post };
});`;

const CONTENT = `{% extends "zerver/base.html" %}
{% block content %}
<p id="loading">{% trans %}Loading{% endtrans %}</p>
<div id="compose" style="font-style: italic">{{ _('Compose') }}</div>
<script nonce="{{ csp_nonce }}">self.inline = true;</script>
<form id="logout_form" action="/accounts/logout/" method="POST">{{ csrf_input }}</form>
{% endblock %}`;

const folders = [];
after(() => folders.forEach((x) => fs.rmSync(x, { recursive: true, force: true })));

// release writes a release and returns its folder.
function release() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'parley-release-'));
  folders.push(folder);
  const bundles = 'prod-static/serve/webpack-bundles';
  for (const [name, text] of Object.entries({
    'version.py': 'ZULIP_VERSION = "12.0"\nAPI_FEATURE_LEVEL = 500\n',
    'webpack-stats-production.json': JSON.stringify({ status: 'done', chunks: { app: [STYLE, SCRIPT] } }),
    'staticfiles.json': '{"paths":{}}',
    'templates/zerver/app/index.html': CONTENT,
    'locale/language_name_map.json': JSON.stringify({ name_map: [{ code: 'en', locale: 'en', name: 'English' },
      { code: 'de', locale: 'de', name: 'Deutsch' }] }),
    'locale/de/translations.json': JSON.stringify({ Compose: 'Verfassen' }),
    [`${bundles}/${STYLE}`]: '#compose { color: rgb(1, 2, 3); }',
    [`${bundles}/${SCRIPT}`]: RECORDER,
    [`${bundles}/${LATE}`]: 'self.late = true;',
    'prod-static/serve/images/favicon.png': 'an icon',
    'prod-static/serve/images/favicon.svg': '<svg xmlns="http://www.w3.org/2000/svg"/>',
  })) {
    fs.mkdirSync(path.join(folder, path.dirname(name)), { recursive: true });
    fs.writeFileSync(path.join(folder, name), text);
  }
  return folder;
}

const recorded = (p) => p.page.waitForFunction(() => self.recorded && self.late && self.inline);

scene('the web app of a release gets its state, loads its files and changes things', async (s) => {
  const parley = await s.serve('--web-dir', release());
  await parley.setPassword('ann@example.org');
  const ann = await s.profile(parley);
  await ann.visit('/');
  assert.equal(ann.path(), '/login/');
  await ann.logIn('ann@example.org');
  await ann.visit('/');
  await recorded(ann);
  assert.equal(await ann.page.title(), 'Parley Demo - Zulip');
  const { user, spectator, page } = await ann.page.evaluate(() => ({ user: self.recorded.state.delivery_email,
    spectator: self.recorded.params.is_spectator, page: self.recorded.params.page_type }));
  assert.deepEqual({ user, spectator, page }, { user: 'ann@example.org', spectator: false, page: 'home' });
  const look = await ann.page.evaluate(() => {
    const { color, fontStyle } = getComputedStyle(document.querySelector('#compose'));
    return { color, fontStyle };
  });
  assert.deepEqual(look, { color: 'rgb(1, 2, 3)', fontStyle: 'italic' });
  const sent = await ann.page.evaluate(() => self.recorded.post('/json/messages', { type: 'stream', to: 'general',
    topic: 'page', content: 'from the page' }));
  assert.equal(sent.result, 'success');
  const events = await ann.page.evaluate(async () => {
    const { queue_id, last_event_id } = self.recorded.state;
    const form = new URLSearchParams({ queue_id, last_event_id, dont_block: 'true' });
    return (await fetch(`/json/events?${form}`)).json();
  });
  assert.ok(events.events.some((x) => x.message?.id === sent.id));
  await ann.visit('/de/');
  await recorded(ann);
  assert.equal(await ann.page.locator('#compose').innerText(), 'Verfassen');
  await ann.visit('/?state_data=deferred');
  await recorded(ann);
  assert.equal(await ann.page.evaluate(() => self.recorded.params.state_data), null);
  assert.equal(await ann.page.evaluate(() => self.recorded.state.delivery_email), 'ann@example.org');
  await Promise.all([ann.page.waitForURL('**/login/'),
    ann.page.evaluate(() => document.querySelector('#logout_form').submit())]);
  assert.equal(await ann.user(), null);
});

scene('markup that gets into the page of the web app runs no script', async (s) => {
  const parley = await s.serve('--web-dir', release());
  await parley.setPassword('ann@example.org');
  const ann = await s.profile(parley);
  await ann.logIn('ann@example.org');
  await ann.visit('/');
  await recorded(ann);
  ann.expect(/Content Security Policy|policy violated/);
  await ann.page.evaluate(() => {
    const box = document.createElement('div');
    box.innerHTML = '<img src="data:," onerror="self.evil = 1">' +
      '<iframe srcdoc="<script>parent.evil = 2</script>"></iframe>' +
      '<a id="link" href="javascript:self.evil = 3">x</a>';
    document.body.append(box);
  });
  await ann.page.evaluate(() => document.querySelector('#link').click());
  await ann.page.waitForTimeout(300);
  assert.equal(await ann.page.evaluate(() => self.evil), undefined);
});

scene('a visitor reads the web app where the organization lets them', async (s) => {
  const parley = await s.serve('--web-dir', release());
  const visitor = await s.profile(parley);
  await visitor.visit('/');
  assert.equal(visitor.path(), '/login/');
  await parley.call('olive@example.org', 'PATCH', 'realm', { enable_spectator_access: 'true' });
  await visitor.visit('/');
  await recorded(visitor);
  const { params, state } = await visitor.page.evaluate(() => ({ params: self.recorded.params,
    state: self.recorded.state }));
  assert.equal(params.is_spectator, true);
  assert.equal(params.state_data, null);
  assert.equal(state.user_id, 0);
  assert.equal(state.queue_id, null);
  assert.ok([...state.subscriptions, ...state.never_subscribed].every((x) => x.is_web_public));
});
