// A server of the scenes: bin/parley on a free port of this machine, with a demo organization and a data directory of
// its own. Emails are read from the outbox folder. PARLEY_TEMPLATE is the folder that template.js has made.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const PROGRAM = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../../bin/parley');
const READY_MS = 20_000; // a demo organization starts in under one second
const CROWD_MS = process.env.PARLEY_CROWD ? 1_800_000 : 300_000; // a generated organization of 1,000,000 messages is made in 30 to 60 seconds
export const TIMEOUT_MS = 45_000; // of everything that happens in the background, beside other tests

const TEMPLATE = process.env.PARLEY_TEMPLATE;

export const PASSWORD = 'purple otter 84 lamp';

export function sleep(ms) {
  return new Promise((resolve) => { setTimeout(resolve, ms); });
}

// eventually calls a function until it returns something true, and returns that.
export async function eventually(subject, ask, timeout = TIMEOUT_MS) {
  for (const until = Date.now() + timeout; ;) {
    const answer = await ask();
    if (answer) return answer;
    if (Date.now() > until) throw new Error(`waited in vain: ${subject}`);
    await sleep(20);
  }
}

export async function freePort() {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

// send sends a request to a server of this machine, with the Host header of the headers, if any: only browsers resolve
// names below localhost.
export async function send({ method = 'GET', port, path: to, headers = {} }, body = '') {
  const request = http.request({ host: '127.0.0.1', port, method, path: to, headers, agent: false });
  request.end(body);
  const [answer] = await once(request, 'response');
  let text = '';
  for await (const piece of answer.setEncoding('utf8')) text += piece;
  return { status: answer.statusCode, headers: answer.headers, text };
}

const basic = (email, key) => `Basic ${Buffer.from(`${email}:${key}`).toString('base64')}`;

export class Parley {
  #process;
  #options;
  #sessions = {}; // of the template, by email address: those that no profile uses yet
  #withPassword = new Set(); // accounts with the template's password

  // serve starts a server. The options are further flags of "parley serve"; PORT in them is replaced.
  static serve(...options) { return new Parley().#serve(options); }

  // copy starts a server with a copy of the template: in its demo organization all people have PASSWORD and a session.
  static copy(...options) {
    const p = new Parley();
    if (TEMPLATE && !options.includes('--data')) {
      p.#sessions = JSON.parse(fs.readFileSync(path.join(TEMPLATE, 'sessions.json'), 'utf8'));
      p.#withPassword = new Set(Object.keys(p.#sessions));
    }
    return p.#serve(options);
  }

  async #serve(options) {
    const p = this;
    p.port = await freePort();
    p.dir = fs.mkdtempSync(path.join(os.tmpdir(), 'parley-browser-'));
    p.data = path.join(p.dir, 'data');
    p.log = path.join(p.dir, 'log');
    p.#options = options.map((x) => x.replaceAll('PORT', p.port));
    const option = (name) => (p.#options.includes(name) ? p.#options[p.#options.indexOf(name) + 1] : undefined);
    p.site = option('--url') ?? `http://127.0.0.1:${p.port}`;
    p.data = option('--data') ?? p.data;
    if (p.#withPassword.size) fs.cpSync(path.join(TEMPLATE, 'data'), p.data, { recursive: true });
    await p.start();
    return p;
  }

  // start starts the program, also after a kill: the data directory is the same.
  async start() {
    const log = fs.openSync(this.log, 'a');
    const served = this.#served();
    this.#process = spawn(PROGRAM, ['serve', '--data', this.data, '--listen', `127.0.0.1:${this.port}`, '--demo',
      ...this.#options], { stdio: ['ignore', log, log], env: { PARLEY_DEMO_CONTENT: 'false', ...process.env } });
    fs.closeSync(log);
    const ended = once(this.#process, 'exit').then(() => { throw new Error(`the server ended:\n${this.text()}`); });
    ended.catch(() => {});
    const ready = this.#options.includes('--demo-crowd') ? CROWD_MS : READY_MS;
    await Promise.race([ended, eventually('the server serves', () => this.#served() > served, ready)]);
  }

  // #served returns how often the program has logged that it is ready.
  #served() { return this.text().split('msg=serving ').length; }

  // pid is the id of the process.
  get pid() { return this.#process.pid; }

  // text returns the output of the program.
  text() { return fs.readFileSync(this.log, 'utf8'); }

  // kill ends the program as a power loss would.
  async kill(signal = 'SIGKILL') {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const exited = once(this.#process, 'exit');
    this.#process.kill(signal);
    await exited;
  }

  async close() {
    await this.kill();
    fs.rmSync(this.dir, { recursive: true, force: true });
  }

  // operate runs an operator's command, such as operate('user', 'password', ...), and returns its output.
  async operate(...args) {
    const input = args.at(-1)?.input;
    if (input !== undefined) args.pop();
    const child = spawn(PROGRAM, [...args, '--data', this.data], { stdio: ['pipe', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (b) => { output += b; });
    child.stdin.end(input ?? '');
    const [code] = await once(child, 'close');
    if (code !== 0) throw new Error(`parley ${args.join(' ')} ended with ${code}:\n${output}`);
    return output;
  }

  // session returns the cookie of a session of the template, once for each account; undefined if there is none.
  session(email) {
    const cookie = this.#sessions[email];
    delete this.#sessions[email];
    return cookie;
  }

  // setPassword gives accounts of the demo organization PASSWORD, and ends their sessions; the first time, the template
  // has done that.
  async setPassword(...emails) {
    for (const email of emails) {
      if (this.#withPassword.delete(email)) continue;
      this.session(email);
      await this.operate('user', 'password', '--email', email, '--password', '-', { input: `${PASSWORD}\n` });
    }
  }

  // call sends a request of an app with the account's API key, and returns the parsed answer, which must be a success.
  async call(email, method, endpoint, form = {}) {
    return this.#send(await this.authorization(email), method, endpoint, form);
  }

  // authorization returns the header with the account's API key.
  async authorization(email) {
    const key = (await this.#send('', 'POST', 'dev_fetch_api_key', { username: email })).api_key;
    return basic(email, key);
  }

  // callAs is call for a bot with a key.
  async callAs(email, key, method, endpoint, form = {}) {
    return this.#send(basic(email, key), method, endpoint, form);
  }

  async #send(authorization, method, endpoint, form) {
    const { host } = new URL(this.site);
    const fields = new URLSearchParams(form).toString();
    const inQuery = method === 'GET';
    const { status, text } = await send({ method, port: this.port,
      path: `/api/v1/${endpoint}${inQuery ? `?${fields}` : ''}`,
      headers: { host, authorization, 'content-type': 'application/x-www-form-urlencoded' } }, inQuery ? '' : fields);
    const body = JSON.parse(text);
    if (body.result !== 'success') throw new Error(`${method} ${endpoint}: ${status} ${text}`);
    return body;
  }

  // emails returns the texts of the emails to an address, the oldest first.
  emails(to) {
    const outbox = path.join(this.data, 'outbox');
    const names = fs.existsSync(outbox) ? fs.readdirSync(outbox).filter((x) => x.endsWith('.eml')).sort() : [];
    return names.map((x) => fs.readFileSync(path.join(outbox, x), 'utf8').replaceAll('=\r\n', '')
      .replaceAll('\r\n ', ' ').replaceAll('=3D', '=')).filter((x) => x.includes(`To: <${to}>`));
  }

  // email waits for an email to an address that fits a pattern.
  email(to, pattern) {
    return eventually(`an email to ${to} with ${pattern}`, () => this.emails(to).find((x) => pattern.test(x)));
  }

  // link waits for an email to an address with a link to a path, and returns the newest one's link.
  link(to, start) {
    const pattern = new RegExp(`https?://[^/\\s]+${start}[\\w./-]*`);
    return eventually(`an email to ${to} with a link to ${start}`,
      () => this.emails(to).reverse().map((x) => x.match(pattern)?.[0]).find(Boolean));
  }
}
