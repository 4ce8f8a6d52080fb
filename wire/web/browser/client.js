// Steps of scenes in the own client.
import { PASSWORD, eventually } from './parley.js';

export const ADA = 'ada@example.org'; // an administrator
export const ANN = 'ann@example.org';
export const BO = 'bo@example.org';
export const OLIVE = 'olive@example.org'; // the owner

const passwords = new WeakMap(); // servers with the users that have one: a new password ends the sessions

// opened logs a user in and opens an address of the client.
export async function opened(s, parley, email, address = '#inbox', { typed = false, ...options } = {}) {
  const known = passwords.get(parley) ?? passwords.set(parley, new Set()).get(parley);
  if (!known.has(email)) await parley.setPassword(email);
  known.add(email);
  const p = await s.profile(parley, options);
  await p.logIn(email, PASSWORD, typed);
  await p.page.goto(`/${address}`);
  await p.page.locator(/^#(settings|organization)\//.test(address) ? '.settings-title' : '.view-header').first().waitFor();
  return p;
}

// pick chooses an option of a field that is a picker, by its text.
export async function pick(field, option) {
  const page = field.page();
  await field.click();
  if (await field.getAttribute('readonly') === null) await field.fill(option);
  await page.locator('.picker-option', { has: page.getByText(option, { exact: true }) }).click();
}

// mainMenu chooses an item of the main menu.
export async function mainMenu(p, item) {
  await p.page.getByRole('button', { name: 'Main menu' }).click();
  await p.page.getByRole('menuitem', { name: item, exact: true }).click();
}

// messageMenu chooses an item of the menu of a message.
export async function messageMenu(p, message, item) {
  const row = p.page.locator('.message', { hasText: message }).last();
  await row.hover();
  await row.getByRole('button', { name: 'Message actions' }).click();
  await p.page.getByRole('menuitem', { name: item }).click();
}

export const say = (parley, email, content, topic = 'lunch') =>
  parley.call(email, 'POST', 'messages', { type: 'stream', to: 'general', topic, content, read_by_sender: 'true' });

// text is the text of messages that contain something.
export const text = (p, has) => p.page.locator('.message .content', { hasText: has });

export const userID = async (parley, email) => (await parley.call(email, 'GET', 'users/me')).user_id;

// registered returns members of a new registration of a user.
export async function registered(parley, email, ...kinds) {
  const capabilities = { notification_settings_null: true, user_settings_object: true, include_deactivated_groups: true,
    linkifier_url_template: true };
  return parley.call(email, 'POST', 'register', { fetch_event_types: JSON.stringify(kinds),
    client_capabilities: JSON.stringify(capabilities) });
}

// stored waits until a member of a new registration fits.
export function stored(subject, parley, email, kind, fits) {
  return eventually(subject, async () => fits(await registered(parley, email, kind)));
}
