// Calls at a real LiveKit server, with the fake camera and microphone of Chromium. LIVEKIT_SERVER is its program; without
// it the scene is skipped (make calls builds it).
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { ANN, BO, opened } from './client.js';
import { eventually } from './parley.js';
import { scene } from './scene.js';

const PROGRAM = process.env.LIVEKIT_SERVER;
const SECRET = 'a-secret-of-at-least-thirty-two-bytes';


async function freePort() {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

// liveKit starts a server in which rooms are made only by Parley.
async function liveKit() {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'parley-livekit-'));
  const [port, tcp, udp] = [await freePort(), await freePort(), await freePort()];
  fs.writeFileSync(path.join(dir, 'key'), `parley: ${SECRET}\n`);
  fs.writeFileSync(path.join(dir, 'livekit.yaml'), `port: ${port}\nbind_addresses: [127.0.0.1]\nrtc:\n  tcp_port: ${tcp}\n  udp_port: ${udp}\n  enable_loopback_candidate: true\n` +
    `keys:\n  parley: ${SECRET}\nroom:\n  auto_create: false\n`);
  const log = fs.openSync(path.join(dir, 'log'), 'a');
  const program = spawn(PROGRAM, ['--config', path.join(dir, 'livekit.yaml'), '--node-ip', '127.0.0.1'], { stdio: ['ignore', log, log] });
  await eventually('LiveKit answers', () => fetch(`http://127.0.0.1:${port}`).then(() => true, () => false));
  return { url: `ws://127.0.0.1:${port}`, key: path.join(dir, 'key'), log: () => fs.readFileSync(path.join(dir, 'log'), 'utf8'),
    close: async () => {
      program.kill('SIGKILL'); // it would wait for the people in calls
      await once(program, 'exit');
    } };
}

// plays waits until a page shows moving pictures of so many people.
async function plays(page, people) {
  await eventually(`${people} videos play`, () => page.locator('[data-tiles] video').evaluateAll((list, n) =>
    list.length === n && list.every((v) => v.videoWidth > 0 && v.currentTime > 0 && !v.paused), people), 30_000);
}

if (!PROGRAM) test('calls', { skip: 'LIVEKIT_SERVER is not set: make calls runs this' }, () => {});
else {
  scene('two people see each other in a call, a third cannot join, and who leaves the channel is removed', async (s) => {
    const server = await liveKit();
    try {
      const parley = await s.serve('--livekit-url', server.url, '--livekit-key-file', server.key);
      const ann = await opened(s, parley, ANN, '#narrow/channel/1-general/topic/lunch');
      const bo = await opened(s, parley, BO, '#narrow/channel/1-general/topic/lunch');
      await ann.page.locator('.compose-open').click();
      const [first] = await Promise.all([ann.context.waitForEvent('page'),
        ann.page.getByRole('button', { name: 'Start a video call' }).click()]);
      await first.getByRole('button', { name: 'Join the call' }).click();
      await plays(first, 1);
      const link = bo.page.locator('.message .content').getByRole('link', { name: 'Join video call.' });
      await link.waitFor(); // other clients see a plain link
      const [second] = await Promise.all([bo.context.waitForEvent('page'), link.click()]);
      await second.getByText('In the call:').waitFor();
      await second.getByText('Ann Lee').waitFor();
      await second.getByRole('button', { name: 'Join the call' }).click();
      await plays(second, 2);
      await plays(first, 2);
      const key = new URL(first.url()).pathname.split('/').pop();
      await eventually('both are there', async () => (await parley.call(ANN, 'GET', `calls/livekit/${key}`)).present.length === 2);
      // Bo leaves the channel, and is removed within seconds.
      await parley.call(BO, 'DELETE', `users/me/subscriptions?subscriptions=${encodeURIComponent('["general"]')}`);
      await second.getByText('You have left the call.').waitFor({ timeout: 20_000 });
      await second.getByText('you are not in its conversation any more').waitFor();
      await plays(first, 1);
      await first.getByRole('button', { name: 'Leave the call' }).click();
      await first.getByText('You have left the call.').waitFor();
      assert.match(server.log(), /RemoveParticipant/);
    } finally {
      await server.close();
    }
  });

  scene('a direct conversation rings until the other person declines or joins', async (s) => {
    const server = await liveKit();
    try {
      const parley = await s.serve('--livekit-url', server.url, '--livekit-key-file', server.key);
      const bo = await opened(s, parley, BO, '#inbox');
      const { path: address } = await parley.call(ANN, 'POST', 'calls/livekit', { type: 'direct', to: JSON.stringify([BO]) });
      const window = bo.page.getByRole('dialog', { name: 'Video call' });
      await window.getByText('Ann Lee is calling you.').waitFor();
      await bo.accessible();
      const [page] = await Promise.all([bo.context.waitForEvent('page'), window.getByRole('link', { name: 'Join' }).click()]);
      assert.equal(new URL(page.url()).pathname, address);
      await page.getByRole('button', { name: 'Join the call' }).waitFor();
      await window.waitFor({ state: 'hidden' });
    } finally {
      await server.close();
    }
  });
}


