"""Repeats the start of the terminal client, call by call and in its order, and checks the fields that it needs."""
import requests
from harness import Checks, Server, eventually, ok, recorder, refused

checks = Checks()
server = Server()
people = server.people()
owner = people[0]
member = next(p for p in people if p["me"]["role"] == 400 and not p["me"]["is_bot"])
AGENT = "ZulipTerminal/0.7.0+git conform"

# Objects to display: a channel, a muted topic, an unread direct message, a reaction.
channel = unread = group = spoken = nameless = None
with checks.that("set-up: a channel, messages, a muted topic, a reaction"):
    ok(server.call("POST", "users/me/subscriptions", owner, subscriptions=[{"name": "terminal"}],
                   principals=[p["me"]["user_id"] for p in (owner, member)]))
    channel = server.channel(owner, "terminal")
    unread = ok(server.call("POST", "messages", owner, type="private", to=[member["me"]["user_id"]], content="unread"))["id"]
    three = [member["me"]["user_id"], people[1]["me"]["user_id"]]
    group = ok(server.call("POST", "messages", owner, type="private", to=three, content="to three"))["id"]
    spoken = ok(server.call("POST", "messages", owner, type="stream", to="terminal", topic="t", content="spoken"))["id"]
    nameless = ok(server.call("POST", "messages", owner, type="stream", to="terminal", topic="", content="no topic"))["id"]
    ok(server.call("POST", "user_topics", member, stream_id=channel, topic="quiet", visibility_policy=1))
    ok(server.call("POST", f"messages/{spoken}/reactions", member, emoji_name="tada"))

session = requests.Session()
session.auth = (member["email"], member["key"])
session.headers["User-Agent"] = AGENT
session.hooks["response"].append(recorder)
TIMEOUT = 60


def get(path, **params):
    return session.get(f"{server.site}/api/v1/{path}", params=params, timeout=TIMEOUT)


def post(path, **form):
    return session.post(f"{server.site}/api/v1/{path}", data=form, timeout=TIMEOUT)


def has(where, names, null=()):
    gone = [n for n in names.split() if n not in where]
    nulls = [n for n in names.split() if n in where and where[n] is None and n not in null]
    assert not gone and not nulls, f"missing {gone}, null {nulls}"


with checks.that("login reads server_settings without credentials and continues at realm_uri"):
    answer = requests.get(server.site + "/api/v1/server_settings", timeout=TIMEOUT)
    assert answer.status_code == 200
    has(answer.json(), "require_email_format_usernames email_auth_enabled realm_uri realm_url realm_name zulip_version")
    assert answer.json()["realm_uri"].rstrip("/") == server.site, answer.json()["realm_uri"]

with checks.that("a wrong password is a 401 that the login screen can show"):
    answer = requests.post(server.site + "/api/v1/fetch_api_key", data={"username": member["email"], "password": "wrong"}, timeout=TIMEOUT)
    assert answer.status_code == 401 and answer.json()["code"] == "AUTHENTICATION_FAILED", answer.text
    assert answer.json()["msg"] == "Your username or password is incorrect", answer.text

with checks.that("start: server_settings with credentials"):
    assert get("server_settings").status_code == 200

with checks.that("start: the first page of messages, before registering"):
    answer = get("messages", anchor="0", num_before="30", num_after="10", apply_markdown="true",
                 use_first_unread_anchor="true", client_gravatar="true", narrow="[]")
    got = ok(answer.json())
    has(got, "messages anchor found_newest found_oldest")
    for m in got["messages"]:
        has(m, "id type sender_id sender_email sender_full_name timestamp content is_me_message reactions flags subject display_recipient")
        if m["type"] == "stream":
            assert isinstance(m["stream_id"], int)
        else:
            assert all({"id", "email", "full_name"} <= set(p) for p in m["display_recipient"])

