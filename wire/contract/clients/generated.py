"""Generates clients from the server's description. Each registers, sends a message, gets its event, reads, edits and
reacts to it, uploads a file, and is refused.

Python by openapi-python-client, TypeScript by openapi-typescript with openapi-fetch, Go by oapi-codegen. Their packages
are installed in .conform at the top of the repository; a client whose packages cannot be installed is skipped, with the
reason. The script's own imports are those of the standard library."""
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
GO = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2"
GO_RUNTIME = "github.com/oapi-codegen/runtime@v1.9.0"
INSTALL_SECONDS, RUN_SECONDS = 400, 600

PYTHON_SPINE = """
import sys
from parley_client import AuthenticatedClient
from parley_client.api.events import get_events, post_register
from parley_client.api.files import post_user_uploads
from parley_client.api.messages import (get_messages, patch_messages_message_id, post_messages,
                                        post_messages_message_id_reactions)
from parley_client.models import (ErrorBadEventQueueId, PatchMessagesMessageIdBody, PostMessagesBody,
                                  PostMessagesBodyType, PostMessagesMessageIdReactionsBody, PostRegisterBody,
                                  PostUserUploadsBody)
from parley_client.types import File
import base64
import io
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
patch_messages_message_id.sync(client=client, message_id=sent.id, body=PatchMessagesMessageIdBody(content="edited"))
reaction = PostMessagesMessageIdReactionsBody(emoji_name="tada")
post_messages_message_id_reactions.sync(client=client, message_id=sent.id, body=reaction)
read = get_messages.sync(client=client, anchor=sent.id, num_before=0, num_after=0).messages[0]
assert read.content == "<p>edited</p>" and [r.emoji_name for r in read.reactions] == ["tada"], read
file = File(payload=io.BytesIO(b"bytes"), file_name="python.txt", mime_type="text/plain")
uploaded = post_user_uploads.sync(client=client, body=PostUserUploadsBody(file=file))
assert uploaded.filename == "python.txt", uploaded
refused = get_events.sync(client=client, queue_id="none", last_event_id=-1)
assert isinstance(refused, ErrorBadEventQueueId) and refused.queue_id == "none", refused
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
const path = { message_id: sent.id };
await client.PATCH("/api/v1/messages/{message_id}", { params: { path }, body: { content: "edited" } });
await client.POST("/api/v1/messages/{message_id}/reactions", { params: { path }, body: { emoji_name: "tada" } });
const now = (await client.GET("/api/v1/messages/{message_id}", { params: { path } })).data!.message;
if (now.content !== "<p>edited</p>" || now.reactions[0]?.emoji_name !== "tada") throw new Error(JSON.stringify(now));
const form = new FormData();
form.append("file", new Blob(["bytes"], { type: "text/plain" }), "typescript.txt");
const uploaded = (await client.POST("/api/v1/user_uploads", {
  body: { file: "" },
  bodySerializer: () => form,
  headers: { "content-type": null },
})).data!;
if (uploaded.filename !== "typescript.txt") throw new Error(JSON.stringify(uploaded));
const refused = await client.GET("/api/v1/events", { params: { query: { queue_id: "none", last_event_id: -1 } } });
const reason = refused.error!;
if (!("queue_id" in reason) || reason.code !== "BAD_EVENT_QUEUE_ID" || reason.queue_id !== "none") {
  throw new Error(JSON.stringify(refused));
}
console.log("ok");
"""

