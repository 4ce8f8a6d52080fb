"""Replays recorded conversations with the reference server against Parley.

The folder transcripts of the shared fixtures has the requests of people of all roles, the answers of the reference
server and the events of six queues. This script brings a new server to the same state, sends the same requests in the
same order, and compares answers and events. transcript_differences.json lists the accepted differences and their
reasons; every other difference fails the check. Without the folder the check is skipped.

Options: see report in accepted.py.
"""
import base64
import glob
import hashlib
import json
import os
import re
import subprocess
import sys
import time
import urllib.parse
import uuid

from accepted import Accepted, report
from harness import ROOT, Server, ok
from transcript_compare import VALUE, Comparer, Difference

FOLDER = os.path.join(os.environ.get("PARLEY_SHARED", os.path.join(ROOT, "..", "shared")), "fixtures", "transcripts")
ACCEPTED = "transcript_differences.json"
LATE_SECONDS = 1.0  # the reference's events were collected for at most 1 s after a step
QUIET_SECONDS = 0.02  # unexpected events usually come with the answer
SYMBOL = re.compile(r"<(\w):([^<>]*)>")


class Replay:
    def __init__(self, server, folder):
        self.server = server
        self.steps, self.header = load(folder)
        self.before = json.load(open(os.path.join(folder, "state-before.json"), encoding="utf-8"))
        self.shift = int(time.time()) - self.header["recorded_at"]
        self.people = {}
        self.saved = {}  # (kind, name) to the value of Parley
        host = self.header["host"]
        self.compare = Comparer(["http://" + host, host, "http://127.0.0.1:9991"],
                                [server.site, f"127.0.0.1:{server.port}"])
        self.queues = {}
        self.differences = []
        self.answers = self.events = 0

    def prepare(self):
        """Brings the demo organization to the recorded state, and learns the IDs that exist at the start."""
        for person in self.server.people():
            self.people[person["email"].split("@")[0]] = person
        ann = self.people["ann"]
        olive = self.people["olive"]
        with open(os.path.join(self.server.dir, "log"), encoding="utf-8") as log:
            key = re.search(r"demo-bot@\S+ .* (\w{32})$", log.read(), re.M)[1]
        bot = self.people["bot"] = {"email": "demo-bot@example.org", "key": key}
        bot["me"] = ok(self.server.call("GET", "users/me", bot))
        ok(self.server.call("PATCH", f"bots/{bot['me']['user_id']}", olive, bot_owner_id=ann["me"]["user_id"]))
        subprocess.run([os.path.join(ROOT, "bin", "parley"), "user", "grant", "--data", os.path.join(self.server.dir, "data"),
                        "--email", "ada@example.org"], check=True, capture_output=True)  # takes the demo's grants away
        ok(self.server.call("PATCH", "realm", olive, name=self.before["realm_name"], default_avatar_source="G",
                            video_chat_provider=self.before["realm_video_chat_provider"]))
        for person in self.people.values():
            if person is not bot:
                ok(self.server.call("DELETE", "users/me/avatar", person))
        for message in self.every_message():
            ok(self.server.call("DELETE", f"messages/{message}", olive))
        for person in self.people.values():
            for topic in ok(self.server.call("POST", "register", person, fetch_event_types=["user_topic"]))["user_topics"]:
                ok(self.server.call("POST", "user_topics", person, stream_id=topic["stream_id"], topic=topic["topic_name"],
                                    visibility_policy=0))
        now = ok(self.server.call("POST", "register", olive, client_capabilities=self.header["capabilities"]))
        emails = {u["email"]: u["user_id"] for u in now["realm_users"]}
        for user in self.header["users"]:
            self.compare.learn("u", user["id"], emails[user["email"]])
            self.saved["u", user["name"]] = emails[user["email"]]
        bots = {u["full_name"]: u["user_id"] for u in now["cross_realm_bots"]}
        for user in self.before["cross_realm_bots"]:
            if user["full_name"] in bots:
                self.compare.learn("u", user["user_id"], bots[user["full_name"]])
                self.saved["u", user["full_name"]] = bots[user["full_name"]]
        for group in now["realm_user_groups"]:
            if group["name"] in self.header["groups"]:
                self.compare.learn("g", self.header["groups"][group["name"]], group["id"])
                self.saved["g", group["name"]] = group["id"]
        for channel in now["streams"]:
            if channel["name"] in self.header["channels"]:
                self.compare.learn("s", self.header["channels"][channel["name"]], channel["stream_id"])
                self.saved["s", channel["name"]] = channel["stream_id"]
        self.differences += self.compare.values(0, "state before", self.before, now)
        for name in self.header["queues_of"]:
            bare = name in self.header["queue_without_capabilities"]
            params = {} if bare else {"client_capabilities": self.header["capabilities"]}
            got = ok(self.server.call("POST", "register", self.people[name], apply_markdown=not bare, slim_presence=True,
                                      client_gravatar=not bare, **params))
            self.queues[name] = [got["queue_id"], got["last_event_id"]]
        self.saved["v", "q"] = self.queues["olive"][0]
        self.saved["v", "q2"] = self.queues["bo"][0]

    def every_message(self):
        """Returns the IDs of all messages that a user can see, newest first."""
        out = set()
        for person in self.people.values():
            got = ok(self.server.call("GET", "messages", person, anchor="newest", num_before=1000, num_after=0))
            out |= {m["id"] for m in got["messages"]}
        return sorted(out, reverse=True)

    def resolve(self, kind, name, otherwise):
        """Returns Parley's value of a symbol, or the recorded one if the symbol was never saved."""
        if (kind, name) in self.saved:
            return self.saved[kind, name]
        found = None
        olive = self.people["olive"]
        if kind == "s":
            for who in ("olive", "ann"):
                listed = self.server.call("GET", "streams", self.people[who], include_all=who == "olive", exclude_archived=False)
                for channel in listed.get("streams", []):
                    if channel["name"] == name:
                        found = channel["stream_id"]
        elif kind == "g":
            for group in ok(self.server.call("GET", "user_groups", olive, include_deactivated_groups=True))["user_groups"]:
                if group["name"] == name:
                    found = group["id"]
        elif kind == "u":
            for user in ok(self.server.call("GET", "users", olive))["members"]:
                if user["full_name"] == name:
                    found = user["user_id"]
        if found is None:
            return otherwise
        self.saved[kind, name] = found
        return found

    def fill(self, value, sent):
        """Replaces symbols in a parameter. sent is the recorded value, for symbols without a value."""
        if isinstance(value, dict):
            return {k: self.fill(v, sent.get(k) if isinstance(sent, dict) else None) for k, v in value.items()}
        if isinstance(value, list):
            rest = sent if isinstance(sent, list) and len(sent) == len(value) else [None] * len(value)
            return [self.fill(v, r) for v, r in zip(value, rest)]
        if not isinstance(value, str):
            return value
        whole = SYMBOL.fullmatch(value)
        if whole:
            return self.resolve(whole[1], whole[2], 999999 if sent is None else sent)
        return SYMBOL.sub(lambda m: str(self.resolve(m[1], m[2], 999999)), value)

    def send(self, step):
        symbolic = step.get("symbolic")
        path, params = step["path"], step.get("params") or {}
        if symbolic:
            path = self.fill(symbolic["path"], None)
            if not path.startswith("/"):
                path = "/api/v1/" + path
            params = {}
            for name, value in symbolic["params"].items():
                filled = self.fill(value, None)
                if name == "scheduled_delivery_timestamp" and filled > 1e9:
                    filled += self.shift
                params[name] = filled if isinstance(filled, str) and filled == value else json.dumps(filled) if not isinstance(filled, str) else filled
        headers = {"User-Agent": "ZulipDiff/1.0"}
        who = step["as"]
        if isinstance(who, list):
            headers["Authorization"] = "Basic " + base64.b64encode(":".join(who).encode()).decode()
        elif who:
            who = self.people[who]
            headers["Authorization"] = "Basic " + base64.b64encode(f"{who['email']}:{who['key']}".encode()).decode()
        path = urllib.parse.quote(path, safe="/?=&%@!:+")
        body = None
        if step.get("files"):
            body, headers["Content-Type"] = multipart(params, step["files"])
        elif step["method"] in ("GET", "OPTIONS"):
            path += "?" + urllib.parse.urlencode(params) if params else ""
        else:
            body = urllib.parse.urlencode(params)
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        return self.server.raw(step["method"], path, body, headers)

    def save(self, step, answer):
        saved = step.get("save")
        if saved:
            value = answer
            for part in saved["field"].split("."):
                value = value[int(part)] if part.isdigit() and isinstance(value, list) else (value or {}).get(part) if isinstance(value, (dict, type(None))) else None
            if value is not None:
                self.saved[saved["kind"], saved["name"]] = value
                recorded = step["answer"]
                for part in saved["field"].split("."):
                    recorded = recorded[int(part)] if part.isdigit() else recorded.get(part)
                if saved["kind"] in "msug" and recorded is not None:
                    self.compare.learn(saved["kind"], recorded, value)
        if step["path"].endswith("api_key/regenerate") and isinstance(answer, dict) and answer.get("api_key") and step["as"] == "fay":
            self.people["fay"]["key"] = answer["api_key"]

    def run(self):
        for step in self.steps:
            if "method" not in step:
                continue
            status, raw, headers = self.send(step)
            try:
                answer = json.loads(raw)
            except ValueError:
                answer = None
            self.save(step, answer)
            if "status" in step:
                self.check_answer(step, status, raw, headers, answer)
            self.check_events(step, step.get("events", {}) if "status" in step else None)

    def check_answer(self, step, status, raw, headers, answer):
        self.answers += 1
        n, place = step["n"], "answer " + step["method"] + " " + template(step)
        found = []
        if status != step["status"]:
            ours = answer.get("msg") if isinstance(answer, dict) else raw[:80].decode("utf-8", "replace")
            theirs = (step.get("answer") or {}).get("msg") if isinstance(step.get("answer"), dict) else None
            found.append(Difference(n, place, "", "status", f"{step['status']} {theirs}", f"{status} {ours}"))
        else:
            if "body_sha256" in step:
                if hashlib.sha256(raw).hexdigest() != step["body_sha256"]:
                    found.append(Difference(n, place, "body", VALUE, step["body_length"], f"{len(raw)} {raw[:60]!r}"))
            elif isinstance(step.get("answer"), dict):
                found += self.compare.values(n, place, step["answer"], answer if isinstance(answer, dict) else {})
            for name, value in (step.get("response_headers") or {}).items():
                if headers.get(name, "") != value:
                    found.append(Difference(n, place, "header " + name, VALUE, value, headers.get(name, "")))
        self.differences += found

    def poll(self):
        out = {}
        for name, queue in self.queues.items():
            got = self.server.call("GET", "events", self.people[name], queue_id=queue[0], last_event_id=queue[1], dont_block=True)
            events = got.get("events", [])
            if events:
                queue[1] = events[-1]["id"]
            out[name] = [e for e in events if e["type"] != "heartbeat"]
        return out

    def check_events(self, step, expected):
        """Collects the events of the step and compares them. expected is None if they were not recorded."""
        if self.ended(step):
            return
        got = self.poll()
        until = time.monotonic() + LATE_SECONDS
        while expected is not None and any(len(got[q]) < len(expected.get(q, [])) for q in self.queues) and time.monotonic() < until:
            time.sleep(QUIET_SECONDS)
            for name, events in self.poll().items():
                got[name] += events
        time.sleep(QUIET_SECONDS / 4)
        for name, events in self.poll().items():
            got[name] += events
        if expected is None:
            return
        for name in self.queues:
            self.events += len(expected.get(name, []))
            self.differences += self.compare.event_lists(step["n"], expected.get(name, []), got[name])

    def ended(self, step):
        """Reports whether the recording of events has ended: the last area works with the queues themselves."""
        return step["area"] == "register_and_queues"


