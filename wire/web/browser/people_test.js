// People in the own client: the status of the user, and what the others see of it.
import assert from 'node:assert/strict';
import { ANN, BO, mainMenu, opened, stored } from './client.js';
import { eventually } from './parley.js';
import { scene } from './scene.js';

scene('a user sets and clears a status, and others see it beside the name', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, ANN);
  const bo = await opened(s, parley, BO);
  const person = bo.page.locator('.right .person', { hasText: 'Ann Lee' });
  await mainMenu(ann, 'Set a status');
  const dialog = ann.page.getByRole('dialog', { name: 'Your status' });
  await ann.accessible();
  await dialog.getByRole('button', { name: 'On vacation' }).click();
  await dialog.getByRole('textbox', { name: 'Status' }).fill('On vacation until Monday');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await person.getByText('On vacation until Monday').waitFor();
  assert.equal(await person.locator('.status-emoji').innerText(), '🌴');
  await mainMenu(ann, 'Set a status');
  await dialog.getByRole('button', { name: 'Clear status' }).click();
  await eventually('the status is gone', async () => await person.locator('small, .status-emoji').count() === 0);
});

scene('a user becomes invisible and visible again', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, ANN);
  const isVisible = (wanted) => stored(`visible is ${wanted}`, parley, ANN, 'user_settings',
    (r) => r.user_settings.presence_enabled === wanted);
  await mainMenu(ann, 'Become invisible');
  await isVisible(false);
  await mainMenu(ann, 'Become visible');
  await isVisible(true);
});