register = {}
with checks.that("start: register with the client's own lists"):
    answer = post("register",
                  event_types='["message","update_message","reaction","submessage","subscription","typing","update_message_flags","user_settings","realm_emoji","realm_user"]',
                  fetch_event_types='["realm","presence","subscription","message","starred_messages","update_message_flags","muted_topics","realm_user","realm_user_groups","user_settings","realm_emoji","custom_profile_fields","zulip_version"]',
                  narrow="[]", client_gravatar="true", apply_markdown="true", include_subscribers="true")
    register = ok(answer.json())
    has(register, "queue_id last_event_id max_message_id user_id email full_name zulip_version realm_name presences realm_users"
        " cross_realm_bots subscriptions muted_topics realm_user_groups unread_msgs realm_emoji starred_messages"
        " custom_profile_fields realm_message_retention_days realm_allow_message_editing realm_message_content_edit_limit_seconds"
        " realm_allow_edit_history user_settings", null=("realm_message_content_edit_limit_seconds",))

with checks.that("register: muted_topics are triples with the channel's name"):
    assert [t[:2] for t in register["muted_topics"]] == [["terminal", "quiet"]], register["muted_topics"]
    assert isinstance(register["muted_topics"][0][2], int)

with checks.that("register: users, subscriptions and groups have the fields that the client reads"):
    for u in register["realm_users"] + register["cross_realm_bots"]:
        has(u, "user_id email full_name is_bot role")
    assert register["user_id"] in [u["user_id"] for u in register["realm_users"]]
    for s in register["subscriptions"]:
        has(s, "stream_id name color description pin_to_top is_muted desktop_notifications invite_only subscribers date_created"
            " history_public_to_subscribers rendered_description stream_post_policy")
        assert isinstance(s["desktop_notifications"], bool), "null needs notification_settings_null"
        assert isinstance(s["subscribers"], list)
        assert s["color"].startswith("#") and len(s["color"]) == 7 and s["color"] == s["color"].lower()
    for g in register["realm_user_groups"]:
        has(g, "id name")

with checks.that("register: presences are by email, with aggregated"):
    ok(server.call("POST", "users/me/presence", owner, status="active"))
    again = ok(post("register", event_types='["presence"]').json())
    assert owner["email"] in again["presences"], list(again["presences"])
    for clients in again["presences"].values():
        assert "aggregated" in clients
        for one in clients.values():
            has(one, "status timestamp")

with checks.that("register: unread_msgs has the legacy sender_id and sorted ids"):
    unreads = register["unread_msgs"]
    has(unreads, "count pms streams huddles mentions")
    direct = next(p for p in unreads["pms"] if unread in p["unread_message_ids"])
    assert direct["sender_id"] == direct["other_user_id"] == owner["me"]["user_id"], direct
    assert any(group in h["unread_message_ids"] for h in unreads["huddles"]), unreads["huddles"]
    names = {s["topic"]: s["unread_message_ids"] for s in unreads["streams"] if s["stream_id"] == channel}
    assert names.get("t") == [spoken], names
    assert names.get("general chat") == [nameless], f"an empty topic must have its display name here: {names}"

with checks.that("start: presence in the legacy form"):
    got = ok(post("users/me/presence", status="active", new_user_input="true").json())
    assert all("@" in email for email in got["presences"]), list(got["presences"])

last = register.get("last_event_id", -1)


def poll():
    global last
    got = ok(get("events", queue_id=register["queue_id"], last_event_id=last, dont_block="true").json())["events"]
    for event in got:
        assert event["id"] > last, f"event id {event['id']} after {last}"
        last = event["id"]
    return [e for e in got if e["type"] != "heartbeat"]


def heard(kind, fits=lambda event: True):
    """Waits for the next event of a type."""
    return eventually(f"an event {kind}", lambda: next((e for e in poll() if e["type"] == kind and fits(e)), None))


with checks.that("events: message, in HTML, with the display name for an empty topic"):
    ok(server.call("POST", "messages", owner, type="stream", to="terminal", topic="", content="*hi*"))
    event = heard("message")
    assert event["message"]["content"] == "<p><em>hi</em></p>" and event["message"]["subject"] == "general chat", event
    assert event["flags"] == [] and "flags" not in event["message"]

