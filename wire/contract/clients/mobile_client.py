"""Repeats the start of the mobile app, call by call, and checks the fields without which it stays at its loading screen."""
import json
import re

import requests
from harness import Checks, Server, eventually, ok, recorder, refused

checks = Checks()
server = Server()
people = server.people()
owner = people[0]
member = next(p for p in people if p["me"]["role"] == 400 and not p["me"]["is_bot"])
TIMEOUT = 60
CAPABILITIES = ["notification_settings_null", "bulk_message_deletion", "user_avatar_url_field_optional",
                "stream_typing_notifications", "user_settings_object", "include_deactivated_groups",
                "empty_topic_name", "individual_emoji_changes"]

# Fields of a registration that must be present and not null.
REGISTER = """queue_id last_event_id zulip_feature_level zulip_version zulip_merge_base alert_words custom_profile_fields
 max_stream_name_length max_topic_length server_presence_ping_interval_seconds server_presence_offline_threshold_seconds
 muted_users presences realm_emoji realm_user_groups recent_private_conversations subscriptions unread_msgs starred_messages
 streams user_status user_settings user_topics realm_wildcard_mention_policy realm_name realm_waiting_period_threshold
 realm_allow_message_editing realm_enable_read_receipts realm_icon_url realm_presence_disabled realm_default_external_accounts
 max_file_upload_size_mib server_emoji_data_url event_queue_longpoll_timeout_seconds realm_users realm_non_active_users
 cross_realm_bots user_id email full_name saved_snippets channel_folders devices realm_can_delete_any_message_group
 realm_can_delete_own_message_group realm_topics_policy realm_mandatory_topics server_thumbnail_formats
 server_typing_started_expiry_period_milliseconds server_typing_stopped_wait_period_milliseconds
 server_typing_started_wait_period_milliseconds realm_moderation_request_channel_id realm_empty_topic_display_name
 server_report_message_types"""
SERVER_SETTINGS = """authentication_methods external_authentication_methods zulip_feature_level zulip_version zulip_merge_base
 push_notifications_enabled is_incompatible email_auth_enabled require_email_format_usernames realm_uri realm_name realm_icon
 realm_description realm_web_public_access_enabled"""
USER = "user_id email full_name date_joined is_bot role timezone avatar_version"
CHANNEL = "stream_id name description rendered_description date_created invite_only is_web_public history_public_to_subscribers"
GROUP = "id members direct_subgroup_ids name description is_system_group"
MESSAGE = """id type sender_id sender_email sender_full_name sender_realm_str client content content_type timestamp is_me_message
 reactions flags display_recipient"""
MESSAGE_EVENT = MESSAGE.replace("flags", "")
FLAGS = {"read", "starred", "collapsed", "mentioned", "stream_wildcard_mentioned", "topic_wildcard_mentioned",
         "wildcard_mentioned", "has_alert_word", "historical"}


def has(where, names):
    bad = [n for n in names.split() if where.get(n) is None]
    assert not bad, f"missing or null: {bad} in {json.dumps(where)[:300]}"


def group_setting(value):
    assert isinstance(value, int) or set(value) == {"direct_members", "direct_subgroups"}, value


ids = [owner["me"]["user_id"], member["me"]["user_id"]]
channel, older, direct = None, [], None
with checks.that("set-up: a channel, messages, a followed topic, a status"):
    ok(server.call("POST", "users/me/subscriptions", owner, subscriptions=[{"name": "mobile"}], principals=ids))
    channel = server.channel(owner, "mobile")
    older = [ok(server.call("POST", "messages", owner, type="stream", to="mobile", topic="", content=f"older {n}"))["id"] for n in range(3)]
    direct = ok(server.call("POST", "messages", owner, type="direct", to=[ids[1]], content="direct"))["id"]
    ok(server.call("POST", "user_topics", member, stream_id=channel, topic="followed", visibility_policy=3))
    ok(server.call("POST", "users/me/status", owner, status_text="here", emoji_name="car"))
    ok(server.call("POST", "users/me/presence", owner, status="active"))

session = requests.Session()
session.headers["User-Agent"] = "ZulipFlutter/30.0.274+274 (Android 14)"
session.hooks["response"].append(recorder)