def load(folder):
    steps, header = [], None
    for name in sorted(glob.glob(os.path.join(folder, "*.jsonl"))):
        with open(name, encoding="utf-8") as lines:
            for line in lines:
                entry = json.loads(line)
                if "header" in entry:
                    header = header or entry["header"]
                elif "late_events" not in entry:
                    steps.append(entry)
    return sorted(steps, key=lambda s: s["n"]), header


def template(step):
    """Returns the path of a step with the kind of thing in place of each ID."""
    path = (step.get("symbolic") or {}).get("path") or step["path"]
    path = SYMBOL.sub(lambda m: "{" + {"u": "user", "s": "channel", "m": "message", "g": "group", "v": "saved"}.get(m[1], m[1]) + "}", path)
    return re.sub(r"\b\d{2,}\b", "{id}", path)


def multipart(params, files):
    mark = uuid.uuid4().hex
    parts = [f'Content-Disposition: form-data; name="{k}"\r\n\r\n{v}'.encode() for k, v in params.items()]
    for name, file in files.items():
        head = f'Content-Disposition: form-data; name="{name}"; filename="{file["filename"]}"\r\nContent-Type: {file["content_type"]}\r\n\r\n'
        parts.append(head.encode() + base64.b64decode(file["base64"]))
    body = b"".join(b"--" + mark.encode() + b"\r\n" + p + b"\r\n" for p in parts) + b"--" + mark.encode() + b"--\r\n"
    return body, "multipart/form-data; boundary=" + mark


def main():
    if not os.path.isdir(FOLDER):
        print(f"skipped: {FOLDER} does not exist\n1 passed, 0 failed")
        return 0
    replay = Replay(Server(), FOLDER)
    replay.prepare()
    replay.run()
    failed = report(replay.differences, Accepted(ACCEPTED), f"{replay.answers} answers and {replay.events} events")
    print(f"{replay.answers + replay.events} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
