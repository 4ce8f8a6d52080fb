// The page of owners that names each place where data goes.
import assert from 'node:assert/strict';
import { ADA, ANN, OLIVE, opened } from './client.js';
import { eventually } from './parley.js';
import { scene } from './scene.js';

scene('an owner closes a place, and another one sees it at once', async (s) => {
  const parley = await s.serve('--smtp-host', 'mail.example.org');
  const setting = async (name) => (await parley.call(OLIVE, 'POST', 'register',
    { event_types: '["realm"]', client_capabilities: '{"short_user_list":true}' }))[`realm_${name}`];
  const olive = await opened(s, parley, OLIVE, '#organization/data-places');
  const used = (x) => x.page.getByRole('region', { name: 'Set up on this server', exact: true });
  const box = (x, name) => x.page.getByRole('checkbox', { name });
  await used(olive).getByText('mail.example.org:587').first().waitFor();
  await olive.accessible();
  const ada = await opened(s, parley, ADA, '#organization/data-places');
  assert.equal(await box(ada, 'Services of bots').isDisabled(), true); // only owners close it
  assert.equal(await box(ada, 'Previews of linked websites').isDisabled(), false);
  assert.equal(await box(olive, 'Services of bots').isChecked(), true);
  await box(olive, 'Services of bots').click();
  await box(olive, 'Video calls with Jitsi').click(); // they are off before
  await eventually('the other page follows', async () =>
    !(await box(ada, 'Services of bots').isChecked()) && (await box(ada, 'Video calls with Jitsi').isChecked()));
  assert.equal(await setting('allow_outgoing_webhooks'), false);
  assert.equal(await setting('video_chat_provider'), 1);
  await box(olive, 'Video calls with Jitsi').click();
  await eventually('there are no calls again', async () => (await setting('video_chat_provider')) === 0);
  const ann = await opened(s, parley, ANN, '#organization/data-places');
  await ann.page.getByText('Only owners and administrators can see where data goes.').waitFor();
});
