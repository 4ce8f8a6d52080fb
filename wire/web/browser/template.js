// Makes a data directory for the scenes: the demo organization, in which every person has a password and one session.
// Copying it costs much less than what it saves each scene: a process and a hash for each password, and the pages of a
// login. The argument is the folder; it gets the data directory and sessions.json. Scenes about accounts and sessions
// do not use it.
import fs from 'node:fs';
import path from 'node:path';
import { PASSWORD, Parley, send } from './parley.js';

const [dir] = process.argv.slice(2);
const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

// cookiesOf returns the cookies that an answer sets, by their names.
function cookiesOf({ headers }) {
  return Object.fromEntries((headers['set-cookie'] ?? []).map((x) => x.split(';')[0].split(/=(.*)/s).slice(0, 2)));
}

// logIn sends the login form and returns the session's cookie.
async function logIn({ port }, email) {
  const page = await send({ port, path: '/login/' });
  const token = page.text.match(/name="csrfmiddlewaretoken" value="([^"]+)"/)[1];
  const cookie = Object.entries(cookiesOf(page)).map((x) => x.join('=')).join('; ');
  const form = new URLSearchParams({ csrfmiddlewaretoken: token, username: email, password: PASSWORD });
  const answer = await send({ method: 'POST', port, path: '/accounts/login/', headers: { cookie, ...FORM } },
    form.toString());
  const { sessionid } = cookiesOf(answer);
  if (!sessionid) throw new Error(`${email} cannot log in: ${answer.status} ${answer.text}`);
  return sessionid;
}

const parley = await Parley.serve('--data', path.join(dir, 'data'));
try {
  const { members } = await parley.call('olive@example.org', 'GET', 'users');
  const people = members.filter((u) => !u.is_bot).map((u) => u.delivery_email);
  const sessions = {};
  for (const email of people) {
    await parley.setPassword(email);
    sessions[email] = await logIn(parley, email);
    for (const onboarding_step of ['intro_inbox_view_modal', 'navigation_tour_video']) {
      await parley.call(email, 'POST', 'users/me/onboarding_steps', { onboarding_step });
    }
  }
  fs.writeFileSync(path.join(dir, 'sessions.json'), JSON.stringify(sessions));
  await parley.kill('SIGTERM'); // the journal is closed, so that the copies start at once
  for (const name of ['outbox', 'ballast']) fs.rmSync(path.join(parley.data, name), { recursive: true, force: true });
} finally {
  await parley.close();
}
