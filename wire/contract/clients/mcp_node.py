"""Runs mcp_node.js, the official TypeScript client of the Model Context Protocol."""
import os
import subprocess

from harness import ROOT, TIMEOUT_SECONDS, Checks, Server, ok


def main():
    server, checks = Server(), Checks()
    owner = server.people()[0]
    channel = server.channel(owner, "general")
    scope = {"rights": ["read", "send"], "channels": [{"channel_id": channel}]}
    key = ok(server.call("POST", "users/me/api_keys", owner, ours=True, label="node", scope=scope))["api_key"]
    script = os.path.join(ROOT, "wire", "contract", "clients", "mcp_node.js")
    run = subprocess.run(["node", script, server.site + "/mcp", owner["key"], key, str(channel)], text=True,
                         capture_output=True, timeout=2 * TIMEOUT_SECONDS)
    for line in run.stdout.splitlines():
        with checks.that(line.split(" ", 1)[1]):
            assert line.startswith("ok "), line
    with checks.that("four checks ran"):
        assert len(run.stdout.splitlines()) == 4, run.stdout + run.stderr
    checks.summary()


main()
