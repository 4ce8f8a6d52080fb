// Reporter of node's test runner: one line for each scene, and "N passed, N failed" at the end.
import { inspect } from 'node:util';

const MAX_REASON = 4000; // characters of an error that are printed

function reason(error) {
  const text = inspect(error?.cause ?? error);
  return text.slice(0, MAX_REASON).replace(/^/gm, '     ');
}

// isFile reports whether an event is about a whole file. Files without scenes that ran count only if they failed.
function isFile({ name, nesting }) {
  return nesting === 0 && /_test\.js$/.test(name);
}

export default async function* report(events) {
  let passed = 0;
  let failed = 0;
  for await (const { type, data } of events) {
    if (type === 'test:pass' && !isFile(data) && !data.skip) {
      passed += 1;
      yield `ok   ${data.name} (${(data.details.duration_ms / 1000).toFixed(1)} s)\n`;
    } else if (type === 'test:pass' && data.skip && process.env.PARLEY_FIREFOX) {
      yield `left to Chromium: ${data.name}: ${data.skip}\n`;
    } else if (type === 'test:pass' && data.skip) {
      failed += 1; // a proof that is left out is no proof
      yield `FAIL ${data.name} was skipped\n`;
    } else if (type === 'test:fail' && data.details.error?.failureType !== 'subtestsFailed') {
      failed += 1;
      yield `FAIL ${data.name} (${(data.details.duration_ms / 1000).toFixed(1)} s)\n${reason(data.details.error)}\n`;
    } else if (type === 'test:stdout' || type === 'test:stderr') {
      yield data.message;
    }
  }
  if (passed + failed === 0) {
    failed = 1;
    yield 'FAIL no scene ran\n';
  }
  yield `${passed} passed, ${failed} failed\n`;
}