GO_SPINE = """
package main

import (
	"bytes"
	"context"
	"fmt"
	"mime/multipart"
	"net/http"
	"os"

	"spine/parley"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// answer demands the answer of a request that succeeds.
func answer[T any](v *T, status string, body []byte) *T {
	if v == nil {
		panic(status + ": " + string(body))
	}
	return v
}

func main() {
	site, email, key := os.Args[1], os.Args[2], os.Args[3]
	ctx, yes, zero, topic := context.Background(), true, 0, "generated"
	login := func(_ context.Context, r *http.Request) error {
		r.SetBasicAuth(email, key)
		return nil
	}
	client := must(parley.NewClientWithResponses(site, parley.WithRequestEditorFn(login)))

	registered := must(client.PostRegisterWithFormdataBodyWithResponse(ctx, parley.PostRegisterFormdataRequestBody{
		ApplyMarkdown: &yes}))
	queue := answer(registered.JSON200, registered.Status(), registered.Body)
	channel := "general"
	posted := must(client.PostMessagesWithFormdataBodyWithResponse(ctx, parley.PostMessagesFormdataRequestBody{
		Type: parley.PostMessagesFormdataBodyTypeStream, To: &channel, Topic: &topic, Content: "by *Go*"}))
	sent := answer(posted.JSON200, posted.Status(), posted.Body)

	last, seen := queue.LastEventId, ""
	for seen == "" {
		got := must(client.GetEventsWithResponse(ctx, &parley.GetEventsParams{QueueId: queue.QueueId, LastEventId: &last}))
		for _, event := range answer(got.JSON200, got.Status(), got.Body).Events {
			arrived := must(event.AsEventMessage())
			last = arrived.Id
			if arrived.Type == parley.EventMessageTypeMessage && arrived.Message.Id == sent.Id {
				seen = arrived.Message.Content
			}
		}
	}
	anchor := fmt.Sprint(sent.Id)
	read := func() parley.FoundMessage {
		got := must(client.GetMessagesWithResponse(ctx, &parley.GetMessagesParams{Anchor: &anchor, NumBefore: &zero,
			NumAfter: &zero}))
		messages := answer(got.JSON200, got.Status(), got.Body).Messages
		if len(messages) != 1 || messages[0].Id != sent.Id {
			panic(fmt.Sprint(messages))
		}
		return messages[0]
	}
	if m := read(); m.Content != seen || seen != "<p>by <em>Go</em></p>" {
		panic(seen + " " + m.Content)
	}

	text := "edited"
	edited := must(client.PatchMessagesMessageIdWithFormdataBodyWithResponse(ctx, sent.Id,
		parley.PatchMessagesMessageIdFormdataRequestBody{Content: &text}))
	answer(edited.JSON200, edited.Status(), edited.Body)
	tada := "tada"
	reacted := must(client.PostMessagesMessageIdReactionsWithFormdataBodyWithResponse(ctx, sent.Id,
		parley.PostMessagesMessageIdReactionsFormdataRequestBody{EmojiName: tada}))
	answer(reacted.JSON200, reacted.Status(), reacted.Body)
	if m := read(); m.Content != "<p>edited</p>" || len(m.Reactions) != 1 || m.Reactions[0].EmojiName != tada {
		panic(fmt.Sprint(m))
	}

	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	must(must(form.CreateFormFile("file", "go.txt")).Write([]byte("bytes")))
	if err := form.Close(); err != nil {
		panic(err)
	}
	uploaded := must(client.PostUserUploadsWithBodyWithResponse(ctx, form.FormDataContentType(), &body))
	if got := answer(uploaded.JSON200, uploaded.Status(), uploaded.Body); got.Filename != "go.txt" {
		panic(fmt.Sprint(got))
	}

	none, before := "none", -1
	refused := must(client.GetEventsWithResponse(ctx, &parley.GetEventsParams{QueueId: &none, LastEventId: &before}))
	reason := must(answer(refused.JSON400, refused.Status(), refused.Body).AsErrorBadEventQueueId())
	if reason.Code != parley.ErrorBadEventQueueIdCodeBADEVENTQUEUEID || reason.QueueId != none {
		panic(string(refused.Body))
	}
	fmt.Println("ok")
}
"""

checks = Checks()


def run(*command, cwd=None, seconds=RUN_SECONDS, env=None):
    done = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                          timeout=seconds, env=env)
    assert done.returncode == 0, f"{command[0]} ended with {done.returncode}: {(done.stdout + done.stderr)[-2000:]}"
    return done.stdout


def install(name, *command, **options):
    """Reports whether the packages of a client could be installed."""
    try:
        run(*command, seconds=INSTALL_SECONDS, **options)
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


def alternatives_as_text(description):
    """Writes the description with texts for the parameters that have alternatives, lists and objects, and returns its
    path. The forms of oapi-codegen leave out alternatives, and send lists in brackets instead of JSON. In queries its
    alternatives of values cannot be set. As a text, the caller writes the value as the description of the API says."""
    with open(description) as f:
        document = json.load(f)

    def plain(schema):
        whole = schema.get("oneOf") or schema.get("anyOf") or schema.get("type") in ("array", "object")
        return {"type": "string", "description": schema.get("description", "")} if whole else schema

    for item in document["paths"].values():
        for operation in item.values():
            for parameter in operation.get("parameters", []):
                if parameter["in"] == "query" and "schema" in parameter:
                    parameter["schema"] = plain(parameter["schema"])
            forms = operation.get("requestBody", {}).get("content", {}).get("application/x-www-form-urlencoded", {})
            properties = forms.get("schema", {}).get("properties", {})
            for name in properties:
                properties[name] = plain(properties[name])
    path = os.path.join(HOME, "texts.json")
    write(path, json.dumps(document))
    return path


def go_client(description, *arguments):
    if not shutil.which("go"):
        print("skipped: the packages for Go cannot be installed: there is no go")
        return
    out, tool = os.path.join(HOME, "go"), os.path.join(HOME, "bin", "oapi-codegen")
    environment = {**os.environ, "GOFLAGS": "-mod=mod", "GOBIN": os.path.dirname(tool), "GOWORK": "off"}
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(os.path.join(out, "parley"))
    write(os.path.join(out, "go.mod"), "module spine\n\ngo 1.24\n")
    if not os.path.exists(tool) and not install("Go", "go", "install", GO, env=environment):
        return
    if not install("Go", "go", "get", GO_RUNTIME, cwd=out, env=environment):
        return
    with checks.that("a Go client is generated, compiles and works"):
        run(tool, "-generate", "types,client", "-package", "parley", "-o", os.path.join(out, "parley", "client.go"),
            alternatives_as_text(description))
        write(os.path.join(out, "spine.go"), GO_SPINE.lstrip())
        run("go", "build", "-o", "spine", ".", cwd=out, env=environment)
        assert run(os.path.join(out, "spine"), *arguments, cwd=out) == "ok\n"


def main():
    os.makedirs(HOME, exist_ok=True)
    server = Server("--rate-limit", "0")
    who = server.people()[0]
    description = os.path.join(HOME, "openapi.json")
    write(description, server.raw("GET", "/api/openapi.json")[1].decode())
    python_client(description, server.site, who["email"], who["key"])
    typescript_client(description, server.site, who["email"], who["key"])
    go_client(description, server.site, who["email"], who["key"])


if __name__ == "__main__":
    main()
    if not checks.passed and not checks.failed:
        print("0 passed, 0 failed")  # all were skipped
        sys.exit(0)
    checks.summary()
