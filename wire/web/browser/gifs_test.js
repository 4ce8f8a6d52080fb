// Animated pictures of a provider of the operator's choice.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ANN, OLIVE, opened } from './client.js';
import { png } from './media.js';
import { eventually } from './parley.js';
import { scene } from './scene.js';

// provider starts a server that answers as GIPHY's documentation says, and has the pictures itself.
async function provider() {
  const asked = [];
  const server = http.createServer((request, answer) => {
    const url = new URL(request.url, `http://${request.headers.host}`);
    if (!url.pathname.startsWith('/v1/gifs/')) {
      answer.setHeader('Content-Type', 'image/png');
      answer.end(png(200, 100, 50));
      return;
    }
    asked.push(url);
    const offset = Number(url.searchParams.get('offset'));
    const picture = (i, name) => ({ url: `${url.origin}/media/${i}/${name}.gif`, width: '200', height: '100' });
    const data = Array.from({ length: offset ? 2 : 24 }, (_, i) => ({
      title: `${url.searchParams.get('q') ?? 'popular'} [${offset + i}] GIF`,
      images: { original: picture(offset + i, 'giphy'), fixed_width: picture(offset + i, '200w') },
    }));
    answer.end(JSON.stringify({ data, pagination: { total_count: 26, count: data.length, offset }, meta: { status: 200 } }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { url: `http://127.0.0.1:${server.address().port}/v1/gifs`, asked, close: () => server.close() };
}

scene('a GIF is searched, chosen and sent, and an organization that allows none has no button', async (s) => {
  const service = await provider();
  const key = join(tmpdir(), `parley-gif-key-${process.pid}`);
  writeFileSync(key, 'demo-key\n');
  try {
    const parley = await s.serve('--gif-provider', 'giphy', '--gif-key-file', key, '--gif-url', service.url,
      '--gif-allow', '127.0.0.0/8', '--previews-allow', '127.0.0.0/8', '--image-proxy');
    const ann = await opened(s, parley, ANN, '#narrow/channel/1-general/topic/lunch');
    const { page } = ann;
    await page.locator('.compose-open').click();
    await page.getByRole('button', { name: 'GIF', exact: true }).click();
    const dialog = page.getByRole('dialog', { name: 'Choose a GIF' });
    await dialog.getByRole('button', { name: 'popular [0] GIF', exact: true }).waitFor();
    await dialog.getByText('Powered by GIPHY').waitFor();
    await dialog.getByLabel('Search GIFs').fill('cat');
    await dialog.getByRole('button', { name: 'cat [3] GIF', exact: true }).waitFor();
    await dialog.getByRole('button', { name: 'Show more' }).click();
    await dialog.getByRole('button', { name: 'cat [25] GIF', exact: true }).waitFor();
    const preview = dialog.getByRole('img', { name: 'cat [3] GIF', exact: true });
    assert.match(await preview.getAttribute('src'), /^\/external_content\//); // the provider does not see the user
    await eventually('the picture is shown', () => preview.evaluate((x) => x.naturalWidth > 0));
    await ann.accessible();
    await dialog.getByRole('button', { name: 'cat [3] GIF', exact: true }).click();
    const box = page.getByRole('textbox', { name: 'Message', exact: true });
    await eventually('the link is in the text', async () => /^\[cat 3 GIF\]\(http:.*\/media\/3\/giphy\.gif\) $/.test(await box.inputValue()));
    await box.press('Control+Enter');
    await page.locator('.message .content img').first().waitFor();
    assert.deepEqual(service.asked.map((x) => x.searchParams.get('api_key')), service.asked.map(() => 'demo-key'));
    assert.equal(service.asked.at(-1).searchParams.get('rating'), 'g');

    await parley.call(OLIVE, 'PATCH', 'realm', { gif_rating_policy: 0 });
    await page.getByRole('button', { name: 'Poll', exact: true }).waitFor();
    await eventually('the button is gone', async () => await page.getByRole('button', { name: 'GIF', exact: true }).count() === 0);
    await assert.rejects(parley.call(ANN, 'GET', 'gifs', {}), /GIFs are not enabled in this organization/);
  } finally {
    service.close();
  }
});
