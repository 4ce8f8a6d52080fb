"""Requests of other services, recorded, each with the message that people expect: sent to a running server, the messages
are read back. At least 95 of 100 must be exactly equal."""
import base64
import json
import os
import pathlib
import urllib.error
import urllib.parse
import urllib.request

from harness import Server, ok

SHARED = pathlib.Path(os.environ.get("PARLEY_SHARED") or pathlib.Path(__file__).parents[4] / "shared")
BOUNDARY = "a-boundary-that-no-payload-has"
server = Server()
owner = server.people()[0]
bot = ok(server.call("POST", "bots", owner, full_name="Webhook cases", short_name="webhook-cases", bot_type=2))
channels = set()


def body(case):
    """The body of a request and its content type."""
    kind, payload = case["payload_kind"], case["payload"]
    form = case["content_type"] or "application/x-www-form-urlencoded"
    if case.get("payload_raw"):
        return case["payload_raw"].encode(), form
    if kind == "json":
        return json.dumps(payload, ensure_ascii=False).encode(), form
    if kind in ("form", "multipart"):
        fields = {k: v for k, v in payload.items() if isinstance(v, str)}
        if kind == "form":
            return urllib.parse.urlencode(fields).encode(), "application/x-www-form-urlencoded"
        parts = [f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n' for k, v in fields.items()]
        return "".join(parts + [f"--{BOUNDARY}--\r\n"]).encode(), f"multipart/form-data; boundary={BOUNDARY}"
    return (payload or "").encode(), form


def newest(count):
    return ok(server.call("GET", "messages", owner, anchor="newest", num_before=count, num_after=0, apply_markdown=False,
                          allow_empty_topic_name=True))["messages"]


def send(case, service):
    """Sends the request of a case; returns the status and the answer. Parameters of addresses are as users type them."""
    params = dict(case["url_params"])
    if case["channel"]:
        params["stream"] = case["channel"]
    raw, content_type = body(case)
    headers = {**case["headers"], "Content-Type": content_type}
    if case["auth"] == "basic":
        headers["Authorization"] = "Basic " + base64.b64encode(f"{bot['email']}:{bot['api_key']}".encode()).decode()
    else:
        params["api_key"] = bot["api_key"]
    query = "&".join(f"{k}={v if '%' in v else urllib.parse.quote(v)}" for k, v in params.items())
    request = urllib.request.Request(f"{server.site}/api/v1/external/{service}?{query}", data=raw, method="POST", headers=headers)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refusal:
        return refusal.code, json.load(refusal)


def subscribe(case):
    name = urllib.parse.unquote(urllib.parse.unquote(case["channel"] or ""))
    if name and name != "nonexistent" and name not in channels:
        channels.add(name)
        ok(server.call("POST", "users/me/subscriptions", owner, subscriptions=[{"name": name}],
                       principals=[bot["email"], owner["email"]]))


def difference(case, service):
    """How the outcome of a case differs from the expected one; None if it does not."""
    subscribe(case)
    before = newest(1)[-1]["id"]
    status, answer = send(case, service)
    sent = [m for m in newest(5) if m["id"] > before and m["sender_email"] == bot["email"]]
    error = case.get("expected_error") or case.get("expected_error_regex") or ""
    want, topic = case.get("expected_message"), case.get("expected_topic")
    if status >= 500:
        return f"status {status}"
    if error or (case.get("expected_status") or 200) >= 400:
        return None if status >= 400 and error in answer["msg"] else f"{status} {answer['msg']}"
    if status != 200:
        return f"{status} {answer['msg']}"
    if case.get("weak") or case["channel"] == "nonexistent":
        return None
    if want is None:
        return f"an unexpected message: {sent[-1]['content']}" if sent else None
    if not sent:
        return "no message"
    if sent[-1]["content"] != want.strip():
        return f"\n--- have\n{sent[-1]['content']}\n--- want\n{want}"
    if topic is not None and not case.get("topic_unchecked") and sent[-1]["subject"] != topic:
        return f"topic {sent[-1]['subject']!r}, expected {topic!r}"
    return None


files = sorted((SHARED / "fixtures" / "webhooks").glob("*.json"))
if not files:
    print("skipped: there are no recorded requests beside the repository")
equal = total = 0
for file in files:
    given = json.loads(file.read_text())
    for case in given["cases"]:
        total += 1
        found = difference(case, given["service"])
        if found is None:
            equal += 1
        else:
            print(f"differs: {case['id']}: {found}")
print(f"{equal} of {total} requests became exactly the expected message")
passed = equal * 100 >= total * 95
print(f"{int(passed)} passed, {int(not passed)} failed")
raise SystemExit(0 if passed else 1)
