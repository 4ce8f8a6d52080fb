// Measures an organization of very many users: PARLEY_CROWD of them (1,000,000), of whom PARLEY_CONNECTED (10,000) are
// connected. "make browser-people" runs it. It measures, so nothing else should use the machine. PARLEY_PEOPLE_DATA names
// a data directory that is kept, so that another run need not make the organization again.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { eventually } from './parley.js';
import { scene } from './scene.js';

const USERS = Number(process.env.PARLEY_CROWD || 1_000_000);
const CONNECTED = Number(process.env.PARLEY_CONNECTED || 10_000);
const READER = 'u0@crowd.example.org';
const REGISTER_BYTES = 200_000;
const SEARCH_MS = 50; // 99th percentile
const OPEN_MS = 1500;
const SEARCHES = 500;
const OPENINGS = 5;

function quantile(list, q) {
  const sorted = [...list].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))];
}

const text = (x) => `median ${quantile(x, 0.5).toFixed(1)} ms, 99th percentile ${quantile(x, 0.99).toFixed(1)} ms, longest ${Math.max(...x).toFixed(1)} ms`;

function memory(parley) {
  const kb = Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${parley.pid}/status`, 'utf8'))[1]);
  return `${Math.round(kb / 1024)} MiB`;
}

// caller returns a function that sends requests as a user on a kept connection.
async function caller(parley, email) {
  const authorization = await parley.authorization(email);
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  return (method, endpoint, form = {}) => new Promise((resolve, reject) => {
    const fields = new URLSearchParams(form).toString();
    const began = performance.now();
    const r = http.request({ method, agent, port: parley.port, host: '127.0.0.1',
      path: `/api/v1/${endpoint}${method === 'GET' ? `?${fields}` : ''}`,
      headers: { authorization, 'content-type': 'application/x-www-form-urlencoded' } }, (answer) => {
      const parts = [];
      answer.on('data', (b) => parts.push(b));
      answer.on('end', () => {
        const body = Buffer.concat(parts);
        resolve({ status: answer.statusCode, bytes: body.length, ms: performance.now() - began, body });
      });
    });
    r.on('error', reject);
    r.end(method === 'GET' ? undefined : fields);
  });
}

// connect lets users wait for events. It returns when all polls wait.
async function connect(parley) {
  let next = 1;
  const worker = async () => {
    while (next <= CONNECTED) {
      const call = await caller(parley, `u${next++}@crowd.example.org`);
      const a = await call('POST', 'register', { fetch_event_types: '[]', client_capabilities: '{"short_user_list":true}' });
      assert.equal(a.status, 200, a.body);
      const { queue_id, last_event_id } = JSON.parse(a.body);
      (async () => {
        for (let last = last_event_id; ;) {
          const events = JSON.parse((await call('GET', 'events', { queue_id, last_event_id: last })).body).events;
          if (!events) return;
          last = events.at(-1)?.id ?? last;
        }
      })().catch(() => {}); // the server ends
    }
  };
  await Promise.all(Array.from({ length: 32 }, worker));
}

scene('an organization of very many users', async (s) => {
  const kept = process.env.PARLEY_PEOPLE_DATA;
  const data = kept ?? path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'parley-people-')), 'data');
  let began = performance.now();
  const parley = await s.serve('--data', data, '--demo-crowd', `users=${USERS},channels=10,messages=100000`);
  console.log(`made or loaded ${USERS} users in ${((performance.now() - began) / 1000).toFixed(1)} s, ${memory(parley)}`);
  await parley.kill('SIGTERM');
  began = performance.now();
  await parley.start();
  console.log(`start in ${((performance.now() - began) / 1000).toFixed(1)} s, ${memory(parley)}`);
  await parley.setPassword(READER);
  began = performance.now();
  await connect(parley);
  console.log(`${CONNECTED} connected in ${((performance.now() - began) / 1000).toFixed(1)} s, ${memory(parley)}`);

  const me = await caller(parley, READER);
  const form = { client_capabilities: JSON.stringify({ short_user_list: true, archived_channels: true }),
    include_subscribers: 'partial', slim_presence: 'true', apply_markdown: 'true' };
  for (let left = true; left;) left = !JSON.parse((await me('POST', 'mark_all_as_read')).body).complete;
  const registers = [];
  for (let i = 0; i < 50; i++) registers.push(await me('POST', 'register', form));
  console.log(`register: ${registers[0].bytes} bytes; first ${registers[0].ms.toFixed(1)} ms; ${text(registers.slice(1).map((r) => r.ms))}`);
  const full = await me('POST', 'register', {});
  console.log(`register without the capability: ${full.status} ${full.body.subarray(0, 400)}`);

  const first = await me('GET', 'people', { query: 'user' });
  console.log(`first search, which builds the index: ${first.ms.toFixed(0)} ms, ${memory(parley)}`);
  const searches = [];
  for (let i = 0; i < SEARCHES; i++) {
    const n = String(Math.floor(Math.random() * USERS));
    const query = ['u', 'user', `user ${n.slice(0, 2)}`, `user ${n}`, n, n.slice(0, 3), `u${n}@crowd`, `${n.slice(0, 2)} us`, 'nobody here', 'u u'][i % 10];
    const a = await me('GET', 'people', { query });
    assert.equal(a.status, 200, a.body);
    searches.push(a.ms);
  }
  console.log(`search: ${text(searches)}`);
  const ids = [];
  for (let i = 0; i < 100; i++) {
    const list = Array.from({ length: 50 }, () => 8 + Math.floor(Math.random() * USERS));
    ids.push((await me('GET', 'people', { user_ids: JSON.stringify(list) })).ms);
  }
  console.log(`50 users by id: ${text(ids)}`);

  const session = await s.profile(parley);
  await session.logIn(READER);
  const cookies = await session.context.cookies();
  const times = [];
  for (let i = 0; i < OPENINGS; i++) {
    const p = await s.profile(parley); // an empty cache
    await p.context.addCookies(cookies);
    await p.context.addInitScript(() => {
      const look = new MutationObserver(() => {
        if (!document.querySelector('.message .content')) return;
        look.disconnect();
        requestAnimationFrame(() => setTimeout(() => { globalThis.openedAt = performance.now(); }));
      });
      look.observe(document, { childList: true, subtree: true });
    });
    await p.page.goto('/#narrow/channel/1-crowd-0', { waitUntil: 'commit' });
    times.push(await eventually('messages are shown', () => p.page.evaluate(() => globalThis.openedAt)));
    await p.context.close();
  }
  console.log(`opens with an empty cache: ${text(times)}; ${memory(parley)}`);
  assert.ok(registers[0].bytes <= REGISTER_BYTES, `a register of ${registers[0].bytes} bytes`);
  assert.ok(quantile(searches, 0.99) <= SEARCH_MS, text(searches));
  assert.ok(Math.max(...times) <= OPEN_MS, text(times));
}, 3_600_000);
