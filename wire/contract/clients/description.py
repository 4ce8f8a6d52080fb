"""Runs schemathesis with the server's own API description. It looks for server failures and for answers that the
description forbids.

There are three runs at the same time: as an owner, as a member and without login. SECONDS_EACH is the duration of each.
SEED selects the generated requests. Their number depends on the speed of the machine and is printed."""
import base64
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree

from harness import Checks, Server, ok

HERE = os.path.dirname(os.path.realpath(__file__))
SECONDS = int(os.environ.get("SECONDS_EACH", "30"))
SEED = int(os.environ.get("SEED", "494"))
MARGIN = 60  # further seconds for the start and the last request

# These operations would end a run.
LEFT_OUT = {
    "delete-users-me": "deactivates the account of the run",
    "post-realm-deactivate": "deactivates the organization",
    "post-users-me-api-key-regenerate": "replaces the key of the run",
}

checks = Checks()


def known(server, owner, member):
    """Returns IDs of existing objects, so that calls reach more code than the check for a missing object."""
    users = [u["user_id"] for u in ok(server.call("GET", "users", owner))["members"]]
    channels = [s["stream_id"] for s in ok(server.call("GET", "streams", owner))["streams"]]
    groups = [g["id"] for g in ok(server.call("GET", "user_groups", owner))["user_groups"]]
    messages = [ok(server.call("POST", "messages", who, type="stream", to=channels[0], topic="described", content="one *of* them"))["id"]
                for who in (owner, member) for _ in range(3)]
    queue = ok(server.call("POST", "register", owner, event_types=["message"]))["queue_id"]
    begun = server.raw("POST", "/api/v1/tus", headers={"Tus-Resumable": "1.0.0", "Upload-Length": "100000", "Authorization":
                       "Basic " + base64.b64encode(f"{owner['email']}:{owner['key']}".encode()).decode()})[2]["Location"]
    others = [u for u in users if u not in (owner["me"]["user_id"], member["me"]["user_id"])]
    return {"user_id": others, "user_id_or_email": others, "bot_id": others, "muted_user_id": others, "bot_owner_id": users,
            "stream_id": channels, "message_id": messages, "user_group_id": groups, "group_id": groups, "queue_id": [queue],
            "anchor": messages, "draft_id": [1], "to": channels, "stream": ["general"],
            "upload": [begun.rsplit("/", 1)[1]]}


def run(name):
    server = Server("--rate-limit", "0", "--anonymous-rate-limit", "0", "--login-limit", "0", "--daily-invites", "0")
    people = server.people()
    owner = people[0]
    member = next(p for p in people if p["me"]["role"] == 400 and not p["me"]["is_bot"])
    who = {"owner": owner, "member": member, "visitor": None}[name]
    report = os.path.join(server.dir, "report.xml")
    command = [os.path.join(os.path.dirname(sys.executable), "st"), "run", server.site + "/api/openapi.json",
               "--checks", "no_failure,status_code_conformance,content_type_conformance,response_schema_conformance,response_headers_conformance",
               "--phases", "examples,coverage,fuzzing", "--seed", str(SEED), "--max-time", str(SECONDS), "--continue-on-failure", "--no-shrink",
               "--generation-database", "none", "--request-timeout", "20", "--suppress-health-check", "all", "--warnings", "off", "--no-color",
               "--report", "junit", "--report-junit-path", report]
    for operation in LEFT_OUT:
        command += ["--exclude-operation-id", operation]
    if who:
        command += ["--auth", f"{who['email']}:{who['key']}"]
    env = dict(os.environ, PYTHONPATH=HERE, SCHEMATHESIS_HOOKS="description_hooks", PARLEY_KNOWN=json.dumps(known(server, owner, member)))
    began = time.monotonic()
    with checks.that(f"schemathesis as {name} has no findings (seed {SEED})"):
        done = subprocess.run(command, cwd=server.dir, env=env, capture_output=True, text=True, errors="replace", timeout=SECONDS + MARGIN)
        text = re.sub(re.escape(server.dir), "", done.stdout)
        cases = re.search(r"(\d+) generated", text)
        print(f"     {name}: {cases.group(1) if cases else '?'} requests in {time.monotonic() - began:.0f} s")
        if done.returncode != 0:
            print("\n".join(line[:400] for line in text.split("\n")), done.stderr[-2000:])
        assert done.returncode == 0, f"schemathesis ended with {done.returncode}"
        operations = len(xml.etree.ElementTree.parse(report).getroot().findall(".//testcase"))
        assert operations > 150, f"only {operations} operations were called"
    if who:
        with checks.that(f"the credentials of {name} are valid to the end"):
            ok(server.call("GET", "users/me", who))
    server.close()


if __name__ == "__main__":
    for operation, why in LEFT_OUT.items():
        print(f"     not called: {operation}, which {why}")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(run, sys.argv[1:] or ("owner", "member", "visitor")))
    checks.summary()
