// Addresses of integrations.
import assert from "node:assert/strict";
import { test } from "node:test";
import { externalAddress, shortName } from "../src/settings/integration_address.ts";

test("the address of an integration carries key, options and events", () => {
  assert.equal(
    externalAddress("https://chat.example.org", "github", "KEY", { stream: "7", topic: "a b&c" }, ["push"]),
    "https://chat.example.org/api/v1/external/github?api_key=KEY&stream=7&topic=a%20b%26c&only_events=%5B%22push%22%5D",
  );
  assert.equal(externalAddress("https://x", "json", "K", {}, []), "https://x/api/v1/external/json?api_key=K");
});

test("short names of bots are plain and differ", () => {
  assert.equal(shortName("Grafana für Alarme!", 0), "grafana-fu-r-alarme-00000");
  assert.match(shortName("監視"), /^bot-[a-z0-9]{5}$/);
  assert.notEqual(shortName("x", 0.1), shortName("x", 0.2));
});