with checks.that("server_settings without login"):
    answer = session.get(server.site + "/api/v1/server_settings", timeout=TIMEOUT)
    settings = ok(answer.json())
    has(settings, SERVER_SETTINGS)
    assert settings["zulip_feature_level"] == 494 and settings["realm_uri"] == server.site
    assert isinstance(settings["authentication_methods"].get("ldap", False), bool)
    assert settings["email_auth_enabled"] is True, "the password form would not be shown"

with checks.that("fetch_api_key refuses a wrong password"):
    answer = session.post(server.site + "/api/v1/fetch_api_key", data={"username": member["email"], "password": "x"}, timeout=TIMEOUT)
    assert answer.status_code == 401
    refused(answer.json(), "AUTHENTICATION_FAILED")

with checks.that("register with a wrong key is a 401, on which the app logs out"):
    answer = session.post(server.site + "/api/v1/register", auth=(member["email"], "0" * 32), timeout=TIMEOUT)
    assert answer.status_code == 401 and answer.json()["code"] == "UNAUTHORIZED" and answer.json()["msg"] == "Invalid API key", answer.text
    assert answer.headers["WWW-Authenticate"] == 'Basic realm="zulip"', answer.headers.get("WWW-Authenticate")

session.auth = (member["email"], member["key"])


def call(method, path, **form):
    kind = "params" if method == "GET" else "data"
    return session.request(method, f"{server.site}/api/v1/{path}", timeout=TIMEOUT, **{kind: form})


register = {}
with checks.that("register: every required field is present and not null"):
    answer = call("POST", "register", apply_markdown="true", client_gravatar="false", slim_presence="true",
                  idle_queue_timeout='"mobile"', client_capabilities=json.dumps({name: True for name in CAPABILITIES}))
    assert answer.status_code == 200, answer.text[:300]
    register = ok(answer.json())
    has(register, REGISTER)
    assert "ignored_parameters_unsupported" not in register, register["ignored_parameters_unsupported"]

with checks.that("register: the queue expires after 12 hours without polls"):
    assert register["idle_queue_timeout_secs"] == 43200, register["idle_queue_timeout_secs"]

with checks.that("register: users"):
    everyone = register["realm_users"] + register["realm_non_active_users"] + register["cross_realm_bots"]
    for user in everyone:
        has(user, USER)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?\+00:00", user["date_joined"]), user["date_joined"]
        for key, value in (user.get("profile_data") or {}).items():
            assert key.isdigit() and "value" in value
    assert register["user_id"] in [u["user_id"] for u in register["realm_users"]]
    assert len({u["user_id"] for u in everyone}) == len(everyone), "a user is listed twice"

with checks.that("register: channels and subscriptions"):
    streams = {s["stream_id"] for s in register["streams"]}
    for s in register["streams"] + register["subscriptions"]:
        has(s, CHANNEL)
        for name in ("can_send_message_group", "can_add_subscribers_group", "can_delete_any_message_group",
                     "can_delete_own_message_group", "can_subscribe_group"):
            group_setting(s[name])
        assert s.get("stream_post_policy", 1) in (1, 2, 3, 4)
    for s in register["subscriptions"]:
        has(s, "color pin_to_top is_muted")
        assert re.fullmatch("#[0-9a-f]{6}", s["color"]), s["color"]
        assert s["stream_id"] in streams, "a subscribed channel must be in streams too"
    assert channel in streams

with checks.that("register: groups, emoji, settings, policies"):
    for g in register["realm_user_groups"]:
        has(g, GROUP)
    for key, e in register["realm_emoji"].items():
        has(e, "id name source_url")
        assert e["id"] == key
    has(register["user_settings"], "starred_message_counts display_emoji_reaction_users emojiset presence_enabled")
    assert "twenty_four_hour_time" in register["user_settings"]
    assert register["realm_wildcard_mention_policy"] in (1, 2, 3, 5, 6, 7)
    for f in register["server_thumbnail_formats"]:
        has(f, "name max_width max_height animated format")
    for a in register["realm_default_external_accounts"].values():
        has(a, "name text hint url_pattern")
    for t in register["server_report_message_types"]:
        has(t, "key name")

