// Requests for compliance exports: one owner asks, another one approves or refuses.
import { ANN, BO, OLIVE, opened, userID } from './client.js';
import { scene } from './scene.js';

scene('one owner asks for a compliance export, another owner approves it', async (s) => {
  const parley = await s.serve();
  await parley.call(OLIVE, 'PATCH', `users/${await userID(parley, ANN)}`, { role: '100' });
  const olive = await opened(s, parley, OLIVE, '#organization/compliance', { typed: true });
  const { page } = olive;
  await page.getByRole('button', { name: 'Demand two owners' }).click();
  await page.getByRole('button', { name: 'Ask for a compliance export' }).click();
  const dialog = page.getByRole('dialog', { name: 'Ask for a compliance export' });
  await dialog.getByLabel('Text in the messages').fill('invoice');
  await olive.accessible();
  await dialog.getByRole('button', { name: 'Ask the owners' }).click();
  const table = (x) => x.page.getByRole('region', { name: 'Requests for compliance exports' });
  await table(olive).getByText('Waits for an owner').waitFor();
  await table(olive).getByRole('button', { name: /^Refuse/ }).waitFor();
  if (await table(olive).getByRole('button', { name: /^Approve/ }).count()) throw new Error('an owner can approve their own request');
  const ann = await opened(s, parley, ANN, '#organization/compliance', { typed: true });
  await table(ann).getByText('“invoice”, jsonl').waitFor();
  await table(ann).getByRole('button', { name: /^Approve/ }).click();
  await ann.page.getByRole('dialog').getByRole('button', { name: 'Approve', exact: true }).click();
  await table(ann).getByText('Approved', { exact: true }).waitFor();
  await ann.accessible();
  const bo = await opened(s, parley, BO, '#organization/compliance');
  await bo.page.getByText('Only owners can see the requests for compliance exports.').waitFor();
});
