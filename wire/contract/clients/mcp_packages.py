"""Runs the conformance suite and the inspector of the Model Context Protocol, both from npm, against /mcp.

Both need a newer Node than other scripts, so the npm package node is installed with them. The conformance suite cannot
send a key, and asks for tools and resources of its own example server: a proxy of this script adds the key, and replaces
their names by those of tools and resources that Parley has. Scenarios that fail are listed with their reasons in
mcp_conformance.yml; the suite fails for a scenario that is not listed, and for a listed one that passes."""
import http.client
import http.server
import json
import os
import subprocess
import threading

from harness import ROOT, TIMEOUT_SECONDS, Checks, Server, ok

HERE = os.path.dirname(os.path.realpath(__file__))
MODULES = os.environ["PARLEY_MCP_MODULES"]
NODE = os.path.join(MODULES, "node", "bin", "node")
RUN_SECONDS = 240


def proxy(server, key, names):
    """Returns the address of a proxy that adds a key to each request, and replaces names in it. It shows its own address
    to the server as that of the server."""
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))) 
            for theirs, ours in names.items():
                body = body.replace(f'"{theirs}"'.encode(), f'"{ours}"'.encode())
            own = f":{self.server.server_address[1]}"
            headers = {k: v.replace(own, f":{server.port}") for k, v in self.headers.items()
                       if k.lower() not in ("authorization", "connection", "content-length")}
            upstream = http.client.HTTPConnection("127.0.0.1", server.port, timeout=2 * TIMEOUT_SECONDS)
            try:
                upstream.request(self.command, self.path, body or None, {**headers, "Authorization": "Bearer " + key})
                answer = upstream.getresponse()
                data = answer.read()
            except OSError:  # the server of this script has ended
                self.close_connection = True
                return
            finally:
                upstream.close()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "content-length", "connection", "date", "server"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            try:
                self.wfile.write(data)
            except OSError:  # the client has left
                self.close_connection = True

        do_GET = do_POST = do_DELETE = do_OPTIONS = forward

        def log_message(self, *_):
            pass

    listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listener.daemon_threads = True
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{listener.server_address[1]}/mcp"


def node(*arguments):
    return subprocess.run([NODE, *arguments], stdin=subprocess.DEVNULL, text=True, capture_output=True,
                          timeout=RUN_SECONDS, env={**os.environ, "HOME": os.path.join(ROOT, ".conform")})


def conformance(server, checks, key, channel):
    names = {"test_simple_text": "list_channels", "test_error_handling": "read_message",
             "test://static-text": f"parley://channel/{channel}",
             "test://watched-resource": f"parley://channel/{channel}",
             "test://template/123/data": f"parley://channel/{channel}/topic/123"}
    program = os.path.join(MODULES, "@modelcontextprotocol", "conformance", "dist", "index.js")
    run = node(program, "server", "--url", proxy(server, key, names), "--suite", "all",
               "--expected-failures", os.path.join(HERE, "mcp_conformance.yml"))
    print(run.stdout[run.stdout.rfind("=== SUMMARY"):], end="")
    with checks.that("the conformance suite has only the failures that are listed"):
        assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]


class Inspector:
    def __init__(self, server, key):
        self.server, self.key = server, key

    def run(self, method, *arguments):
        return node(os.path.join(MODULES, ".bin", "mcp-inspector"), "--cli", self.server.site + "/mcp", "--transport",
                    "http", "--header", "Authorization: Bearer " + self.key, "--method", method, *arguments)

    def __call__(self, method, *arguments):
        run = self.run(method, *arguments)
        assert run.returncode == 0, (method, run.returncode, run.stdout[-2000:], run.stderr[-2000:])
        return json.loads(run.stdout)


def inspector(server, checks, whole, writer, channel):
    reads, writes = Inspector(server, whole), Inspector(server, writer)
    with checks.that("inspector: tools and their schemas, without findings of its strict check"):
        names = {t["name"] for t in writes("tools/list", "--strict")["tools"]}
        assert {"read_messages", "send_message"} <= names, names
        assert "send_message" not in {t["name"] for t in reads("tools/list")["tools"]}
    with checks.that("inspector: resources and templates"):
        assert any(r["uri"] == f"parley://channel/{channel}" for r in reads("resources/list")["resources"])
        assert len(reads("resources/templates/list")["resourceTemplates"]) == 3
    with checks.that("inspector: a message is sent, and read as a resource"):
        sent = writes("tools/call", "--tool-name", "send_message", "--tool-arg", f"channel_id={channel}",
                      "topic=inspector", "content=by the inspector")
        assert not sent.get("isError"), sent
        read = reads("resources/read", "--uri", f"parley://channel/{channel}/topic/inspector")
        assert "by the inspector" in read["contents"][0]["text"], read
    with checks.that("inspector: a tool that the key does not allow is refused"):
        run = reads.run("tools/call", "--tool-name", "send_message", "--tool-arg", f"channel_id={channel}",
                        "topic=inspector", "content=refused")
        assert "This tool is off" in run.stdout + run.stderr or "not found" in run.stdout + run.stderr, (run.stdout, run.stderr)
        read = reads("resources/read", "--uri", f"parley://channel/{channel}/topic/inspector")
        assert "refused" not in read["contents"][0]["text"], read
    with checks.that("inspector: a wrong key is refused"):
        run = Inspector(server, "x" * 32).run("tools/list")
        assert run.returncode != 0, run.stdout


def main():
    server, checks = Server("--rate-limit", "0"), Checks()
    owner = server.people()[0]
    channel = server.channel(owner, "general")
    ok(server.call("POST", "messages", owner, type="channel", to=channel, topic="123", content="a message"))
    scope = {"rights": ["read", "send"]}
    writer = ok(server.call("POST", "users/me/api_keys", owner, ours=True, label="inspector", scope=scope))["api_key"]
    conformance(server, checks, owner["key"], channel)
    inspector(server, checks, owner["key"], writer, channel)
    checks.summary()


main()