with checks.that("register: presences are slim, statuses by id"):
    for key, p in register["presences"].items():
        assert key.isdigit(), key
        has(p, "active_timestamp idle_timestamp")
    assert str(ids[0]) in register["presences"]
    assert register["user_status"][str(ids[0])]["status_text"] == "here", register["user_status"]

with checks.that("register: unread messages, sorted, with the topic \"\" as it is"):
    unreads = register["unread_msgs"]
    has(unreads, "count pms streams huddles mentions old_unreads_missing")
    mine = {s["topic"]: s["unread_message_ids"] for s in unreads["streams"] if s["stream_id"] == channel}
    assert mine.get("") == older, mine
    for part in unreads["pms"] + unreads["streams"] + unreads["huddles"]:
        i = part["unread_message_ids"]
        assert i == sorted(set(i)), "not sorted or not distinct"
    assert any(p["other_user_id"] == ids[0] and direct in p["unread_message_ids"] for p in unreads["pms"])
    assert [r["user_ids"] for r in register["recent_private_conversations"]][:1] == [[ids[0]]], register["recent_private_conversations"]

with checks.that("register: user_topics"):
    [topic] = [t for t in register["user_topics"] if t["topic_name"] == "followed"]
    has(topic, "stream_id topic_name last_updated visibility_policy")

with checks.that("the emoji data, without login and cacheable"):
    url = register["server_emoji_data_url"]
    answer = requests.get(url if url.startswith("http") else server.site + url, timeout=TIMEOUT)
    assert answer.status_code == 200, answer.status_code
    names = answer.json()["code_to_names"]
    assert "1f389" in names and "tada" in names["1f389"], "no tada"

with checks.that("register_client_device answers an integer, remove_client_device takes it"):
    device = ok(call("POST", "register_client_device").json())["device_id"]
    assert isinstance(device, int)
    ok(call("POST", "remove_client_device", device_id=str(device)).json())

with checks.that("presence every minute, in the slim form"):
    got = ok(call("POST", "users/me/presence", last_update_id="-1", history_limit_days="90", new_user_input="true", ping_only="false", status='active').json())
    has(got, "presences presence_last_update_id server_timestamp")
    assert all(k.isdigit() for k in got["presences"])

with checks.that("messages: a page of 100 around the first unread"):
    got = ok(call("GET", "messages", narrow=json.dumps([{"operator": "channel", "operand": channel}, {"operator": "topic", "operand": ""}]),
                  anchor="first_unread", num_before="100", num_after="100", allow_empty_topic_name="true", client_gravatar="true", apply_markdown="true").json())
    has(got, "messages anchor found_newest found_oldest found_anchor history_limited")
    assert [m["id"] for m in got["messages"]] == older and got["anchor"] == older[0], got["anchor"]
    for m in got["messages"]:
        has(m, MESSAGE + " stream_id subject")
        assert set(m["flags"]) <= FLAGS and m["type"] == "stream"
    for narrow, want in (([{"operator": "dm", "operand": [ids[0]]}], [direct]),
                         ([{"operator": "with", "operand": older[1]}], None),
                         ([{"operator": "is", "operand": "starred"}], []),
                         ([{"operator": "search", "operand": "direct"}], None)):
        got = ok(call("GET", "messages", narrow=json.dumps(narrow), anchor="newest", num_before="100", num_after="0", allow_empty_topic_name="true").json())
        assert want is None or [m["id"] for m in got["messages"]] == want, f"{narrow}: {[m['id'] for m in got['messages']]}"

last = register.get("last_event_id", -1)


def poll():
    global last
    got = ok(call("GET", "events", queue_id=register["queue_id"], last_event_id=str(last), dont_block="true").json())["events"]
    for event in got:
        assert event["id"] > last
        last = event["id"]
    return got


def heard(kind, op=None):
    """Waits for the next event of a type."""
    return eventually(f"an event {kind} {op or ''}", lambda: next((e for e in poll() if e["type"] == kind and e.get("op") == op), None))


