// Summaries of topics and translations of messages, made by a service of the operator's choice.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import { ANN, BO, OLIVE, messageMenu, opened, say } from './client.js';
import { eventually } from './parley.js';
import { scene } from './scene.js';

// model starts a service that answers when it is let.
async function model() {
  let go;
  const allowed = new Promise((resolve) => { go = resolve; });
  const requests = [];
  const server = http.createServer(async (request, answer) => {
    let body = '';
    for await (const piece of request) body += piece;
    requests.push(JSON.parse(body));
    await allowed;
    answer.end(JSON.stringify({ choices: [{ message: { content: '- Bo wants soup.\n- <img src=x onerror=alert(1)> @**all**' } }] }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { url: `http://127.0.0.1:${server.address().port}/v1`, requests, go, close: () => server.close() };
}

scene('an owner allows summaries, members have a topic summarized and a message translated, and hide that', async (s) => {
  const service = await model();
  try {
    const parley = await s.serve('--assist-url', service.url, '--assist-model', 'tiny', '--assist-allow', '127.0.0.0/8');
    await say(parley, BO, 'Soup, please', 'lunch');
    const ann = await opened(s, parley, ANN, '#inbox');
    const entry = ann.page.locator('.inbox-row', { hasText: 'lunch' });
    const menu = async () => {
      await entry.hover();
      await entry.getByRole('button', { name: 'Actions of the topic' }).click();
      await ann.page.getByRole('menuitem', { name: 'Copy link' }).waitFor();
    };
    await menu();
    assert.equal(await ann.page.getByRole('menuitem', { name: 'Summarize topic' }).count(), 0);
    await ann.page.keyboard.press('Escape');
    const olive = await opened(s, parley, OLIVE, '#organization/organization-settings');
    await olive.page.getByLabel('Allow summaries and translations').check({ force: true });
    await eventually('the owner has agreed', async () =>
      (await parley.call(OLIVE, 'POST', 'register', { fetch_event_types: '["realm"]' })).realm_assistant_enabled);
    await eventually('the menu has the item', async () => {
      await menu();
      const shown = await ann.page.getByRole('menuitem', { name: 'Summarize topic' }).count();
      if (!shown) await ann.page.keyboard.press('Escape');
      return shown;
    });
    await ann.page.getByRole('menuitem', { name: 'Summarize topic' }).click();
    const dialog = ann.page.getByRole('dialog', { name: 'Summary' });
    await dialog.getByText('The text is being written…').waitFor();
    await ann.accessible();
    service.go();
    await dialog.getByRole('listitem').filter({ hasText: 'Bo wants soup.' }).waitFor();
    await dialog.getByText('<img src=x onerror=alert(1)> @**all**').waitFor();
    assert.equal(await dialog.locator('.content img, .content a, .content .user-mention').count(), 0);
    assert.match(service.requests[0].messages[1].content, /Soup, please/);
    await ann.accessible();
    await ann.page.keyboard.press('Escape');
    await entry.click();
    await messageMenu(ann, 'Soup, please', 'Translate message');
    const translation = ann.page.getByRole('dialog', { name: 'Translation' });
    await translation.getByText('Bo wants soup.').waitFor();
    assert.match(service.requests[1].messages[0].content, /English \(code en\)/);
    await parley.call(ANN, 'PATCH', 'settings', { hide_ai_features: 'true' });
    await ann.page.keyboard.press('Escape');
    const row = ann.page.locator('.message', { hasText: 'Soup, please' }).last();
    await eventually('the item is hidden', async () => {
      await row.hover();
      await row.getByRole('button', { name: 'Message actions' }).click();
      await ann.page.getByRole('menuitem', { name: 'Copy link' }).waitFor();
      const shown = await ann.page.getByRole('menuitem', { name: 'Translate message' }).count();
      await ann.page.keyboard.press('Escape');
      return !shown;
    });
  } finally {
    service.close();
  }
});

// signal returns a promise and the function that resolves it.
function signal() {
  let resolve;
  return { promise: new Promise((r) => { resolve = r; }), resolve };
}

// streamingModel starts a service that sends an answer in pieces, the next one when it is let.
async function streamingModel(pieces) {
  const steps = pieces.map(() => signal());
  const seen = { gone: signal() };
  const server = http.createServer(async (request, answer) => {
    for await (const _ of request);
    request.socket.on('close', () => seen.gone.resolve());
    answer.writeHead(200, { 'Content-Type': 'text/event-stream' });
    for (const [i, content] of pieces.entries()) {
      answer.write(`data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`);
      await steps[i].promise;
    }
    answer.destroy(); // in the middle
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { url: `http://127.0.0.1:${server.address().port}/v1`, step: (i) => steps[i].resolve(), gone: seen.gone.promise,
    close: () => { server.closeAllConnections(); server.close(); } };
}

scene('a summary is shown while it is written, stops when its window closes, and is marked when it is incomplete', async (s) => {
  const service = await streamingModel(['- Bo wants', ' <b>soup</b> @**all**', '\n- Ann']);
  try {
    const parley = await s.serve('--assist-url', service.url, '--assist-model', 'tiny', '--assist-allow', '127.0.0.0/8');
    await parley.call(OLIVE, 'PATCH', 'realm', { assistant_enabled: 'true' });
    await say(parley, BO, 'Soup, please', 'lunch');
    const ann = await opened(s, parley, ANN, '#inbox');
    const entry = ann.page.locator('.inbox-row', { hasText: 'lunch' });
    const summarize = async () => {
      await entry.hover();
      await entry.getByRole('button', { name: 'Actions of the topic' }).click();
      await ann.page.getByRole('menuitem', { name: 'Summarize topic' }).click();
    };
    await summarize();
    const dialog = ann.page.getByRole('dialog', { name: 'Summary' });
    await dialog.getByRole('listitem').getByText('Bo wants', { exact: true }).waitFor();
    await dialog.getByText('The text is being written…').waitFor();
    await ann.accessible();
    service.step(0);
    await dialog.getByRole('listitem').getByText('Bo wants <b>soup</b> @**all**', { exact: true }).waitFor();
    assert.equal(await dialog.locator('.content b, .content .user-mention').count(), 0);
    service.step(1);
    await dialog.getByRole('listitem').getByText('Ann', { exact: true }).waitFor();
    service.step(2);
    await dialog.getByRole('alert').getByText('The text is incomplete.').waitFor();
    assert.equal(await dialog.getByRole('listitem').count(), 2);
    await ann.accessible();
  } finally {
    service.close();
  }
  const slow = await streamingModel(['- Bo wants']);
  try {
    const parley = await s.serve('--assist-url', slow.url, '--assist-model', 'tiny', '--assist-allow', '127.0.0.0/8');
    await parley.call(OLIVE, 'PATCH', 'realm', { assistant_enabled: 'true' });
    await say(parley, BO, 'Soup, please', 'lunch');
    const ann = await opened(s, parley, ANN, '#inbox');
    const entry = ann.page.locator('.inbox-row', { hasText: 'lunch' });
    await entry.hover();
    await entry.getByRole('button', { name: 'Actions of the topic' }).click();
    await ann.page.getByRole('menuitem', { name: 'Summarize topic' }).click();
    await ann.page.getByRole('dialog', { name: 'Summary' }).getByText('Bo wants').waitFor();
    await ann.page.keyboard.press('Escape');
    await slow.gone;
  } finally {
    slow.close();
  }
});
