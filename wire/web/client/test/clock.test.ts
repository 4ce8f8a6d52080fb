// The server's clock, estimated from the Date headers of answers.
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { serverNow, setClock } from "../src/api/clock.ts";

const start = Date.parse("2026-01-01T12:00:00Z");
const computer = start - 3_600_000; // an hour late

let monotonic = 5000; // milliseconds of the browser's clock that nobody sets
mock.method(performance, "now", () => monotonic);
const date = mock.method(Date, "now", () => computer);

function header(time: number): string {
  return new Date(time).toUTCString();
}

test("before the first answer the computer's clock counts", () => {
  assert.equal(serverNow(), computer);
});

test("answers without a valid time are ignored", () => {
  for (const wrong of [null, "", "yesterday", "Thu, 99 Foo 2026 00:00:00 GMT"]) setClock(wrong);
  assert.equal(serverNow(), computer);
});

test("the middle of the second of the first answer is the offset, and time goes on from there", () => {
  setClock(header(start));
  assert.equal(serverNow(), start + 500);
  monotonic += 10_000;
  assert.equal(serverNow(), start + 10_500);
});

test("setting the computer's clock changes nothing", () => {
  date.mock.mockImplementation(() => start + 86_400_000);
  assert.equal(serverNow(), start + 10_500);
});

test("the rounding of answers does not move the clock", () => {
  for (const off of [-1000, 0, 1000]) {
    setClock(header(start + 10_000 + off));
    assert.equal(serverNow(), start + 10_500);
  }
  setClock("nonsense");
  assert.equal(serverNow(), start + 10_500);
});

test("after a sleep, during which the browser's clock stood still, the next answer corrects the offset", () => {
  setClock(header(start + 600_000));
  assert.equal(serverNow(), start + 600_500);
});

test("a server whose clock was set back is followed", () => {
  setClock(header(start + 60_000));
  assert.equal(serverNow(), start + 60_500);
  monotonic += 1000;
  assert.equal(serverNow(), start + 61_500);
});
