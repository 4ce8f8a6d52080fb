"""Creates, changes and deletes objects of every kind with the official Python package."""
import io
import json
import time

import zulip
from harness import Checks, Server, eventually, ok, recorder, refused

checks = Checks()
server = Server()
people = server.people()
owner = people[0]
member = next(p for p in people if p["me"]["role"] == 400 and not p["me"]["is_bot"])
ann_id, bo_id = owner["me"]["user_id"], member["me"]["user_id"]


def client(who):
    c = zulip.Client(email=who["email"], api_key=who["key"], site=server.site)
    c.session.hooks["response"].append(recorder)
    return c


ann, bo = client(owner), client(member)


def call(c, method, url, **request):
    return c.call_endpoint(url=url, method=method, request=request)


def send(c, topic, content, channel="talk"):
    return ok(c.send_message({"type": "stream", "to": channel, "topic": topic, "content": content}))["id"]


def narrow(*terms):
    return [{"operator": a, "operand": b} for a, b in terms]


def found(c, *terms):
    got = ok(c.get_messages({"anchor": "newest", "num_before": 100, "num_after": 0, "narrow": narrow(*terms)}))
    return [m["id"] for m in got["messages"]]


def topic_of(c, message):
    return ok(c.call_endpoint(url=f"messages/{message}", method="GET"))["message"]["subject"]


ok(ann.add_subscriptions([{"name": "talk"}, {"name": "other"}], principals=[ann_id, bo_id]))
talk, other = (ok(ann.get_stream_id(n))["stream_id"] for n in ("talk", "other"))

with checks.that("messages to a channel by name, ID and list, and to users by address, ID, list, and to oneself"):
    for to in ("talk", talk, ["talk"]):
        ok(ann.send_message({"type": "stream", "to": to, "topic": "forms", "content": str(to)}))
    assert len(found(bo, ("channel", talk), ("topic", "forms"))) == 3
    ok(ann.send_message({"type": "channel", "to": "talk", "topic": "forms", "content": "by its new name"}))
    for to in (member["email"], [member["email"]], [bo_id], [bo_id, ann_id]):
        ok(ann.send_message({"type": "direct", "to": to, "content": f"to {to}"}))
    assert len(found(bo, ("dm", [ann_id]))) >= 4
    ok(ann.send_message({"type": "private", "to": [ann_id], "content": "to myself"}))

with checks.that("impossible messages are refused as the client expects"):
    refused(ann.send_message({"type": "stream", "to": "talk", "topic": "forms", "content": " "}), "BAD_REQUEST", text="Message must not be empty")
    refused(ann.send_message({"type": "direct", "to": [99999], "content": "c"}), "BAD_REQUEST", text="Invalid user ID")
    refused(ann.send_message({"type": "direct", "to": ["nobody@example.net"], "content": "c"}), "BAD_REQUEST")
    refused(ann.send_message({"type": "pigeon", "to": "talk", "content": "c"}), "BAD_REQUEST")
    refused(ann.send_message({"type": "stream", "to": 99999, "topic": "t", "content": "c"}), "STREAM_DOES_NOT_EXIST")

with checks.that("one message moves, then the later ones, then all, and between channels"):
    first, second, third = (send(ann, "moving", w) for w in ("one", "two", "three"))
    ok(ann.update_message({"message_id": second, "topic": "one moved", "propagate_mode": "change_one"}))
    assert [topic_of(bo, m) for m in (first, second, third)] == ["moving", "one moved", "moving"]
    fourth = send(ann, "moving", "four")
    ok(ann.update_message({"message_id": third, "topic": "later moved", "propagate_mode": "change_later"}))
    assert [topic_of(bo, m) for m in (first, third, fourth)] == ["moving", "later moved", "later moved"]
    ok(ann.update_message({"message_id": fourth, "topic": "all moved", "propagate_mode": "change_all"}))
    assert [topic_of(bo, m) for m in (third, fourth)] == ["all moved", "all moved"]
    ok(ann.update_message({"message_id": fourth, "stream_id": other, "propagate_mode": "change_all"}))
    assert {third, fourth} <= set(found(bo, ("channel", other), ("topic", "all moved")))
    history = ok(ann.get_message_history(fourth))["message_history"]
    assert history[-1]["stream"] == other and history[-1]["prev_stream"] == talk, history

with checks.that("a topic is resolved and unresolved"):
    asked = send(bo, "question", "how?")
    ok(bo.update_message({"message_id": asked, "topic": "✔ question", "propagate_mode": "change_all"}))
    assert topic_of(ann, asked) == "✔ question" and asked in found(ann, ("is", "resolved"))
    ok(bo.update_message({"message_id": asked, "topic": "question", "propagate_mode": "change_all"}))
    assert topic_of(ann, asked) == "question"

