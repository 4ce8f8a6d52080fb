// Builds the client into ../dist, or with --test its tests into a temporary folder, and runs them.
// The same sources give the same bytes: file names hold a hash of the content, and nothing else differs.
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { catalogues } from "./catalogue.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
process.chdir(here);

// maxFirstScript bounds the compressed bytes of all scripts that the first screen needs.
const maxFirstScript = 200_000;

const shared = {
  bundle: true,
  format: "esm",
  target: ["es2022"],
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  loader: { ".txt": "text" },
  charset: "utf8",
  plugins: [catalogues],
  logLevel: "warning",
};

// oneCore keeps everything that the first screen needs in one file. Without it, esbuild makes a file for each set of
// late parts that share code with the first screen, which would be dozens of requests. Each late part imports the whole
// first screen, which is loaded by then: so all of its modules belong to the same set.
const oneCore = {
  name: "one-core",
  setup(b) {
    b.onResolve({ filter: /^\./ }, (a) => {
      if (a.kind !== "dynamic-import") return undefined;
      return { path: relative(here, join(a.resolveDir, a.path)), namespace: "late" };
    });
    b.onLoad({ filter: /.*/, namespace: "late" }, (a) => {
      const real = JSON.stringify("./" + a.path);
      return { contents: `import "./src/start.tsx";\nexport * from ${real};\n`, resolveDir: here };
    });
  },
};

if (process.argv.includes("--test")) {
  const out = mkdtempSync(join(tmpdir(), "parley-client-"));
  try {
    const tests = readdirSync("test").filter((f) => f.endsWith(".test.ts"));
    await build({
      ...shared,
      entryPoints: tests.map((f) => join("test", f)),
      outdir: out,
      outExtension: { ".js": ".mjs" },
      platform: "node",
      sourcemap: "inline",
    });
    const files = readdirSync(out).map((f) => join(out, f));
    const run = spawnSync(process.execPath, ["--enable-source-maps", "--test", ...files], { stdio: "inherit" });
    process.exitCode = run.status ?? 1;
  } finally {
    rmSync(out, { recursive: true });
  }
} else {
  const dist = "../dist";
  rmSync(dist, { recursive: true, force: true });
  mkdirSync(dist);
  const result = await build({
    ...shared,
    entryPoints: { app: "src/main.tsx", style: "src/style/app.css", math: "src/style/math.css" },
    outdir: dist,
    splitting: true,
    minify: true,
    metafile: true,
    plugins: [oneCore, catalogues],
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    assetNames: "[name]-[hash]",
    loader: { ...shared.loader, ".woff2": "file", ".svg": "file", ".ttf": "empty", ".woff": "empty" },
  });
  // The page of calls is a program of its own, so that no part of its library is in the client.
  const call = await build({
    ...shared,
    entryPoints: { call: "src/call/page.ts" },
    outdir: dist,
    minify: true,
    metafile: true,
    entryNames: "[name]-[hash]",
  });
  checkFormulas();
  writeManifest(dist, result.metafile, basename(Object.keys(call.metafile.outputs)[0]));
  writeLicenses(dist, { inputs: { ...result.metafile.inputs, ...call.metafile.inputs } });
}

// checkFormulas fails if the stylesheet of formulas has another version than the server's program that makes their HTML.
function checkFormulas() {
  const { version } = JSON.parse(readFileSync("node_modules/katex/package.json", "utf8"));
  const server = readFileSync("../../markdown/katex/VERSION", "utf8");
  if (!server.includes(`katex@${version} `)) throw new Error(`katex ${version} is not the server's: ${server}`);
}

// writeLicenses writes the licenses of the packages whose code or files are in the result. `make licenses` adds them to
// the notices of the program.
function writeLicenses(dist, meta) {
  const packages = new Set();
  for (const input of Object.keys(meta.inputs)) {
    const name = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(input)?.[1];
    if (name) packages.add(name);
  }
  const list = [...packages].sort().map((name) => {
    const dir = join("node_modules", name);
    const { version } = JSON.parse(readFileSync(join(dir, "package.json"), "utf8"));
    const file = readdirSync(dir).find((f) => /^licen[cs]e/i.test(f));
    if (!file) throw new Error(`${name} has no license file`);
    return { name: `${name} ${version} (npm)`, text: readFileSync(join(dir, file), "utf8").trim() };
  });
  writeFileSync(join(dist, "licenses.json"), JSON.stringify(list, null, 2) + "\n");
}

// writeManifest writes the names of the files that the page loads, and fails if they are too large.
function writeManifest(dist, meta, call) {
  const entries = Object.entries(meta.outputs);
  const named = (source) => entries.find(([, o]) => o.entryPoint === source)[0];
  const script = named("src/main.tsx");
  const first = new Set();
  const follow = (name) => {
    if (first.has(name)) return;
    first.add(name);
    for (const i of meta.outputs[name].imports) if (i.kind === "import-statement" && !i.external) follow(i.path);
  };
  follow(script);
  let size = 0;
  for (const name of first) size += gzipSync(readFileSync(name), { level: 9 }).length;
  const manifest = {
    script: basename(script),
    style: basename(named("src/style/app.css")),
    math: basename(named("src/style/math.css")),
    call,
    preload: [...first].filter((n) => n !== script).map((n) => basename(n)).sort(),
  };
  writeFileSync(join(dist, "manifest.json"), JSON.stringify(manifest, null, 2) + "\n");
  console.log(`${size} bytes of compressed script before the first screen, of at most ${maxFirstScript}`);
  if (size > maxFirstScript) process.exitCode = 1;
}
