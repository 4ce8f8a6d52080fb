// Search by meaning, with vectors of a service of the operator's choice.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import { ANN, BO, OLIVE, opened, say } from './client.js';
import { eventually } from './parley.js';
import { scene } from './scene.js';

// vectors starts a service that answers as OpenAI's documentation says. A vector says how much a text is about food.
async function vectors() {
  const service = { failing: false };
  const food = (text) => text.match(/soup|lunch|hungry/gi)?.length ?? 0;
  const server = http.createServer(async (request, answer) => {
    let body = '';
    for await (const piece of request) body += piece;
    answer.statusCode = service.failing ? 503 : 200;
    const data = JSON.parse(body).input.map((text, index) => ({ object: 'embedding', index, embedding: [food(text), 1] }));
    answer.end(JSON.stringify({ object: 'list', data, model: 'tiny', usage: { prompt_tokens: 1, total_tokens: 1 } }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return Object.assign(service, { url: `http://127.0.0.1:${server.address().port}/v1`, close: () => server.close() });
}

scene('an owner allows search by meaning, and a member finds a message that has none of the words', async (s) => {
  const service = await vectors();
  try {
    const parley = await s.serve('--embed-url', service.url, '--embed-model', 'tiny', '--assist-allow', '127.0.0.0/8');
    await say(parley, BO, 'I am so hungry', 'noon');
    await say(parley, BO, 'The train is late', 'noon');
    const ann = await opened(s, parley, ANN, '#inbox');
    const { page } = ann;
    const field = page.getByRole('combobox', { name: 'Search' });
    const offer = page.getByRole('option', { name: 'lunch Search by meaning' });
    await field.fill('lunch');
    await page.getByRole('option', { name: 'lunch Search for these words' }).waitFor();
    assert.equal(await offer.count(), 0);
    await field.press('Escape');
    const olive = await opened(s, parley, OLIVE, '#organization/organization-settings');
    await olive.page.getByLabel('Allow search by meaning').check({ force: true });
    await eventually('the owner has agreed', async () =>
      (await parley.call(OLIVE, 'POST', 'register', { fetch_event_types: '["realm"]' })).realm_meaning_search_enabled);
    // With the session of the page: each key of an app would end an older login.
    await eventually('the message has a vector', () => page.evaluate(async () =>
      (await (await fetch('/json/messages/meaning?query=lunch')).json()).messages.some((m) => m.content.includes('hungry'))));
    await field.fill('lunch');
    await offer.click();
    const dialog = page.getByRole('dialog', { name: 'Search by meaning' });
    const first = dialog.getByRole('listitem').first();
    await first.getByText('I am so hungry').waitFor();
    await first.getByText('#general › noon').waitFor();
    await ann.accessible();
    await first.getByRole('button', { name: 'Show the message' }).click();
    await page.locator('.message', { hasText: 'I am so hungry' }).waitFor();
    assert.match(page.url(), /near\/\d+$/);
    ann.expect(/status of 502/);
    service.failing = true;
    await field.fill('lunch');
    await offer.click();
    await dialog.getByText('The service for search by meaning is busy. Try again later.').waitFor();
    await page.keyboard.press('Escape');
    await parley.call(ANN, 'PATCH', 'settings', { hide_ai_features: 'true' });
    await eventually('the offer is hidden', async () => {
      await field.fill('lunc');
      await field.fill('lunch');
      await page.getByRole('option', { name: 'lunch Search for these words' }).waitFor();
      return await offer.count() === 0;
    });
  } finally {
    service.close();
  }
});