with checks.that("a message and a whole topic are deleted"):
    gone = send(ann, "deleted", "soon gone")
    refused(bo.delete_message(gone), "BAD_REQUEST", text="permission to delete")
    ok(ann.delete_message(gone))
    refused(ann.delete_message(gone), "BAD_REQUEST", text="Invalid message(s)")
    rest = [send(ann, "deleted", str(n)) for n in range(3)]
    got = ok(call(ann, "POST", f"streams/{talk}/delete_topic", topic_name="deleted"))
    assert got["complete"] and not set(rest) & set(found(ann, ("channel", talk)))

with checks.that("a poll takes votes"):
    poll = send(ann, "polls", "/poll Lunch?\nyes\nno")
    vote = {"type": "vote", "key": "canned,0", "vote": 1}
    ok(call(bo, "POST", "submessage", message_id=poll, msg_type="widget", content=json.dumps(vote)))
    subs = ok(call(ann, "GET", f"messages/{poll}"))["message"]["submessages"]
    assert json.loads(subs[0]["content"])["extra_data"]["options"] == ["yes", "no"] and json.loads(subs[1]["content"]) == vote, subs
    refused(call(bo, "POST", "submessage", message_id=poll, msg_type="widget", content="{"), "BAD_REQUEST")

with checks.that("flags: by ids and by narrow, and read receipts"):
    ids = [send(ann, "flags", str(n)) for n in range(4)]
    ok(bo.update_message_flags({"messages": ids[:1], "op": "add", "flag": "read"}))
    got = ok(call(bo, "POST", "messages/flags/narrow", anchor="newest", num_before=100, num_after=0, op="add", flag="read",
                  narrow=narrow(("channel", talk), ("topic", "flags"), ("is", "unread"))))
    assert got["updated_count"] == 3 and got["found_newest"], got
    assert ok(call(ann, "GET", f"messages/{ids[2]}/read_receipts"))["user_ids"] == [bo_id]
    ok(bo.update_message_flags({"messages": ids, "op": "add", "flag": "starred"}))
    assert set(ids) <= set(found(bo, ("is", "starred")))
    refused(bo.update_message_flags({"messages": ids, "op": "add", "flag": "mentioned"}), "BAD_REQUEST")

with checks.that("matches_narrow, and a search with highlighted matches"):
    needle = send(ann, "search", "a needle in hay")
    got = ok(call(bo, "GET", "messages/matches_narrow", msg_ids=[needle, ids[0]], narrow=narrow(("search", "needle"))))["messages"]
    assert list(got) == [str(needle)] and "highlight" in got[str(needle)]["match_content"], got
    # The index may be updated a moment later.
    hit = eventually("the search", lambda: [m for m in ok(bo.get_messages({"anchor": "newest", "num_before": 10, "num_after": 0, "narrow": narrow(("search", "needle"))}))["messages"] if m["id"] == needle])
    assert '<span class="highlight">needle</span>' in hit[0]["match_content"], hit

with checks.that("a file is uploaded, listed, available by a temporary link without login, and deleted"):
    file = io.BytesIO(b"in a conversation")
    file.name = "conversation.txt"
    uri = ok(ann.upload_file(file))["url"]
    send(ann, "files", f"[file]({uri})")
    mine = [f for f in ok(ann.get_attachments())["attachments"] if "/user_uploads/" + f["path_id"] == uri]
    assert len(mine) == 1 and len(mine[0]["message_ids"]) == 1, mine
    link = ok(call(ann, "GET", uri.lstrip("/")))["url"]
    status, body, _ = server.raw("GET", link.removeprefix(server.site))
    assert status == 200 and body == b"in a conversation", (status, link)
    ok(call(ann, "DELETE", f"attachments/{mine[0]['id']}"))
    refused(call(ann, "DELETE", f"attachments/{mine[0]['id']}"), "BAD_REQUEST", text="Invalid attachment")

with checks.that("a message is scheduled, rescheduled and canceled"):
    at = int(time.time()) + 3600
    later = ok(call(ann, "POST", "scheduled_messages", type="stream", to=talk, topic="later", content="later", scheduled_delivery_timestamp=at))["scheduled_message_id"]
    ok(call(ann, "PATCH", f"scheduled_messages/{later}", scheduled_delivery_timestamp=at + 60, content="even later"))
    listed = ok(call(ann, "GET", "scheduled_messages"))["scheduled_messages"]
    assert [(m["content"], m["scheduled_delivery_timestamp"]) for m in listed] == [("even later", at + 60)], listed
    refused(call(ann, "POST", "scheduled_messages", type="direct", to=[bo_id], content="c", scheduled_delivery_timestamp=1), "BAD_REQUEST", text="future")
    ok(call(ann, "DELETE", f"scheduled_messages/{later}"))
    refused(call(ann, "DELETE", f"scheduled_messages/{later}"), "BAD_REQUEST")

