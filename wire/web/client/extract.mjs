// Writes the texts of the code into locale/en.json, and removes from the other catalogues what no code uses any more. It
// prints what still has to be translated.
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { extract, readCatalogue } from "./catalogue.mjs";

const { messages } = extract("src");
for (const f of readdirSync("locale")) {
  const file = join("locale", f);
  const old = readCatalogue(file);
  const now = {};
  for (const m of messages) {
    if (f === "en.json") now[m] = m;
    else if (Object.hasOwn(old, m)) now[m] = old[m];
    else console.log(`${f} has no translation of ${JSON.stringify(m)}`);
  }
  writeFileSync(file, JSON.stringify(now, null, 2) + "\n");
}
