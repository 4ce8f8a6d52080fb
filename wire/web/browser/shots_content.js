// The content of the organization on the screenshots: conversations, unread messages, formatted text, people with a
// status, a channel of each kind, a group, drafts and scheduled messages.
const at = (name) => `${name}@example.org`;

const TALK = [
  ['bo', 'Soup or sandwiches today?'],
  ['ann', 'Soup! The place at the corner has **lentil soup** on Tuesdays.'],
  ['bo', 'Great. Twelve thirty?'],
  ['ada', 'I will join you. @**Ann Lee** can you reserve a table for four?'],
  ['olive', 'Count me in. I may be ten minutes late: the review of the budget ends at half past.'],
  ['ann', 'Done, the table is reserved under *Parley*.'],
  ['bo', ':tada: :tada:'],
];

const FORMATTED = [
  ['bo', '## Plan for the week\n\n1. Move the servers\n2. Write the report\n   * numbers of October\n   * a chart\n\n> Weeks of coding can save hours of planning.\n\nSee [the notes](https://example.org/notes) and #**general>lunch**.'],
  ['ann', '```go\nfunc greet(name string) string {\n\t// Every name is welcome.\n\treturn fmt.Sprintf("Hello, %s", name)\n}\n```'],
  ['ada', '| room | people | free |\n|---|---:|---|\n| Garden | 12 | yes |\n| Attic | 4 | no |\n\n$$\\int_0^\\infty e^{-x^2} dx = \\frac{\\sqrt{\\pi}}{2}$$'],
  ['bo', '```spoiler How the film ends\nThey all live happily.\n```\n\n~~Not this~~ but `that`, at <time:2030-01-01T12:00:00Z>. @**Ann Lee** please read.'],
  ['ann', '/poll Where do we meet?\nGarden\nAttic\nKitchen'],
];

export async function fill(server) {
  const ids = {};
  for (const name of ['ann', 'bo', 'ada', 'olive']) {
    ids[name] = (await server.call(at(name), 'GET', 'users/me')).user_id;
  }
  for (const name of Object.keys(ids)) {
    for (const onboarding_step of ['intro_inbox_view_modal', 'navigation_tour_video']) {
      await server.call(at(name), 'POST', 'users/me/onboarding_steps', { onboarding_step }); // hints for new users
    }
  }
  const say = (name, topic, content, to = 'general') =>
    server.call(at(name), 'POST', 'messages', { type: 'stream', to, topic, content, read_by_sender: 'true' });
  const write = (name, people, content) => server.call(at(name), 'POST', 'messages',
    { type: 'direct', to: JSON.stringify(people), content, read_by_sender: 'true' });
  for (const [name, description, extra] of [
    ['garden', 'Plants, trees and bees', {}],
    ['board', 'Minutes and decisions', { invite_only: 'true' }],
    ['help desk', 'Questions about computers and keys', {}],
  ]) {
    await server.call(at('olive'), 'POST', 'users/me/subscriptions', { ...extra,
      subscriptions: JSON.stringify([{ name, description }]), principals: JSON.stringify(Object.values(ids)) });
  }
  const talk = [];
  for (const [name, content] of TALK) talk.push((await say(name, 'lunch', content)).id);
  await server.call(at('ann'), 'POST', 'messages/flags', { op: 'add', flag: 'starred', messages: JSON.stringify([talk[1], talk[4]]) });
  await server.call(at('bo'), 'POST', `messages/${talk[3]}/reactions`, { emoji_name: '+1' });
  let first = 0;
  for (const [name, content] of FORMATTED) {
    const { id } = await say(name, 'formatting', content);
    first ||= id;
  }
  for (const [name, emoji_name] of [['ann', 'tada'], ['ada', 'tada'], ['bo', 'heart'], ['olive', 'thumbs_up']]) {
    await server.call(at(name), 'POST', `messages/${first}/reactions`, { emoji_name });
  }
  await say('bo', '✔ broken lamp', 'The lamp in the hall works again.', 'help desk');
  await say('ada', 'keys', 'Who has the key of the attic?', 'help desk');
  await say('olive', 'budget', 'The draft of the budget is ready. @**all** please comment until Friday.', 'board');
  await say('bo', 'bees', 'The bees are back :bee:', 'garden');
  await write('bo', [ids.ann], 'Do you have a minute for the slides?');
  await write('ann', [ids.bo], 'Sure. Now?');
  await write('bo', [ids.ann], 'In ten minutes, in the garden room.');
  await write('ada', [ids.ann, ids.bo], 'The three of us should talk about the move.');
  const { user_topics } = { user_topics: [['general', 'lunch']] };
  for (const [channel, topic] of user_topics) {
    await server.call(at('ann'), 'POST', 'messages/flags/narrow', { op: 'add', flag: 'read', anchor: 'newest',
      num_before: '100', num_after: '0',
      narrow: JSON.stringify([{ operator: 'channel', operand: channel }, { operator: 'topic', operand: topic }]) });
  }
  await server.call(at('olive'), 'POST', 'messages/flags/narrow', { op: 'add', flag: 'read', anchor: 'newest',
    num_before: '1000', num_after: '0', narrow: '[]' });
  await server.call(at('bo'), 'POST', 'users/me/status', { status_text: 'On the train', emoji_name: 'train' });
  await server.call(at('ada'), 'POST', 'users/me/status', { status_text: 'In a meeting', emoji_name: 'calendar' });
  for (const name of ['bo', 'ada']) {
    await server.call(at(name), 'POST', 'users/me/presence', { status: name === 'bo' ? 'active' : 'idle' });
  }
  await server.call(at('olive'), 'POST', 'user_groups/create', { name: 'cooks', description: 'They make the soup',
    members: JSON.stringify([ids.ann, ids.bo]) });
  await server.call(at('olive'), 'PATCH', 'realm', { jitsi_server_url: '"https://jitsi.example.org"' });
  await server.call(at('olive'), 'PATCH', 'realm', { video_chat_provider: '1' });
  const timestamp = Math.floor(Date.now() / 1000);
  await server.call(at('ann'), 'POST', 'drafts', { drafts: JSON.stringify([{ type: 'stream', to: [1], topic: 'lunch',
    content: 'Tomorrow we could try the new place beside the station', timestamp }]) });
  await server.call(at('ann'), 'POST', 'scheduled_messages', { type: 'channel', to: '1', topic: 'lunch',
    content: 'Good morning! Who is hungry?', scheduled_delivery_timestamp: String(timestamp + 50_000) });
  await server.call(at('olive'), 'POST', 'invites', { invitee_emails: 'new@example.org', invite_as: '400',
    stream_ids: '[1]', invite_expires_in_minutes: '14400' });
  return ids;
}