with checks.that("sending as the client does: plain channel name, subject, read_by_sender"):
    sent = ok(post("messages", type="stream", to="terminal", subject="from the terminal", content="x", read_by_sender="true").json())["id"]
    event = heard("message")
    assert "read" in event["flags"], event["flags"]
    ok(post("messages", type="private", to=f'[{owner["me"]["user_id"]}]', content="y", read_by_sender="true").json())

with checks.that("legacy narrows"):
    for narrow, want in (('[["stream","terminal"],["topic","t"]]', {spoken}),
                         (f'[["pm-with","{owner["email"]}"]]', {unread}),
                         ('[["is","private"]]', {unread, group}),
                         ('[["stream","terminal"],["topic","general chat"]]', {nameless})):
        got = ok(get("messages", anchor="10000000000000000", num_before="30", num_after="10", apply_markdown="true",
                     use_first_unread_anchor="false", client_gravatar="true", narrow=narrow).json())
        assert want <= {m["id"] for m in got["messages"]}, f"{narrow}: {[m['id'] for m in got['messages']]}"

with checks.that("flags: op, operation, all and messages on add and remove"):
    for op in ("add", "remove"):
        ok(post("messages/flags", messages=f"[{spoken}]", op=op, flag="starred").json())
        event = heard("update_message_flags")
        has(event, "op operation flag messages all")
        assert event["op"] == event["operation"] == op and event["messages"] == [spoken]

with checks.that("reactions both ways, with code and type"):
    form = dict(emoji_name="heart", emoji_code="2764", reaction_type="unicode_emoji", message_id=str(spoken))
    ok(post(f"messages/{spoken}/reactions", **form).json())
    event = heard("reaction")
    assert event["user_id"] == member["me"]["user_id"] and event["op"] == "add"
    answer = session.delete(f"{server.site}/api/v1/messages/{spoken}/reactions", data=form, timeout=TIMEOUT)
    ok(answer.json())

with checks.that("edit, history, topics, a channel's email address behind a double slash"):
    ok(session.patch(f"{server.site}/api/v1/messages/{sent}", data={"content": "edited"}, timeout=TIMEOUT).json())
    event = heard("update_message")
    has(event, "message_id message_ids rendered_content is_me_message edit_timestamp")
    assert ok(get(f"messages/{sent}").json())["raw_content"] == "edited"
    ok(get(f"messages/{sent}/history").json())
    assert "from the terminal" in [t["name"] for t in ok(get(f"users/me/{channel}/topics").json())["topics"]]
    ok(get(f"/streams/{channel}/email_address").json())

with checks.that("typing, without a type"):
    ok(post("typing", to=f'[{owner["me"]["user_id"]}]', op="start").json())
    ok(server.call("POST", "typing", owner, to=[member["me"]["user_id"]], op="start"))
    event = heard("typing", lambda e: e["sender"]["user_id"] == owner["me"]["user_id"])
    assert event["sender"]["email"] == owner["email"]

with checks.that("subscription properties arrive in the legacy and the new form"):
    ok(post("users/me/subscriptions/properties", subscription_data=f'[{{"stream_id":{channel},"property":"is_muted","value":true}}]').json())
    got = []
    eventually("two updates", lambda: got.extend((e["property"], e["value"]) for e in poll() if e["type"] == "subscription") or len(got) >= 2)
    assert got == [("in_home_view", False), ("is_muted", True)], got

with checks.that("a deleted queue is reported"):
    answer = get("events", queue_id="00000000-0000-4000-8000-000000000000", last_event_id=-1, dont_block="true")
    assert answer.status_code == 400
    refused(answer.json(), "BAD_EVENT_QUEUE_ID")
    assert answer.json()["queue_id"] == "00000000-0000-4000-8000-000000000000"

checks.summary()
