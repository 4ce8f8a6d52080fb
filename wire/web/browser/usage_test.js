// The pages of owners about usage and the audit log.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { ANN, OLIVE, opened, pick } from './client.js';
import { eventually } from './parley.js';
import { scene } from './scene.js';

scene('owners see totals and charts of the usage, members the charts', async (s) => {
  const parley = await s.serve();
  await parley.call(ANN, 'POST', 'messages', { type: 'channel', to: 'general', topic: 'numbers', content: 'one more' });
  const olive = await opened(s, parley, OLIVE, '#organization/usage');
  const { page } = olive;
  await page.getByRole('region', { name: 'Totals' }).getByText('Active today').waitFor();
  for (const name of ['Active people', 'Messages sent', 'Messages read', 'Uploaded files']) {
    await page.locator('.usage-chart figcaption', { hasText: name }).waitFor();
  }
  await page.getByRole('region', { name: 'Messages by channel' }).getByText('general', { exact: true }).waitFor();
  await pick(page.getByRole('combobox', { name: 'Period' }), 'The last 90 days');
  await eventually('the period is longer', async () =>
    (await page.locator('.usage-chart').first().locator('tbody tr').count()) > 80);
  await olive.accessible();
  const ann = await opened(s, parley, ANN, '#organization/usage');
  await ann.page.locator('.usage-chart').first().waitFor();
  assert.equal(await ann.page.getByRole('region', { name: 'Totals' }).count(), 0);
});

scene('owners filter the audit log and save it', async (s) => {
  const parley = await s.serve();
  const users = (await parley.call(OLIVE, 'GET', 'users')).members;
  const ann = users.find((u) => u.full_name === 'Ann Lee');
  await parley.call(OLIVE, 'PATCH', `users/${ann.user_id}`, { role: '300' });
  await parley.call(OLIVE, 'PATCH', 'realm', { description: '=1+1' });
  const olive = await opened(s, parley, OLIVE, '#organization/audit-log');
  const { page } = olive;
  const table = page.getByRole('region', { name: 'Audit log' });
  await table.getByText('organization.setting').first().waitFor();
  await olive.accessible();
  await pick(page.getByRole('combobox', { name: 'Kind' }), 'Users');
  await eventually('only changes of users are shown', async () =>
    (await table.getByText('organization.setting').count()) === 0 && (await table.getByText('user.role').count()) > 0);
  const row = table.getByRole('row').filter({ hasText: 'user.role' }).first();
  assert.match(await row.innerText(), /Olive Owner[^]*Ann Lee[^]*role 400 → role 300/);
  await pick(page.getByRole('combobox', { name: 'Kind' }), 'Organization');
  await table.getByText('organization.setting').first().waitFor();
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Save as a CSV file' }).click()]);
  const lines = (await readFile(await file.path(), 'utf8')).split('\r\n');
  assert.match(lines[0], /^id,timestamp,kind,/);
  assert.ok(lines.some((l) => l.includes(",'=1+1,")), lines.join('\n'));
  const member = await opened(s, parley, ANN, '#organization/audit-log');
  await member.page.getByText('Only owners can read the audit log.').waitFor();
});
