// The tabs of one browser share an event queue: one of them polls it. A browser opens at most six connections of HTTP/1.1
// to a server, so tabs with polls of their own would wait for ever from the seventh on.
import assert from 'node:assert/strict';
import { withCertificate } from './certificate.js';
import { ANN, BO, opened, say } from './client.js';
import { eventually } from './parley.js';
import { scene } from './scene.js';

const TABS = 10;
const TOPIC = '#narrow/channel/1-general/topic/lunch';
const box = (page) => page.getByRole('textbox', { name: 'Message', exact: true });
const shown = (page, content) => page.locator('.message .content', { hasText: content });

// watchCalls counts the calls of a profile by the end of their path; polls are those that wait.
function watchCalls(p) {
  const calls = { register: 0, polls: 0 };
  const isPoll = (r) => r.method() === 'GET' && r.url().includes('/json/events?');
  p.context.on('request', (r) => {
    if (r.url().endsWith('/json/register')) calls.register++;
    if (isPoll(r)) calls.polls++;
  });
  for (const end of ['requestfinished', 'requestfailed']) p.context.on(end, (r) => { if (isPoll(r)) calls.polls--; });
  return calls;
}

// openTabs opens further tabs at the topic.
async function openTabs(p, n) {
  const pages = [p.page];
  while (pages.length < n) {
    const page = await p.context.newPage();
    await page.goto(`/${TOPIC}`);
    await page.locator('.compose-open').waitFor();
    pages.push(page);
  }
  return pages;
}

// eachShows waits until each tab shows a message, and requires that none shows it twice.
async function eachShows(pages, content) {
  for (const page of pages) await shown(page, content).first().waitFor();
  for (const page of pages) assert.equal(await shown(page, content).count(), 1, `${content} in each tab`);
}

// sendFrom sends a message from a tab.
async function sendFrom(page, content) {
  if (await page.locator('.compose-open').isVisible()) await page.locator('.compose-open').click();
  await box(page).fill(content);
  await box(page).press('Control+Enter');
}

scene('ten tabs poll once, and each shows each message once', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, ANN, TOPIC);
  const calls = watchCalls(ann);
  const pages = await openTabs(ann, TABS);
  assert.equal(calls.register, 0, 'registrations of further tabs');
  await say(parley, BO, 'soup for all');
  await eachShows(pages, 'soup for all');
  await sendFrom(pages[7], 'from the eighth tab');
  await eachShows(pages, 'from the eighth tab');
  assert.ok(calls.polls <= 1, `${calls.polls} polls wait`);
});

scene('a tab that is closed or frozen is replaced, and nothing is lost or shown twice', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, ANN, TOPIC);
  const pages = await openTabs(ann, 4);
  await say(parley, BO, 'before');
  await eachShows(pages, 'before');
  await pages[0].close(); // the one that polls
  await say(parley, BO, 'after the end of the first');
  await eachShows(pages.slice(1), 'after the end of the first');
  await pages[3].bringToFront();
  const frozen = await ann.context.newCDPSession(pages[1]);
  await frozen.send('Page.setWebLifecycleState', { state: 'frozen' });
  for (const content of ['one', 'two', 'three']) await say(parley, BO, `while a tab is frozen: ${content}`);
  for (const page of pages.slice(2)) await shown(page, 'frozen: three').waitFor();
  await frozen.send('Page.setWebLifecycleState', { state: 'active' });
  for (const content of ['one', 'two', 'three']) await eachShows(pages.slice(1), `while a tab is frozen: ${content}`);
});

// countNavigations counts how often a page begins to load a path from now on.
function countNavigations(page, path) {
  const seen = { count: 0 };
  page.on('request', (r) => {
    if (r.isNavigationRequest() && new URL(r.url()).pathname === path) seen.count++;
  });
  return seen;
}

scene('all tabs survive a kill of the server, and end with a logout in one', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, ANN, TOPIC);
  ann.expect(/net::ERR_/, /status of 401/, /status of 502/);
  const calls = watchCalls(ann);
  const pages = await openTabs(ann, 4);
  await parley.kill();
  await sendFrom(pages[2], 'written while the server is down');
  await parley.start();
  await eachShows(pages, 'written while the server is down');
  await say(parley, BO, 'after the kill');
  await eachShows(pages, 'after the kill');
  assert.equal(calls.register, 0, 'registrations');
  const navigations = pages.map((page) => countNavigations(page, '/login/'));
  await pages[1].evaluate(() => {
    const form = new URLSearchParams({ csrfmiddlewaretoken: document.querySelector('meta[name="csrf-token"]').content });
    return fetch('/accounts/logout/', { method: 'POST', body: form });
  });
  for (const page of pages) await page.waitForURL(/\/login\//);
  assert.deepEqual(navigations.map((n) => n.count), pages.map(() => 1), 'navigations to the login page');
});

scene('two accounts in two profiles do not mix', async (s) => {
  const parley = await s.serve();
  const ann = await opened(s, parley, ANN, TOPIC);
  const bo = await opened(s, parley, BO, TOPIC);
  const [annPages, boPages] = [await openTabs(ann, 2), await openTabs(bo, 2)];
  await sendFrom(annPages[1], 'from Ann');
  await sendFrom(boPages[1], 'from Bo');
  for (const content of ['from Ann', 'from Bo']) await eachShows([...annPages, ...boPages], content);
});

scene('ten tabs over TLS share one connection with HTTP/2', (s) => withCertificate(async (key, certificate) => {
  const parley = await s.serveNew('--tls-key', key, '--tls-cert', certificate, '--url', 'https://chat.localhost:PORT');
  await parley.setPassword(ANN);
  const p = await s.profile(parley, { ignoreHTTPSErrors: true });
  p.user = async () => ANN; // the scene's own request would need the certificate
  await p.logIn(ANN);
  await p.page.goto(`/${TOPIC}`);
  await p.page.locator('.compose-open').waitFor();
  const pages = await openTabs(p, TABS);
  // A page like the official app: each tab has a poll of its own.
  const polls = await Promise.all(pages.map((page) => page.evaluate(async () => {
    const headers = { 'X-CSRFToken': document.querySelector('meta[name="csrf-token"]').content };
    const { queue_id: id } = await (await fetch('/json/register', { method: 'POST', headers })).json();
    window.ownPoll = fetch(`/json/events?queue_id=${id}&last_event_id=-1`).then((answer) => answer.json());
    return performance.getEntriesByType('navigation')[0].nextHopProtocol;
  })));
  assert.deepEqual(polls, Array(TABS).fill('h2'));
  await sendFrom(pages[9], 'over one connection');
  await eachShows(pages, 'over one connection');
  for (const page of pages) {
    await eventually('the poll of the tab has its event', () => page.evaluate(async () => {
      const { events } = await window.ownPoll;
      return events.length > 0;
    }));
  }
}));
