"""Rules that all clients rely on: encodings of values, shapes, order, heartbeats. It uses plain HTTP only."""
import base64
import json
import re
import threading
import time
import urllib.parse

from harness import Checks, TIMEOUT_SECONDS, Server, eventually, ok, record, refused

checks = Checks()
server = Server()
people = server.people()
owner = people[0]
members = [p for p in people if p["me"]["role"] == 400 and not p["me"]["is_bot"]]
member, other = members[0], members[1]
HEARTBEAT_SECONDS = 85  # clients give up at 90


def credentials(who):
    return "Basic " + base64.b64encode(f"{who['email']}:{who['key']}".encode()).decode()


class Queue:
    def __init__(self, who, **params):
        got = ok(server.call("POST", "register", who, **params))
        self.who, self.id, self.last = who, got["queue_id"], got["last_event_id"]

    def poll(self, block=False, timeout=TIMEOUT_SECONDS):
        got = ok(server.call("GET", "events", self.who, timeout=timeout, queue_id=self.id, last_event_id=self.last, dont_block=not block))
        for event in got["events"]:
            assert event["id"] > self.last, f"event {event['id']} after {self.last}"
            self.last = event["id"]
        return [e for e in got["events"] if e["type"] != "heartbeat"]

    def of(self, kind):
        """Waits for events of a type and returns them."""
        return eventually(f"an event {kind}", lambda: [e for e in self.poll() if e["type"] == kind])


# A poll without events, which stays open during all other checks.
idle = Queue(other, event_types=["alert_words"])
heartbeat = {}


def wait_for_heartbeat():
    began = time.monotonic()
    try:
        got = server.call("GET", "events", other, timeout=HEARTBEAT_SECONDS, queue_id=idle.id, last_event_id=idle.last)
        heartbeat.update(events=got.get("events"), seconds=time.monotonic() - began)
    except OSError as broken:
        heartbeat.update(error=str(broken), seconds=time.monotonic() - began)


heartbeat_thread = threading.Thread(target=wait_for_heartbeat, daemon=True)
heartbeat_thread.start()

listener_queue = Queue(member, client_capabilities={"notification_settings_null": True, "empty_topic_name": True})
channel = None

with checks.that("a new channel is created before its subscription is added"):
    ok(server.call("POST", "users/me/subscriptions", owner, subscriptions=[{"name": "rules"}],
                   principals=[p["me"]["user_id"] for p in (owner, member, other)]))
    got = []
    eventually("the subscription", lambda: got.extend(listener_queue.poll()) or [e for e in got if e["type"] == "subscription"])
    kinds = [f"{e['type']}/{e['op']}" for e in got if e["type"] in ("stream", "subscription")]
    assert kinds[:2] == ["stream/create", "subscription/add"], kinds
    added = next(e for e in got if e["type"] == "subscription")["subscriptions"][0]
    channel = added["stream_id"]
    assert re.fullmatch("#[0-9a-f]{6}", added["color"]), added["color"]

for style in ("rules", '"rules"', '["rules"]', str(channel), f"[{channel}]"):
    with checks.that(f"to={style} is a channel"):
        ok(server.call("POST", "messages", owner, type="stream", to=style, topic="to", content=style))
        message = listener_queue.of("message")[-1]["message"]
        assert message["stream_id"] == channel and message["content"] == style, message

email, number = member["email"], member["me"]["user_id"]
for style in (email, f'["{email}"]', f"[{number}]", f"{email},{other['email']}", f'["{email}","{other["email"]}"]', f"[{number},{other['me']['user_id']}]"):
    with checks.that(f"to={style} are users"):
        ok(server.call("POST", "messages", owner, type="direct", to=style, content=style))
        message = listener_queue.of("message")[-1]["message"]
        assert message["type"] == "private" and message["subject"] == "", message
        wanted = {owner["me"]["user_id"], number} | ({other["me"]["user_id"]} if "," in style else set())
        assert {p["id"] for p in message["display_recipient"]} == wanted, message["display_recipient"]
        assert all(sorted(p) == ["email", "full_name", "id", "is_mirror_dummy"] for p in message["display_recipient"])

