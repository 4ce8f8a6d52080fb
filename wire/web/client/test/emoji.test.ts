// The categories of emoji.
import "./page.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import { categoryOf } from "../src/emoji/categories.ts";

test("emoji are in the categories in which users look for them", () => {
  const cases = {
    people: ["1f642", "1f44d", "1f914", "1f471", "270c"],
    nature: ["1f43b", "1f333", "1f308", "2600"],
    food: ["1f34e", "1f355", "2615", "1f382", "1f95e"],
    activities: ["26bd", "1f3c6", "1f389", "1f3b8"],
    places: ["1f697", "1f680", "1f3e0", "2708"],
    objects: ["1f4a1", "1f511", "1f4c5", "2709"],
    symbols: ["2764", "2705", "1f51f"],
    flags: ["1f1e9-1f1ea", "1f3f3", "1f6a9"],
  };
  for (const [category, codes] of Object.entries(cases)) for (const code of codes) assert.equal(categoryOf(code), category, code);
});
