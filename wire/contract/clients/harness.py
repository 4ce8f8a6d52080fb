"""Common code of the client scripts: a server for each script, checks that print one line each, and a recording.

A script starts bin/parley on a free port with a temporary data directory. When the script ends, also by an error, the
server is stopped and the directory is removed. Only the standard library is used here.
"""
import atexit
import base64
import http.client
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.parse

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))
READY_SECONDS = 60  # a demo organization starts in well under one second
TIMEOUT_SECONDS = 60  # for everything that happens in the background


def free_port():
    """Returns a port that nothing uses. It is below the ports that the system gives to outgoing connections, so that it
    stays free until a server listens there, and while that server is stopped."""
    while True:
        port = random.randrange(10_000, 30_000)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


class Server:
    def __init__(self, *options):
        self.options = options
        self.dir = tempfile.mkdtemp(prefix="parley-conform-")
        self.port = free_port()
        self.site = f"http://127.0.0.1:{self.port}"
        self.process = None
        atexit.register(self.close)
        self.start()

    def start(self):
        with open(os.path.join(self.dir, "log"), "ab") as log:
            self.process = subprocess.Popen(
                [os.path.join(ROOT, "bin", "parley"), "serve", "--data", os.path.join(self.dir, "data"),
                 "--listen", f"127.0.0.1:{self.port}", "--demo", *self.options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={"PARLEY_DEMO_CONTENT": "false", **os.environ})  # only the messages of the checks
        until = time.monotonic() + READY_SECONDS
        while time.monotonic() < until:
            if self.process.poll() is not None:
                break
            try:
                if self.raw("GET", "/api/v1/server_settings", timeout=2)[0] == 200:
                    return
            except OSError:
                time.sleep(0.02)
        with open(os.path.join(self.dir, "log"), errors="replace") as log:
            raise SystemExit("the server did not answer: " + log.read()[-2000:])

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)

    def close(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(10)
        shutil.rmtree(self.dir, ignore_errors=True)

    def raw(self, method, path, body=None, headers=None, timeout=TIMEOUT_SECONDS):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read(), answer.headers
        finally:
            connection.close()

    def call(self, method, path, who=None, timeout=TIMEOUT_SECONDS, ours=False, **params):
        """Makes one call. Strings are sent as they are, all other values as JSON. The contract lacks endpoints of ours."""
        headers = {"User-Agent": "conform/1"}
        if who:
            headers["Authorization"] = "Basic " + base64.b64encode(f"{who['email']}:{who['key']}".encode()).decode()
        form = urllib.parse.urlencode({k: v if isinstance(v, str) else json.dumps(v) for k, v in params.items()})
        path, body = "/api/v1/" + path, None
        if method == "GET":
            path += "?" + form if form else ""
        else:
            body = form
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        status, raw, _ = self.raw(method, path, body, headers, timeout)
        if not ours:
            record(method, path, status, raw, complete=is_complete(method, path, params))
        try:
            answer = json.loads(raw)
        except ValueError:
            answer = {"result": "not-json", "msg": raw[:200].decode("utf-8", "replace")}
        answer["status"] = status
        return answer

    def channel(self, who, name):
        """Returns the ID of a channel to which who is subscribed."""
        listed = ok(self.call("GET", "users/me/subscriptions", who))["subscriptions"]
        return next(s["stream_id"] for s in listed if s["name"] == name)

    def people(self):
        """Returns the users of the demo organization as {email, key, me}, owners first and guests last."""
        listed = self.call("GET", "dev_list_users")
        out = []
        for user in listed.get("direct_admins", []) + listed.get("direct_users", []):
            got = self.call("POST", "dev_fetch_api_key", username=user["email"])
            if got.get("api_key"):
                who = {"email": got["email"], "key": got["api_key"]}
                who["me"] = self.call("GET", "users/me", who)
                out.append(who)
        if not out:
            raise SystemExit("the demo organization has no users: " + json.dumps(listed)[:300])
        return sorted(out, key=lambda p: p["me"].get("role", 0))


def is_complete(method, path, params):
    """Reports whether a call is a registration whose answer has all fields."""
    return (method == "POST" and path.split("?")[0].endswith("/register")
            and "event_types" not in params and "fetch_event_types" not in params)


_recording = None


def record(method, path, status, raw, complete=False):
    """Adds an answer to the recording, which `go run ./wire/contract/cmd/check` checks."""
    global _recording
    folder = os.environ.get("PARLEY_RECORDING")
    if not folder:
        return
    if _recording is None:
        name = os.path.splitext(os.path.basename(sys.argv[0]))[0]
        _recording = open(os.path.join(folder, name + ".jsonl"), "a", encoding="utf-8")
    try:
        body = json.loads(raw)
    except ValueError:
        body = None if method == "HEAD" else raw[:200].decode("utf-8", "replace") if isinstance(raw, bytes) else raw[:200]
    if body is None:
        return
    line = {"method": method, "path": path, "status": status, "body": body}
    if complete:
        line["complete"] = True
    _recording.write(json.dumps(line) + "\n")
    _recording.flush()


def recorder(response, *args, **kwargs):
    """A response hook of `requests` that records every answer."""
    request = response.request
    body = request.body or ""
    if isinstance(body, bytes):
        body = body.decode("utf-8", "replace")
    sent = dict(urllib.parse.parse_qsl(body))
    record(request.method, request.path_url, response.status_code, response.content,
           complete=is_complete(request.method, request.path_url, sent))


class Checks:
    """Counts passed and failed checks. `with checks.that("…"):` passes unless its body raises."""

    def __init__(self):
        self.passed = self.failed = 0

    def that(self, what):
        return _Check(self, what)

    def summary(self):
        print(f"{self.passed} passed, {self.failed} failed", flush=True)
        sys.exit(1 if self.failed or not self.passed else 0)


class _Check:
    def __init__(self, checks, what):
        self.checks, self.what = checks, what

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is None:
            self.checks.passed += 1
            print(f"ok   {self.what}", flush=True)
            return True
        if not issubclass(kind, Exception):
            return False
        self.checks.failed += 1
        frames = traceback.extract_tb(trace)
        where = next((f for f in reversed(frames) if f.filename != os.path.realpath(__file__)), frames[-1])
        text = str(error) or kind.__name__
        print(f"FAIL {self.what}: {text[:600]} (line {where.lineno})", flush=True)
        return True


def ok(answer):
    """Returns the answer, which must be a success."""
    assert answer.get("result") == "success", json.dumps(answer)[:400]
    return answer


def refused(answer, code, status=None, text=None):
    assert answer.get("result") == "error" and answer.get("code") == code, json.dumps(answer)[:400]
    assert status is None or answer.get("status") == status, f"status {answer.get('status')}, want {status}"
    assert text is None or text in answer["msg"], f"{answer['msg']!r} does not contain {text!r}"
    return answer


def eventually(what, condition):
    """Waits until condition() is true, and returns its value."""
    until = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < until:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"waited {TIMEOUT_SECONDS} s for {what}")