with checks.that("a sent message has its local_id in the sender's queue only"):
    poll()
    sent = ok(call("POST", "messages", type="stream", to=str(channel), topic="", content="from *mobile*",
                   queue_id=register["queue_id"], local_id='"1"', read_by_sender="true").json())["id"]
    event = heard("message")
    has(event["message"], MESSAGE_EVENT)
    assert "local_message_id" in event and event["message"]["id"] == sent, event
    assert "flags" not in event["message"] and set(event["flags"]) <= FLAGS
    assert event["message"]["subject"] == ""

with checks.that("an edit checks the hash of the text that it replaces"):
    answer = call("PATCH", f"messages/{sent}", content="edited", prev_content_sha256="0" * 64)
    assert answer.status_code == 400
    refused(answer.json(), "EXPECTATION_MISMATCH")
    ok(call("PATCH", f"messages/{sent}", content="edited").json())
    event = heard("update_message")
    has(event, "message_id message_ids edit_timestamp orig_content rendered_content")
    assert event["rendering_only"] is False and event["is_me_message"] is False and event["message_id"] in event["message_ids"]
    assert "propagate_mode" not in event, "nothing moved"

with checks.that("a move has the old and the new place"):
    ok(call("PATCH", f"messages/{sent}", topic="moved", propagate_mode="change_one").json())
    event = heard("update_message")
    has(event, "stream_id propagate_mode subject")
    assert event["orig_subject"] == "" and event["subject"] == "moved", event

with checks.that("read and unread flags, with details"):
    ok(call("POST", "messages/flags/narrow", anchor="oldest", num_before="0", num_after="1000", op="add", flag="read",
            narrow=json.dumps([{"operator": "channel", "operand": channel}, {"operator": "is", "operand": "unread"}])).json())
    event = heard("update_message_flags", "add")
    assert set(event["messages"]) >= set(older) and event["flag"] == "read" and event["all"] is False
    ok(call("POST", "messages/flags", messages=json.dumps(older), op="remove", flag="read").json())
    event = heard("update_message_flags", "remove")
    details = event["message_details"][str(older[0])]
    assert details["type"] == "stream" and details["stream_id"] == channel and details["topic"] == "", details

with checks.that("a deletion is one event with message_ids"):
    ok(server.call("PATCH", f"messages/{older[0]}", owner, topic="to delete", propagate_mode="change_all"))
    ok(server.call("POST", f"streams/{channel}/delete_topic", owner, topic_name="to delete"))
    event = heard("delete_message")
    assert set(older) <= set(event["message_ids"]) and event["message_type"] == "stream" and event["topic"] == "to delete", event
    assert "message_id" not in event

with checks.that("typing in a channel, with stream_typing_notifications"):
    ok(server.call("POST", "typing", owner, type="channel", stream_id=channel, topic="", op="start"))
    event = heard("typing", "start")
    assert event["stream_id"] == channel and event["topic"] == "" and event["sender"]["user_id"] == ids[0], event

with checks.that("topics, one message, read receipts, snippets"):
    assert [sorted(t) for t in ok(call("GET", f"users/me/{channel}/topics", allow_empty_topic_name="true").json())["topics"]][:1] == [["max_id", "name"]]
    ok(call("GET", f"messages/{sent}", apply_markdown="true", allow_empty_topic_name="true").json())
    answer = call("GET", "messages/2000000000")
    assert answer.status_code == 400
    refused(answer.json(), "BAD_REQUEST")
    ok(call("GET", f"messages/{sent}/read_receipts").json())
    assert isinstance(ok(call("POST", "saved_snippets", title="t", content="c").json())["saved_snippet_id"], int)

with checks.that("upload, its temporary URL, and the avatar, with the same credentials"):
    got = ok(session.post(server.site + "/api/v1/user_uploads", files={"file": ("a b.txt", b"mobile")}, timeout=TIMEOUT).json())
    has(got, "uri url")
    assert session.get(server.site + got["uri"], timeout=TIMEOUT).content == b"mobile"
    temporary = ok(session.get(server.site + "/api/v1" + got["uri"], timeout=TIMEOUT).json())["url"]
    assert requests.get(server.site + temporary, timeout=TIMEOUT).content == b"mobile"
    answer = session.get(f"{server.site}/avatar/{ids[0]}/medium", timeout=TIMEOUT, allow_redirects=False)
    assert answer.status_code in (200, 302), answer.status_code

checks.summary()
