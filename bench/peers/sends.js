// Sends of k6 (k6 run sends.js): the same as sends.toml. PEERS is a JSON object with url, rate, seconds, channel and
// accounts, which are pairs of an address and an API key.
import encoding from 'k6/encoding';
import http from 'k6/http';

const peers = JSON.parse(__ENV.PEERS);

export const options = {
  scenarios: {
    sends: {
      executor: 'constant-arrival-rate',
      rate: peers.rate,
      timeUnit: '1s',
      duration: `${peers.seconds}s`,
      preAllocatedVUs: 32,
    },
  },
  summaryTrendStats: ['avg', 'med', 'p(99)', 'count'],
};

export default function send() {
  const [email, key] = peers.accounts[Math.floor(Math.random() * peers.accounts.length)];
  http.post(
    `${peers.url}/api/v1/messages`,
    { type: 'channel', to: peers.channel, topic: 'peers', content: `k6 ${Date.now()} ${Math.random()}` },
    { headers: { Authorization: `Basic ${encoding.b64encode(`${email}:${key}`)}` } },
  );
}

export function handleSummary(data) {
  const d = data.metrics.http_req_duration.values;
  const failed = data.metrics.http_req_failed.values.passes;
  return { stdout: `${JSON.stringify({ count: d.count, failed, mean: d.avg, p50: d.med, p99: d['p(99)'] })}\n` };
}