with checks.that("type=channel and type=stream are returned as stream; subject and topic are the same parameter"):
    for kind, topic in (("stream", "subject"), ("channel", "topic")):
        ok(server.call("POST", "messages", owner, **{"type": kind, "to": "rules", topic: "same", "content": kind}))
        message = listener_queue.of("message")[-1]["message"]
        assert message["type"] == "stream" and message["subject"] == "same" and message["display_recipient"] == "rules", message

with checks.that("a parameter added by a retrying client is reported as ignored"):
    got = ok(server.call("POST", "messages", owner, type="stream", to="rules", topic="t", content="retried", dont_block=True))
    assert got.get("ignored_parameters_unsupported") == ["dont_block"], got

with checks.that("limits of topic and content, and trimming"):
    refused(server.call("POST", "messages", owner, type="stream", to="rules", topic="t", content="  \n "), "BAD_REQUEST")
    refused(server.call("POST", "messages", owner, type="stream", to="rules", topic="t", content="a\0b"), "BAD_REQUEST")
    listener_queue.poll()
    ok(server.call("POST", "messages", owner, type="stream", to="rules", topic="x" * 80, content="y" * 12000))
    message = listener_queue.of("message")[-1]["message"]
    assert message["subject"] == "x" * 57 + "...", message["subject"]
    assert len(message["content"]) == 10000 and message["content"].endswith("\n[message truncated]"), message["content"][-30:]

with checks.that("a narrow in both forms, anchors as plain text and beyond the end"):
    for narrow in ('[["stream","rules"],["topic","same"]]', '[{"operator":"stream","operand":"rules"},{"operator":"topic","operand":"same","negated":false}]',
                   json.dumps([{"operator": "channel", "operand": channel}, {"operator": "topic", "operand": "SAME"}])):
        for anchor in ("newest", "10000000000000000", "10000000"):
            got = ok(server.call("GET", "messages", member, anchor=anchor, num_before=5, num_after=5, narrow=narrow))
            assert [m["subject"] for m in got["messages"]] == ["same", "same"], (narrow, anchor, got["messages"])
    got = ok(server.call("GET", "messages", member, anchor="oldest", num_before=0, num_after=1, narrow="[]"))
    assert got["found_oldest"] is True and len(got["messages"]) == 1 and "flags" in got["messages"][0]

with checks.that("dm narrows by email addresses, by IDs, and legacy pm-with"):
    for operator, operand in (("dm", [owner["me"]["user_id"]]), ("pm-with", owner["email"]), ("dm", owner["email"]), ("pm-with", f"{owner['email']},{email}")):
        got = ok(server.call("GET", "messages", member, anchor="newest", num_before=50, num_after=0, narrow=[{"operator": operator, "operand": operand}]))
        people_of = [{p["id"] for p in m["display_recipient"]} for m in got["messages"]]
        assert people_of and all(ids == {owner["me"]["user_id"], number} for ids in people_of), (operator, operand, people_of)

with checks.that("a client's name decides whether its own message is read"):
    for agent, read in (("ZulipTerminal/0.7", True), ("ZulipPython/0.9.1", False)):
        body = urllib.parse.urlencode({"type": "stream", "to": "rules", "topic": "read", "content": agent})
        status, raw, _ = server.raw("POST", "/api/v1/messages", body, {
            "Content-Type": "application/x-www-form-urlencoded", "User-Agent": agent,
            "Authorization": credentials(member)})
        record("POST", "/api/v1/messages", status, raw)
        event = listener_queue.of("message")[-1]
        assert ("read" in event["flags"]) is read, (agent, event["flags"])
        assert event["message"]["client"] == agent.split("/")[0], event["message"]["client"]

with checks.that("local_id is returned to the queue of the sender only"):
    second = Queue(member, event_types=["message"])
    ok(server.call("POST", "messages", member, type="stream", to="rules", topic="local", content="x", queue_id=listener_queue.id, local_id="12.01"))
    assert listener_queue.of("message")[-1].get("local_message_id") == "12.01"
    assert "local_message_id" not in second.of("message")[-1]

