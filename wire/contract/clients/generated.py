"""Generates clients from the server's description, and lets them register, send a message, get its event and read it.

Python by openapi-python-client, TypeScript by openapi-typescript with openapi-fetch. Their packages are installed in
.conform at the top of the repository; a client whose packages cannot be installed is skipped, with the reason. The
script's own imports are those of the standard library."""
import json
import os
import shutil
import subprocess
import sys
import textwrap

from harness import ROOT, Checks, Server

HOME = os.path.join(ROOT, ".conform", "generated")
PYTHON = ["openapi-python-client==0.29.1", "httpx"]
NODE = ["openapi-typescript@7.13.0", "openapi-fetch@0.17.0", "typescript@5.9.3"]
INSTALL_SECONDS, RUN_SECONDS = 400, 600

PYTHON_SPINE = """
import sys
from parley_client import AuthenticatedClient
from parley_client.api.events import get_events, post_register
from parley_client.api.messages import get_messages, post_messages
from parley_client.models import PostMessagesBody, PostMessagesBodyType, PostRegisterBody
import base64
site, email, key = sys.argv[1:]
token = base64.b64encode(f"{email}:{key}".encode()).decode()
client = AuthenticatedClient(base_url=site, token=token, prefix="Basic", timeout=60)
queue = post_register.sync(client=client, body=PostRegisterBody(apply_markdown=True))
body = PostMessagesBody(type_=PostMessagesBodyType.STREAM, to="general", topic="generated", content="by *Python*")
sent = post_messages.sync(client=client, body=body)
last, seen = queue.last_event_id, None
while seen is None:
    for event in get_events.sync(client=client, queue_id=queue.queue_id, last_event_id=last).events:
        last = event.id
        if event.type_ == "message" and event.message.id == sent.id:
            seen = event.message.content
read = get_messages.sync(client=client, anchor=sent.id, num_before=0, num_after=0).messages
assert [m.id for m in read] == [sent.id] and read[0].content == seen == "<p>by <em>Python</em></p>", (seen, read)
print("ok")
"""

TYPESCRIPT_SPINE = """
import createClient from "openapi-fetch";
import type { paths } from "./description.js";
declare const process: { argv: string[] };
const [site, email, key] = process.argv.slice(2) as [string, string, string];
const text = (v: unknown) => (typeof v === "string" ? v : JSON.stringify(v));
const client = createClient<paths>({
  baseUrl: site,
  headers: { authorization: "Basic " + btoa(email + ":" + key), "content-type": "application/x-www-form-urlencoded" },
  bodySerializer: (body) => new URLSearchParams(Object.entries(body ?? {}).map(([k, v]) => [k, text(v)])).toString(),
});
const queue = (await client.POST("/api/v1/register", { body: { apply_markdown: true } })).data!;
const sent = (await client.POST("/api/v1/messages", {
  body: { type: "stream", to: "general", topic: "generated", content: "by *TypeScript*" },
})).data!;
let last = queue.last_event_id!, seen = "";
while (!seen) {
  const query = { queue_id: queue.queue_id!, last_event_id: last };
  for (const event of (await client.GET("/api/v1/events", { params: { query } })).data!.events!) {
    last = event.id;
    if (event.type === "message" && event.message.id === sent.id) seen = event.message.content;
  }
}
const read = (await client.GET("/api/v1/messages", {
  params: { query: { anchor: sent.id, num_before: 0, num_after: 0 } },
})).data!.messages;
if (read.length !== 1 || read[0]!.content !== seen || seen !== "<p>by <em>TypeScript</em></p>") {
  throw new Error(seen + " " + JSON.stringify(read));
}
console.log("ok");
"""

checks = Checks()


def run(*command, cwd=None, seconds=RUN_SECONDS):
    done = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=seconds)
    assert done.returncode == 0, f"{command[0]} ended with {done.returncode}: {(done.stdout + done.stderr)[-2000:]}"
    return done.stdout


