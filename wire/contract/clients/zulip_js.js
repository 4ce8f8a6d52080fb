// zulip-js against a server started by run: node zulip_js.js SITE EMAIL KEY OTHER_EMAIL.
// Posts are multipart and PATCH and DELETE carry their parameters in the query: that is what this client does.
'use strict';
const fs = require('fs');
const path = require('path');
const packages = process.env.PARLEY_NODE_MODULES;
const helper = require(path.join(packages, 'zulip-js/lib/helper'));
const zulip = require(path.join(packages, 'zulip-js'));

const [site, email, key, otherId] = process.argv.slice(2);
const PATIENCE_MS = 30000;
let passed = 0;
let failed = 0;

const plain = helper.fetch;
helper.fetch = async (url, options) => {
  const answer = await plain(url, options);
  const text = await answer.text();
  if (process.env.PARLEY_RECORDING) {
    let body = text.slice(0, 200);
    try { body = JSON.parse(text); } catch { /* recorded as it is */ }
    const { pathname, search } = new URL(url);
    fs.appendFileSync(path.join(process.env.PARLEY_RECORDING, 'zulip_js.jsonl'),
      `${JSON.stringify({ method: options.method, path: pathname + search, status: answer.status, body })}\n`);
  }
  return { status: answer.status, url, json: () => JSON.parse(text) };
};

async function that(what, body) {
  try {
    await Promise.race([body(), new Promise((_, no) => { setTimeout(() => no(new Error('timed out')), PATIENCE_MS).unref(); })]);
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
  const until = Date.now() + PATIENCE_MS;
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
