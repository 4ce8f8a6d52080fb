// The window with all channels.
import { scene } from './scene.js';

scene('channels are created, found, left and joined', async (s) => {
  const parley = await s.serve();
  await parley.setPassword('ann@example.org', 'bo@example.org');
  const [ann, bo] = [await s.profile(parley), await s.profile(parley)];
  await ann.logIn('ann@example.org');
  await bo.logIn('bo@example.org');
  await ann.page.goto('/#channels/all');
  await ann.page.locator('.channel-list a', { hasText: 'general' }).waitFor();
  await ann.accessible();
  await ann.page.getByRole('button', { name: 'New channel' }).click();
  await ann.page.getByLabel('Name', { exact: true }).fill('General');
  await ann.page.getByRole('button', { name: 'Create' }).click();
  await ann.page.getByRole('alert').filter({ hasText: 'A channel of this name exists.' }).waitFor();
  await ann.page.getByLabel('Name', { exact: true }).fill('garden');
  await ann.page.getByLabel('Description').fill('Plants and trees');
  await ann.accessible();
  await ann.page.getByRole('button', { name: 'Create' }).click();
  await ann.page.locator('.view-header', { hasText: 'garden' }).waitFor(); // a new channel opens
  await ann.page.goto('/#channels/all');
  await ann.page.getByRole('button', { name: 'Unsubscribe from garden' }).waitFor();
  await ann.page.goto('/#channels/new');
  await ann.page.getByLabel('Name', { exact: true }).fill('secret');
  await ann.page.getByRole('radio', { name: 'Private, protected history' }).check();
  await ann.page.getByRole('button', { name: 'Create' }).click();
  await ann.page.locator('.view-header', { hasText: 'secret' }).waitFor();
  await ann.page.goto('/#channels/all');
  await ann.page.getByRole('button', { name: 'Unsubscribe from secret' }).waitFor();
  await bo.page.goto('/#channels/all');
  await bo.page.getByRole('searchbox', { name: 'Search channels' }).fill('trees');
  await bo.page.getByRole('button', { name: 'Subscribe to garden' }).click();
  await bo.page.getByRole('button', { name: 'Unsubscribe from garden' }).click();
  await bo.page.getByRole('button', { name: 'Subscribe to garden' }).waitFor();
  await bo.page.getByRole('searchbox', { name: 'Search channels' }).fill('secret');
  await bo.page.getByText('No channel fits.').waitFor();
});
