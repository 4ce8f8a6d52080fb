// Completions: one text is looked at twice at most, and loads its data once at most, whatever comes of the load.
import "./page.ts";
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { complete } from "../src/editor/complete.ts";
import { installTypeahead } from "../src/compose/typeahead.tsx";
import { change } from "../src/store/store.ts";
import { completers, type Completer, type Match } from "../src/editor/extras.ts";

installTypeahead();
change((c) => c.state.channels.set(1, { stream_id: 1, name: "general", description: "" } as never));

const long = "x".repeat(10_000);

// unmatched are texts that a completer looks at. Most get no offer.
const unmatched = [":qqq", ":xs", ":x\u00e9s", "@qqq", "#qqq", "#**general>qqq", "/qqq", "```qqq", "~~~ qqq", "<time:qqq"];
const longTexts = ["", ":", "@", "@_**", "#", "#**general>", "/", "```", "~~~ ", "<time:"].flatMap((mark) => [mark + long, `${mark}${long} ${mark}q`, mark.repeat(2000)]);

interface Counts {
  matches: number; // calls of match of one completer, the most
  loads: number;
  shown: number;
}

// run completes a text with counting copies of the completers.
async function run(text: string, list: readonly Completer[] = completers): Promise<Counts> {
  const counts: Counts = { matches: 0, loads: 0, shown: 0 };
  const counted = list.map((c): Completer => {
    let matches = 0;
    return {
      match(before, after) {
        counts.matches = Math.max(counts.matches, ++matches);
        assert.ok(matches < 50, `${text.slice(0, 20)}: the search does not end`);
        const m = c.match(before, after);
        const load = m?.load;
        return m && load ? { ...m, load: () => (counts.loads++, load()) } : m;
      },
    };
  });
  await complete(counted, text, "", () => counts.shown++, () => true);
  return counts;
}

function assertOnce(text: string, c: Counts): void {
  const name = `${text.slice(0, 20)} ${JSON.stringify(c)}`;
  assert.ok(c.loads <= 1 && c.matches <= 2 && c.shown <= 2, name);
}

test("every completer looks at one of the texts of this file", () => {
  assert.equal(completers.length, 7);
  for (const [i, c] of completers.entries()) assert.ok(unmatched.some((text) => c.match(text, "")), `completer ${i}`);
});

test("a text without an offer is looked at twice at most when loads fail", async () => {
  let requests = 0;
  mock.method(globalThis, "fetch", () => {
    requests++;
    return Promise.resolve(new Response('{"result":"error","msg":"refused","code":"BAD_REQUEST"}', { status: 400 }));
  });
  for (const text of [...unmatched, ...longTexts]) {
    requests = 0;
    assertOnce(text, await run(text));
    assert.ok(requests <= 1, `${text.slice(0, 20)}: ${requests} requests`);
  }
});

test("a text without an offer is looked at twice at most when the data are loaded", async () => {
  const answer = { code_to_names: { "1f389": ["tada"] }, topics: [], result: "success", msg: "" };
  mock.method(globalThis, "fetch", () => Promise.resolve(new Response(JSON.stringify(answer))));
  for (let round = 0; round < 2; round++) {
    for (const text of [...unmatched, ...longTexts, ":tad"]) assertOnce(text, await run(text));
  }
});

test("a load that throws, fails or is done at once is not repeated, and the first offers stay", async () => {
  const loads: (() => Promise<void>)[] = [
    () => Promise.resolve(),
    () => Promise.reject(new Error("no connection")),
    () => {
      throw new Error("no module");
    },
  ];
  for (const [i, load] of loads.entries()) {
    const c = await run("a", [{ match: (): Match => ({ start: 0, offers: [], load }) }]);
    assert.deepEqual(c, { matches: i ? 1 : 2, loads: 1, shown: i ? 1 : 2 });
  }
});

test("after a load another text is not completed with the offers of the first one", async () => {
  let shown = 0;
  const list: Completer[] = [{ match: (): Match => ({ start: 0, offers: [], load: () => Promise.resolve() }) }];
  await complete(list, "a", "", () => shown++, () => false);
  assert.equal(shown, 1);
});
