// Tests zulip-js with a server that zulip_js.py has started: node zulip_js.js SITE EMAIL KEY OTHER_USER_ID.
// This client sends POST as multipart, and the parameters of PATCH and DELETE in the query.
'use strict';
const fs = require('fs');
const path = require('path');
const packages = process.env.PARLEY_NODE_MODULES;
const helper = require(path.join(packages, 'zulip-js/lib/helper'));
const zulip = require(path.join(packages, 'zulip-js'));

const [site, email, key, otherId] = process.argv.slice(2);
const TIMEOUT_MS = 30000;
let passed = 0;
let failed = 0;

const plain = helper.fetch;
helper.fetch = async (url, options) => {
  const answer = await plain(url, options);
  const text = await answer.text();
  if (process.env.PARLEY_RECORDING) {
    let body = text.slice(0, 200);
    try { body = JSON.parse(text); } catch { /* recorded as text */ }
    const { pathname, search } = new URL(url);
    fs.appendFileSync(path.join(process.env.PARLEY_RECORDING, 'zulip_js.jsonl'),
      `${JSON.stringify({ method: options.method, path: pathname + search, status: answer.status, body })}\n`);
  }
  return { status: answer.status, url, json: () => JSON.parse(text) };
};

async function that(what, body) {
  try {
    await Promise.race([body(), new Promise((_, no) => { setTimeout(() => no(new Error('timed out')), TIMEOUT_MS).unref(); })]);
    passed += 1;
    console.log(`ok   ${what}`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL ${what}: ${error.message.slice(0, 600)}`);
  }
}

function ok(answer) {
  if (answer.result !== 'success') throw new Error(JSON.stringify(answer).slice(0, 400));
  return answer;
}

function must(condition, value) {
  if (!condition) throw new Error(JSON.stringify(value).slice(0, 400));
}

async function eventually(what, condition) {
  const until = Date.now() + TIMEOUT_MS;
  while (Date.now() < until) {
    if (condition()) return;
    // eslint-disable-next-line no-await-in-loop
    await new Promise((go) => { setTimeout(go, 20); });
  }
  throw new Error(`waited for ${what}`);
}

(async () => {
  const client = await zulip({ username: email, apiKey: key, realm: site });
  let id;
  let channel;

  await that('server settings and own profile', async () => {
    must(ok(await client.server.settings()).zulip_feature_level === 494, 'level');
    must(ok(await client.users.me.getProfile()).email === email, 'email');
  });
  await that('subscribe, channels, topics', async () => {
    ok(await client.users.me.subscriptions.add({ subscriptions: JSON.stringify([{ name: 'javascript' }]) }));
    channel = ok(await client.streams.getStreamId('javascript')).stream_id;
    must(ok(await client.streams.retrieve()).streams.some((s) => s.stream_id === channel), channel);
    must(ok(await client.streams.subscriptions.retrieve()).subscriptions.some((s) => s.stream_id === channel), channel);
  });
  await that('send to a channel and directly, by multipart form', async () => {
    id = ok(await client.messages.send({ to: 'javascript', type: 'stream', topic: 'js', content: 'hello' })).id;
    ok(await client.messages.send({ to: [Number(otherId)], type: 'private', content: 'direct' }));
    ok(await client.streams.topics.retrieve({ stream_id: channel }));
  });
  await that('a refusal is an answer, not an exception', async () => {
    const answer = await client.messages.send({ to: 'nowhere at all', type: 'stream', topic: 'js', content: 'x' });
    must(answer.result === 'error' && answer.code === 'STREAM_DOES_NOT_EXIST', answer);
  });
  await that('retrieve by narrow', async () => {
    const got = ok(await client.messages.retrieve({ anchor: 'newest', num_before: 10, num_after: 0, narrow: [{ operator: 'channel', operand: 'javascript' }, { operator: 'topic', operand: 'js' }] }));
    must(got.messages.length === 1 && got.messages[0].id === id, got.messages.map((m) => m.id));
  });
  await that('update with parameters in the query of a PATCH', async () => {
    ok(await client.messages.update({ message_id: id, content: 'edited' }));
    must(ok(await client.messages.getById({ message_id: id })).raw_content === 'edited', 'content');
    must(ok(await client.messages.getHistoryById({ message_id: id })).message_history.length === 2, 'history');
  });
  await that('flags and reactions', async () => {
    ok(await client.messages.flags.add({ messages: [id], flag: 'starred' }));
    ok(await client.messages.flags.remove({ messages: [id], flag: 'starred' }));
    ok(await client.reactions.add({ message_id: id, emoji_name: 'tada' }));
    ok(await client.reactions.remove({ message_id: id, emoji_name: 'tada' }));
  });
  await that('render, typing, users, emoji, alert words', async () => {
    must(ok(await client.messages.render('**b**')).rendered === '<p><strong>b</strong></p>', 'render');
    ok(await client.typing.send({ to: [Number(otherId)], op: 'start' }));
    must(ok(await client.users.retrieve()).members.length > 1, 'members');
    ok(await client.emojis.retrieve());
    ok(await client.users.me.alertWords.retrieve());
  });
  await that('a queue by hand: register, poll, deregister', async () => {
    const queue = ok(await client.queues.register({ event_types: ['message'] }));
    ok(await client.messages.send({ to: 'javascript', type: 'stream', topic: 'js', content: 'for the queue' }));
    const got = ok(await client.events.retrieve({ queue_id: queue.queue_id, last_event_id: -1, dont_block: false }));
    must(got.events.length === 1 && got.events[0].message.content === 'for the queue', got.events);
    ok(await client.queues.deregister({ queue_id: queue.queue_id }));
    const gone = await client.events.retrieve({ queue_id: queue.queue_id, last_event_id: -1, dont_block: true });
    must(gone.code === 'BAD_EVENT_QUEUE_ID', gone);
  });
  await that('callOnEachEvent hears messages in order', async () => {
    const heard = [];
    let registered = false;
    const watched = helper.fetch;
    helper.fetch = async (url, options) => {
      const answer = await watched(url, options);
      registered = registered || url.endsWith('/register');
      return answer;
    };
    client.callOnEachEvent((event) => { if (event.type === 'message') heard.push(event.message.content); }, ['message']);
    await eventually('a registration', () => registered);
    for (const text of ['one', 'two', 'three']) {
      // eslint-disable-next-line no-await-in-loop
      ok(await client.messages.send({ to: 'javascript', type: 'stream', topic: 'js', content: text }));
    }
    await eventually('three messages', () => heard.length >= 3);
    must(heard.join() === 'one,two,three', heard);
  });
  // The package has no functions for these endpoints; its documentation recommends callEndpoint.
  const call = async (method, endpoint, params) => ok(await client.callEndpoint(endpoint, method, params));
  const refused = async (text, method, endpoint, params) => {
    const answer = await client.callEndpoint(endpoint, method, params);
    must(answer.result === 'error' && answer.msg.includes(text), answer);
  };
  const soon = Math.floor(Date.now() / 1000) + 3600;
  await that('a conversation moves, is read, and is found', async () => {
    const ids = [];
    for (const content of ['first', 'second']) {
      // eslint-disable-next-line no-await-in-loop
      ids.push(ok(await client.messages.send({ to: 'javascript', type: 'stream', topic: 'moving', content })).id);
    }
    ok(await client.messages.update({ message_id: ids[1], topic: 'moved', propagate_mode: 'change_all' }));
    const at = async (topic) => ok(await client.messages.retrieve({ anchor: 'newest', num_before: 10, num_after: 0, narrow: [{ operator: 'channel', operand: channel }, { operator: 'topic', operand: topic }] })).messages.map((m) => m.id);
    const there = await at('moved'); // includes the notice
    must(ids.every((m) => there.includes(m)), there);
    must(ok(await client.messages.getHistoryById({ message_id: ids[0] })).message_history[1].prev_topic === 'moving', 'history');
    await call('POST', '/messages/flags/narrow', { anchor: 'oldest', num_before: 0, num_after: 10, op: 'remove', flag: 'read', narrow: [{ operator: 'topic', operand: 'moved' }] });
    must(ok(await client.messages.retrieve({ anchor: 'oldest', num_before: 0, num_after: 10, narrow: [{ operator: 'is', operand: 'unread' }] })).messages.some((m) => m.id === ids[0]), 'unread');
    const matching = await call('GET', '/messages/matches_narrow', { msg_ids: JSON.stringify(ids), narrow: JSON.stringify([{ operator: 'topic', operand: 'moved' }]) });
    must(Object.keys(matching.messages).length === 2, matching);
    must(Array.isArray((await call('GET', `/messages/${ids[0]}/read_receipts`)).user_ids), 'receipts');
  });
  await that('drafts, snippets, scheduled messages and reminders come and go', async () => {
    const draft = { type: 'stream', to: [channel], topic: 'js', content: 'a draft', timestamp: soon - 7200 };
    const [first] = (await call('POST', '/drafts', { drafts: [draft] })).ids;
    await call('PATCH', `/drafts/${first}`, { draft: JSON.stringify({ ...draft, content: 'a better draft' }) });
    must((await call('GET', '/drafts')).drafts.some((d) => d.content === 'a better draft'), 'draft');
    await call('DELETE', `/drafts/${first}`);
    await refused('Draft does not exist', 'DELETE', `/drafts/${first}`);
    const snippet = (await call('POST', '/saved_snippets', { title: 'hi', content: 'hello' })).saved_snippet_id;
    await call('PATCH', `/saved_snippets/${snippet}`, { title: 'greeting' });
    await call('DELETE', `/saved_snippets/${snippet}`);
    const later = (await call('POST', '/scheduled_messages', { type: 'stream', to: channel, topic: 'js', content: 'later', scheduled_delivery_timestamp: soon })).scheduled_message_id;
    await call('PATCH', `/scheduled_messages/${later}`, { content: 'later still' });
    must((await call('GET', '/scheduled_messages')).scheduled_messages.some((m) => m.content === 'later still'), later);
    await call('DELETE', `/scheduled_messages/${later}`);
    const reminder = (await call('POST', '/reminders', { message_id: id, scheduled_delivery_timestamp: soon, note: 'n' })).reminder_id;
    await call('DELETE', `/reminders/${reminder}`);
    await refused('Reminder does not exist', 'DELETE', `/reminders/${reminder}`);
  });
  await that('typing in a channel, a status, topics and people muted, and what a queue hears of it', async () => {
    const queue = ok(await client.queues.register({ event_types: ['user_status', 'user_topic', 'muted_users', 'drafts', 'reaction'] }));
    await call('POST', '/typing', { type: 'stream', op: 'start', stream_id: channel, topic: 'js' });
    await call('POST', '/users/me/status', { status_text: 'writing JavaScript' });
    await call('POST', '/user_topics', { stream_id: channel, topic: 'js', visibility_policy: 1 });
    await call('POST', `/users/me/muted_users/${otherId}`);
    await call('DELETE', `/users/me/muted_users/${otherId}`);
    ok(await client.reactions.add({ message_id: id, emoji_name: 'wave' }));
    const heard = [];
    let last = -1;
    while (heard.length < 5) {
      // eslint-disable-next-line no-await-in-loop
      const { events } = ok(await client.events.retrieve({ queue_id: queue.queue_id, last_event_id: last, dont_block: false }));
      events.forEach((e) => { heard.push(e.type); last = e.id; });
    }
    must(heard.join() === 'user_status,user_topic,muted_users,muted_users,reaction', heard);
    ok(await client.queues.deregister({ queue_id: queue.queue_id }));
  });
  await that('subscribe another, change a colour, and leave', async () => {
    ok(await client.users.me.subscriptions.add({ subscriptions: JSON.stringify([{ name: 'left soon' }]), principals: JSON.stringify([Number(otherId)]) }));
    const left = ok(await client.users.me.subscriptions.add({ subscriptions: JSON.stringify([{ name: 'left soon' }]) }));
    must(Object.keys(left.subscribed).length === 1, left);
    const number = ok(await client.streams.getStreamId('left soon')).stream_id;
    await call('POST', '/users/me/subscriptions/properties', { subscription_data: [{ stream_id: number, property: 'color', value: '#aabbcc' }] });
    must((await call('GET', `/streams/${number}/members`)).subscribers.includes(Number(otherId)), number);
    ok(await client.users.me.subscriptions.remove({ subscriptions: JSON.stringify(['left soon']) }));
    await refused('Invalid message(s)', 'GET', '/messages/9007199254740993');
  });
  await that('an endpoint that is gone answers JSON', async () => {
    const answer = await client.callEndpoint('/users/me/pointer', 'GET');
    must(answer.result === 'error', answer);
  });
  await that('delete with parameters in the query', async () => {
    const answer = await client.messages.deleteById({ message_id: id });
    ok(answer);
  });

  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed || !passed ? 1 : 0);
})();