with checks.that("a draft is saved, changed and deleted"):
    draft = {"type": "stream", "to": [talk], "topic": "draft", "content": "dear all", "timestamp": 1700000000}
    number = ok(call(ann, "POST", "drafts", drafts=[draft]))["ids"][0]
    ok(call(ann, "PATCH", f"drafts/{number}", draft={**draft, "content": "dear everybody"}))
    assert [d["content"] for d in ok(call(ann, "GET", "drafts"))["drafts"]] == ["dear everybody"]
    ok(call(ann, "DELETE", f"drafts/{number}"))
    refused(call(ann, "DELETE", f"drafts/{number}"), "BAD_REQUEST", text="Draft does not exist")

with checks.that("a snippet is saved, changed and deleted"):
    number = ok(call(ann, "POST", "saved_snippets", title="greeting", content="hello"))["saved_snippet_id"]
    ok(call(ann, "PATCH", f"saved_snippets/{number}", content="good morning"))
    assert [s["content"] for s in ok(call(ann, "GET", "saved_snippets"))["saved_snippets"]] == ["good morning"]
    ok(call(ann, "DELETE", f"saved_snippets/{number}"))
    refused(call(ann, "DELETE", f"saved_snippets/{number}"), "BAD_REQUEST", text="Saved snippet does not exist")

with checks.that("a reminder of a message is created and deleted"):
    number = ok(call(bo, "POST", "reminders", message_id=needle, scheduled_delivery_timestamp=at, note="thread it"))["reminder_id"]
    assert [r["reminder_target_message_id"] for r in ok(call(bo, "GET", "reminders"))["reminders"]] == [needle]
    ok(call(bo, "DELETE", f"reminders/{number}"))
    refused(call(bo, "DELETE", f"reminders/{number}"), "BAD_REQUEST")

with checks.that("typing events in channels, direct conversations and edits"):
    queue = ok(bo.register(["typing", "typing_edit_message"], client_capabilities={"stream_typing_notifications": True, "notification_settings_null": True}))
    ok(ann.set_typing_status({"op": "start", "type": "stream", "stream_id": talk, "topic": "typing"}))
    ok(ann.set_typing_status({"op": "stop", "type": "direct", "to": [bo_id]}))
    ok(call(ann, "POST", f"messages/{needle}/typing", op="start"))
    heard = []

    def all_three():
        heard.extend(ok(bo.get_events(queue_id=queue["queue_id"], last_event_id=heard[-1]["id"] if heard else -1, dont_block=True))["events"])
        return len(heard) >= 3

    eventually("typing", all_three)
    assert [(e["type"], e["op"]) for e in heard] == [("typing", "start"), ("typing", "stop"), ("typing_edit_message", "start")], heard

with checks.that("a status, a muted user, alert words and preferences for topics"):
    ok(call(bo, "POST", "users/me/status", status_text="busy", emoji_name="tada"))
    assert ok(call(ann, "GET", f"users/{bo_id}/status"))["status"]["status_text"] == "busy"
    ok(call(ann, "POST", f"users/me/muted_users/{bo_id}"))
    refused(call(ann, "POST", f"users/me/muted_users/{bo_id}"), "BAD_REQUEST", text="User already muted")
    ok(call(ann, "DELETE", f"users/me/muted_users/{bo_id}"))
    refused(call(ann, "DELETE", f"users/me/muted_users/{bo_id}"), "BAD_REQUEST", text="User is not muted")
    assert "octopus" in ok(bo.add_alert_words(["octopus"]))["alert_words"]
    alert = send(ann, "alerts", "an octopus")
    assert alert in found(bo, ("is", "alerted"))
    assert "octopus" not in ok(bo.remove_alert_words(["octopus"]))["alert_words"]
    for policy in (1, 3, 0):
        ok(call(bo, "POST", "user_topics", stream_id=talk, topic="alerts", visibility_policy=policy))
    ok(call(bo, "POST", "user_topics", stream_id=talk, topic="alerts", visibility_policy=3))
    assert alert in found(bo, ("is", "followed"))

with checks.that("errors: no login, unknown endpoint, invalid JSON, a parameter of the wrong type"):
    stranger = zulip.Client(email=owner["email"], api_key="wrong" * 6 + "xx", site=server.site)
    refused(stranger.get_profile(), "UNAUTHORIZED")
    refused(call(ann, "POST", "drafts", drafts="{"), "BAD_REQUEST")
    refused(call(ann, "GET", "messages", anchor="sideways", num_before=1, num_after=1), "BAD_REQUEST", text="anchor")
    refused(call(ann, "GET", "messages/999999"), "BAD_REQUEST", text="Invalid message(s)")
    assert call(ann, "GET", "no/such/thing")["result"] in ("error", "http-error")

checks.summary()