with checks.that("two polls of one queue: the older one ends without events, the newer one gets them"):
    twice, first = Queue(member, event_types=["message"]), {}
    older = threading.Thread(target=lambda: first.update(events=twice.poll(block=True)), daemon=True)
    older.start()
    newer = Queue.__new__(Queue)
    newer.who, newer.id, newer.last = twice.who, twice.id, twice.last
    second = {}
    # The one that arrives last gets the events. The other one must end.
    younger = threading.Thread(target=lambda: second.update(events=newer.poll(block=True)), daemon=True)
    younger.start()
    eventually("one of them to end", lambda: first or second)
    ok(server.call("POST", "messages", owner, type="stream", to="rules", topic="t", content="for one"))
    older.join(15)
    younger.join(15)
    counts = sorted(len(x.get("events", [None] * 9)) for x in (first, second))
    assert counts == [0, 1], (first, second)

with checks.that("a queue of another user looks like a missing queue"):
    got = refused(server.call("GET", "events", other, queue_id=listener_queue.id, last_event_id=-1, dont_block=True), "BAD_EVENT_QUEUE_ID", 400)
    assert got["queue_id"] == listener_queue.id and got["msg"] == f"Bad event queue ID: {listener_queue.id}", got

with checks.that("an event ID that was never assigned is refused"):
    refused(server.call("GET", "events", member, queue_id=listener_queue.id, last_event_id=listener_queue.last + 1000000, dont_block=True), "BAD_REQUEST", 400)

with checks.that("idle_queue_timeout: seconds, mobile, and the cap"):
    for asked, granted in (("1200", 1200), ("mobile", 43200), ('"mobile"', 43200), ("99999999", 604800), ("0", 600)):
        got = ok(server.call("POST", "register", member, event_types=["message"], idle_queue_timeout=asked))
        assert got["idle_queue_timeout_secs"] == granted, (asked, got["idle_queue_timeout_secs"])

with checks.that("colors in updates have the same form as in lists"):
    ok(server.call("POST", "users/me/subscriptions/properties", member,
                   subscription_data=[{"stream_id": channel, "property": "color", "value": "#C2C2C2"}]))
    event = listener_queue.of("subscription")[-1]
    assert event["property"] == "color" and re.fullmatch("#[0-9a-f]{6}", event["value"]), event

with checks.that("an upload under any field name; a request without file is refused"):
    for field in ("file", "filename", "/home/someone/a b.txt"):
        body = (f'--x\r\nContent-Disposition: form-data; name="{field}"; filename="a b.txt"\r\nContent-Type: text/plain\r\n\r\nbytes\r\n--x--\r\n').encode()
        headers = {"Content-Type": "multipart/form-data; boundary=x",
                   "Authorization": credentials(member)}
        status, raw, _ = server.raw("POST", "/api/v1/user_uploads", body, headers)
        record("POST", "/api/v1/user_uploads", status, raw)
        got = ok(json.loads(raw))
        assert got["uri"] == got["url"] and got["filename"] == "a b.txt" and got["url"].endswith("/a-b.txt"), got
        status, raw, _ = server.raw("GET", got["uri"], headers={"Authorization": headers["Authorization"]})
        assert status == 200 and raw == b"bytes", (status, raw[:80])
        status, raw, _ = server.raw("GET", got["uri"])
        assert status in (302, 401, 403), f"without credentials: {status}"
    refused(server.call("POST", "user_uploads", member), "BAD_REQUEST", 400, "You must specify a file to upload")

with checks.that("email addresses in paths, escaped and not escaped"):
    for path in (email, urllib.parse.quote(email, safe="")):
        assert ok(server.call("GET", f"users/{path}", owner))["user"]["user_id"] == number
    assert ok(server.call("GET", f"users/{number}", owner))["user"]["email"] == email

with checks.that("an idle poll gets a heartbeat in time, with a higher ID"):
    heartbeat_thread.join(HEARTBEAT_SECONDS)
    assert "error" not in heartbeat and heartbeat.get("events"), heartbeat
    [event] = heartbeat["events"]
    assert event["type"] == "heartbeat" and event["id"] > idle.last, event
    assert 20 < heartbeat["seconds"] < HEARTBEAT_SECONDS, f"after {heartbeat['seconds']:.0f} s"
    print(f"     after {heartbeat['seconds']:.1f} s")

checks.summary()