def install(name, *command):
    """Reports whether the packages of a client could be installed."""
    try:
        run(*command, seconds=INSTALL_SECONDS)
        return True
    except (AssertionError, OSError, subprocess.TimeoutExpired) as error:
        print(f"skipped: the packages for {name} cannot be installed: {str(error)[-300:]}")
        return False


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


def name_alternatives(description):
    """Writes the description with a name for each alternative of an object, and returns its path. openapi-python-client
    makes the models of alternatives without a name twice, refuses the second ones and leaves out the first."""
    with open(description) as f:
        document = json.load(f)
    schemas = document["components"]["schemas"]
    for name, schema in list(schemas.items()):
        for i, one in enumerate(schema.get("anyOf", [])):
            if "properties" in one:
                schemas[f"{name}Kind{i + 1}"] = one
                schema["anyOf"][i] = {"$ref": f"#/components/schemas/{name}Kind{i + 1}"}
    path = os.path.join(HOME, "named.json")
    write(path, json.dumps(document))
    return path


def python_client(description, *arguments):
    venv = os.path.join(HOME, "venv")
    if not os.path.exists(os.path.join(venv, "bin", "openapi-python-client")):
        run(sys.executable, "-m", "venv", venv)
        if not install("Python", os.path.join(venv, "bin", "pip"), "install", "--quiet", "--no-input", *PYTHON):
            return
    with checks.that("a Python client is generated, and works"):
        out, config = os.path.join(HOME, "python"), os.path.join(HOME, "config.yml")
        shutil.rmtree(out, ignore_errors=True)
        write(config, "post_hooks: []\n")
        made = run(os.path.join(venv, "bin", "openapi-python-client"), "generate", "--path", name_alternatives(description), "--config", config, "--output-path", out)
        for operation in ("POST /api/v1/register", "GET /api/v1/events", "POST /api/v1/messages", "GET /api/v1/messages"):
            assert f"WARNING parsing {operation} " not in made, made[-2000:]
        run(os.path.join(venv, "bin", "python"), "-m", "compileall", "-q", out)
        write(os.path.join(out, "spine.py"), PYTHON_SPINE)
        assert run(os.path.join(venv, "bin", "python"), "spine.py", *arguments, cwd=out) == "ok\n"


def typescript_client(description, *arguments):
    if not os.path.isdir(os.path.join(HOME, "node_modules", "openapi-fetch")):
        if not install("TypeScript", "npm", "install", "--prefix", HOME, "--no-save", "--no-audit", "--no-fund", "--loglevel=error", *NODE):
            return
    with checks.that("a TypeScript client is generated, compiles and works"):
        out = os.path.join(HOME, "typescript")
        shutil.rmtree(out, ignore_errors=True)
        os.makedirs(out)
        programs = os.path.join(HOME, "node_modules", ".bin")
        run(os.path.join(programs, "openapi-typescript"), description, "-o", os.path.join(out, "description.ts"))
        write(os.path.join(out, "spine.ts"), textwrap.dedent(TYPESCRIPT_SPINE))
        write(os.path.join(out, "package.json"), '{"type": "module"}')
        run(os.path.join(programs, "tsc"), "--strict", "--target", "es2022", "--module", "nodenext", "--skipLibCheck",
            "--noUncheckedIndexedAccess", "spine.ts", cwd=out)
        assert run("node", "spine.js", *arguments, cwd=out) == "ok\n"


def main():
    os.makedirs(HOME, exist_ok=True)
    server = Server("--rate-limit", "0")
    who = server.people()[0]
    description = os.path.join(HOME, "openapi.json")
    write(description, server.raw("GET", "/api/openapi.json")[1].decode())
    python_client(description, server.site, who["email"], who["key"])
    typescript_client(description, server.site, who["email"], who["key"])


if __name__ == "__main__":
    main()
    if not checks.passed and not checks.failed:
        print("0 passed, 0 failed")  # all were skipped
        sys.exit(0)
    checks.summary()
