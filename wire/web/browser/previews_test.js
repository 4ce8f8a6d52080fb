// Previews of linked pages in the own client, and pictures of the organization.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import { ADA, ANN, BO, opened, say, text } from './client.js';
import { eventually } from './parley.js';
import { scene } from './scene.js';

const PIXEL = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M/wHwAEBgIApD5fRAAAAABJRU5ErkJggg==', 'base64');

// site serves a page with a title, a description and a picture.
async function site() {
  const server = http.createServer((request, response) => {
    if (request.url === '/picture.png') {
      response.setHeader('content-type', 'image/png');
      return response.end(PIXEL);
    }
    const at = `http://127.0.0.1:${server.address().port}`;
    response.setHeader('content-type', 'text/html; charset=utf-8');
    return response.end(`<html><head><title>Beekeeping</title><meta property="og:title" content="Beekeeping for all">
      <meta property="og:description" content="How to begin with one hive"><meta property="og:image" content="${at}/picture.png">
      </head><body>Bees</body></html>`);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

scene('a linked page is shown with its title, text and picture', async (s) => {
  const page = await site();
  try {
    const parley = await s.serve('--previews-allow', '127.0.0.0/8');
    await parley.call(ADA, 'PATCH', 'realm', { inline_url_embed_preview: 'true' });
    const ann = await opened(s, parley, ANN, '#narrow/channel/1-general/topic/lunch');
    await say(parley, BO, `Read this: http://127.0.0.1:${page.address().port}/bees`);
    const card = text(ann, 'Read this').locator('.message_embed');
    await card.getByRole('link', { name: 'Beekeeping for all' }).waitFor();
    await card.getByText('How to begin with one hive').waitFor();
    assert.match(await card.locator('.message_embed_image').evaluate((x) => getComputedStyle(x).backgroundImage), /picture/);
    await ann.accessible();
  } finally {
    page.close();
  }
});

scene('an administrator uploads icon, logo and an emoji, and others see them at once', async (s) => {
  const parley = await s.serve();
  const ada = await opened(s, parley, ADA, '#organization/organization-profile');
  const ann = await opened(s, parley, ANN, '#narrow/channel/1-general/topic/lunch');
  const file = { name: 'pixel.png', mimeType: 'image/png', buffer: PIXEL };
  const icon = ann.page.locator('.realm-icon');
  const before = await icon.getAttribute('src');
  await ada.page.getByRole('form', { name: 'Icon' }).getByLabel('Picture').setInputFiles(file);
  await ada.page.getByRole('button', { name: 'Upload icon' }).click();
  await eventually('the other page has the icon', async () => await icon.getAttribute('src') !== before);
  await ada.page.getByRole('form', { name: 'Logo, light theme' }).getByLabel('Picture').setInputFiles(file);
  await ada.page.getByRole('button', { name: 'Upload logo' }).click();
  await ada.page.getByRole('button', { name: 'Remove: Logo, light theme' }).click();
  await eventually('the logo is removed', async () => await ada.page.getByRole('button', { name: 'Remove: Logo, light theme' }).count() === 0);
  await ada.page.getByRole('link', { name: 'Custom emoji' }).click();
  await ada.page.getByRole('button', { name: 'Add an emoji' }).click();
  await ada.page.getByLabel('Name', { exact: true }).fill('dot');
  await ada.page.getByLabel('Picture').setInputFiles(file);
  await ada.page.getByRole('button', { name: 'Add', exact: true }).click();
  await ada.page.getByRole('button', { name: 'Remove: dot' }).waitFor();
  await say(parley, BO, 'With :dot:');
  await text(ann, 'With').locator('img.emoji').waitFor();
  await ann.page.locator('.message', { hasText: 'With' }).hover();
  await ann.page.locator('.message', { hasText: 'With' }).getByRole('button', { name: 'Add a reaction' }).last().click();
  await ann.page.locator('.emoji-picker').getByRole('combobox').or(ann.page.locator('.emoji-picker input')).first().fill('dot');
  await ann.page.keyboard.press('Enter');
  await ann.page.locator('.reaction.mine img[alt=":dot:"]').waitFor();
});

scene('an export is made, downloaded and deleted', async (s) => {
  const parley = await s.serve();
  const ada = await opened(s, parley, ADA, '#organization/data-exports-admin', { typed: true });
  await parley.call(ANN, 'PATCH', 'settings', { allow_private_data_export: 'true' });
  await ada.page.reload();
  await ada.page.getByText('1 user allows the export of private data.').waitFor();
  await ada.page.getByRole('button', { name: 'Start export' }).click();
  const link = ada.page.getByRole('link', { name: 'Download' });
  await link.waitFor();
  await ada.accessible();
  const answer = await ada.context.request.get(await link.getAttribute('href'));
  assert.equal(answer.status(), 200);
  assert.ok((await answer.body()).length > 100);
  await ada.page.getByRole('button', { name: /^Delete: / }).click();
  await ada.page.getByRole('dialog', { name: 'Delete' }).getByRole('button', { name: 'Delete' }).click();
  await ada.page.getByText('Deleted', { exact: true }).waitFor();
});
