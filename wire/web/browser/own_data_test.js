// The file with the data of the user, in the settings of the account.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { ANN, opened } from './client.js';
import { PASSWORD } from './parley.js';
import { scene } from './scene.js';

scene('a user exports their own data after entering the password, downloads and deletes the file', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, ANN, '#settings/account');
  const { page } = ann;
  const form = page.locator('form[data-form="own-data"]');
  ann.expect(/status of 400 .*users\/me\/data_exports/);
  await form.getByRole('button', { name: 'Export my data' }).click();
  await form.getByText('Password is incorrect.').waitFor(); // the session is not enough
  await form.getByLabel('Your password').fill(PASSWORD);
  await form.getByRole('button', { name: 'Export my data' }).click();
  const table = page.getByRole('region', { name: 'Files with your data' });
  const link = table.getByRole('link', { name: 'Download' });
  await link.waitFor();
  await ann.accessible();
  const [file] = await Promise.all([page.waitForEvent('download'), link.click()]);
  assert.equal((await readFile(await file.path())).subarray(0, 2).toString(), 'PK');
  assert.equal(file.suggestedFilename(), 'my-data.zip');
  await table.getByRole('button', { name: /^Delete/ }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
  await table.getByText('Deleted', { exact: true }).waitFor();
});
