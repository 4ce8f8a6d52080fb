"""Tests the official Python package with a real server: common calls, and the event loop of bots."""
import threading
import time

import zulip
from harness import Checks, TIMEOUT_SECONDS, Server, eventually, ok, recorder, refused

checks = Checks()
server = Server()
people = server.people()
owner = people[0]
member = next(p for p in people if p["me"]["role"] == 400 and not p["me"]["is_bot"])


def client(who, name=None):
    c = zulip.Client(email=who["email"], api_key=who["key"], site=server.site, client=name)
    c.session.hooks["response"].append(recorder)
    return c


class Listener:
    """Runs call_on_each_event on a thread of its own. It counts registrations and stores events in order."""

    def __init__(self, who, **kwargs):
        self.client = client(who)
        self.events, self.registrations, self.register_done = [], 0, threading.Event()
        register = self.client.register

        def counted(*args, **more):
            self.registrations += 1
            answer = register(*args, **more)
            self.register_done.set()
            return answer

        self.client.register = counted
        self.thread = threading.Thread(target=self.run, kwargs=kwargs, daemon=True)
        self.thread.start()
        assert self.register_done.wait(TIMEOUT_SECONDS), "the client did not register"

    def run(self, **kwargs):
        self.client.call_on_each_event(self.events.append, **kwargs)

    def contents(self):
        return [e["message"]["content"] for e in list(self.events) if e["type"] == "message"]


a, b = client(owner), client(member)

with checks.that("the client connects and reads the version"):
    assert a.feature_level == 494, a.feature_level
    assert float(a.zulip_version.split("-")[0].split("+")[0]) >= 12, a.zulip_version

with checks.that("add_subscriptions creates a channel and subscribes another"):
    got = ok(a.add_subscriptions([{"name": "python"}], principals=[owner["me"]["user_id"], member["me"]["user_id"]]))
    assert got["subscribed"] and not got["already_subscribed"], got
    again = ok(a.add_subscriptions([{"name": "python"}]))
    assert again["already_subscribed"] and not again["subscribed"], again

with checks.that("get_stream_id and get_subscriptions agree"):
    channel = ok(a.get_stream_id("python"))["stream_id"]
    assert channel in [s["stream_id"] for s in ok(b.get_subscriptions())["subscriptions"]]

with checks.that("call_on_each_event gets a channel message and a direct message"):
    listener = Listener(member, event_types=["message"])
    ok(a.send_message({"type": "stream", "to": "python", "topic": "greetings", "content": "hello *you*"}))
    ok(a.send_message({"type": "private", "to": [member["email"]], "content": "psst"}))
    eventually("two messages", lambda: len(listener.events) >= 2)
    assert listener.contents() == ["hello *you*", "psst"], listener.contents()
    assert listener.events[0]["message"]["display_recipient"] == "python"
    assert [sorted(p) for p in listener.events[1]["message"]["display_recipient"]] == [["email", "full_name", "id", "is_mirror_dummy"]] * 2

with checks.that("send_message to a missing channel is refused"):
    refused(a.send_message({"type": "stream", "to": "nowhere at all", "topic": "t", "content": "c"}), "STREAM_DOES_NOT_EXIST")

with checks.that("get_messages finds them by narrow, newest last"):
    got = ok(b.get_messages({"anchor": "newest", "num_before": 10, "num_after": 0,
                             "narrow": [{"operator": "channel", "operand": "python"}, {"operator": "topic", "operand": "greetings"}]}))
    assert [m["content"] for m in got["messages"]] == ["<p>hello <em>you</em></p>"], got["messages"]
    assert got["found_newest"] and got["found_oldest"]
    message = got["messages"][0]["id"]

with checks.that("update_message changes the text and sends an event"):
    edits = Listener(member, event_types=["update_message"])
    ok(a.update_message({"message_id": message, "content": "hello **all**"}))
    eventually("an edit", lambda: edits.events)
    assert edits.events[0]["content"] == "hello **all**" and edits.events[0]["message_id"] == message
    assert ok(b.get_raw_message(message))["raw_content"] == "hello **all**"
    assert ok(b.get_message_history(message))["message_history"][-1]["content"] == "hello **all**"

with checks.that("a member may not edit a message of another user"):
    refused(b.update_message({"message_id": message, "content": "mine"}), "BAD_REQUEST")

with checks.that("reactions are added and removed"):
    ok(b.add_reaction({"message_id": message, "emoji_name": "tada"}))
    refused(b.add_reaction({"message_id": message, "emoji_name": "tada"}), "REACTION_ALREADY_EXISTS")
    ok(b.remove_reaction({"message_id": message, "emoji_name": "tada"}))
    refused(b.remove_reaction({"message_id": message, "emoji_name": "tada"}), "REACTION_DOES_NOT_EXIST")

with checks.that("update_message_flags stars a message"):
    got = ok(b.update_message_flags({"messages": [message], "op": "add", "flag": "starred"}))
    assert got["messages"] == [message], got

with checks.that("get_members lists everyone with the documented keys"):
    members = ok(b.get_members())["members"]
    assert {p["me"]["user_id"] for p in people} <= {m["user_id"] for m in members}
    assert b.get_profile()["user_id"] == member["me"]["user_id"]
    ok(b.get_user_by_id(owner["me"]["user_id"]))

with checks.that("update_presence and get_user_presence"):
    ok(a.update_presence({"status": "active", "new_user_input": True, "ping_only": False}))
    got = ok(b.get_user_presence(owner["email"]))["presence"]
    assert got["website"]["status"] == "active" and got["aggregated"]["status"] == "active", got
    assert owner["email"] in ok(b.get_realm_presence())["presences"]

with checks.that("render_message"):
    assert ok(a.render_message({"content": "**b**"}))["rendered"] == "<p><strong>b</strong></p>"

with checks.that("the most common calls of bots and scripts"):
    ok(b.get_streams())
    ok(b.get_stream_topics(channel))
    ok(b.get_realm_emoji())
    ok(b.get_realm_linkifiers())
    ok(b.get_alert_words())
    ok(b.get_user_groups())
    ok(b.get_subscribers(stream="python"))
    ok(b.set_typing_status({"op": "start", "to": [owner["me"]["user_id"]]}))
    ok(b.update_subscription_settings([{"stream_id": channel, "property": "pin_to_top", "value": True}]))

with checks.that("upload_file, and reading the file back"):
    import io
    file = io.BytesIO(b"conformance")
    file.name = "conform.txt"
    got = ok(a.upload_file(file))
    assert got["uri"] == got["url"] and got["filename"] == "conform.txt", got
    answer = a.session.get(server.site + got["uri"], timeout=15)
    assert answer.status_code == 200 and answer.content == b"conformance", (answer.status_code, answer.content[:100])

with checks.that("register directly, get_events, deregister"):
    queue = ok(b.register(["message"]))
    assert queue["last_event_id"] == -1, queue
    assert ok(b.get_events(queue_id=queue["queue_id"], last_event_id=-1, dont_block=True))["events"] == []
    ok(b.deregister(queue["queue_id"]))
    refused(b.get_events(queue_id=queue["queue_id"], last_event_id=-1, dont_block=True), "BAD_EVENT_QUEUE_ID")

with checks.that("a complete registration"):
    ok(b.register())

# The event loop of a bot survives kill -9: with one registration, it gets every acknowledged message once and in order.
with checks.that("a bot survives five kill -9 with one registration, without lost or repeated messages"):
    bot = Listener(member, event_types=["message"])
    before, sent, stop = bot.registrations, [], threading.Event()

    def talk():
        n = 0
        while not stop.is_set():
            n += 1
            try:
                # No retries: a repeated send would be delivered twice.
                answer = server.call("POST", "messages", owner, timeout=5, type="stream", to="python", topic="loop", content=f"m{n}")
            except OSError:
                continue
            except Exception as broken:  # the connection broke during an answer
                if type(broken).__module__ == "http.client":
                    continue
                raise
            if answer["result"] == "success":
                sent.append((answer["id"], f"m{n}"))
            time.sleep(0.01)  # limits the rate; a few thousand messages are enough

    sender = threading.Thread(target=talk, daemon=True)
    sender.start()
    for kill in range(5):
        have = len(sent)
        eventually("messages between kills", lambda: len(sent) >= have + 20)
        server.kill()
        server.start()
    have = len(sent)
    eventually("messages after the last kill", lambda: len(sent) >= have + 5)
    stop.set()
    sender.join(TIMEOUT_SECONDS)
    eventually("the last message", lambda: bot.contents() and bot.contents()[-1] == sent[-1][1])
    heard = [e["message"]["id"] for e in bot.events]
    assert bot.registrations == before == 1, f"{bot.registrations} registrations"
    assert len(heard) == len(set(heard)), "a message came twice"
    assert heard == sorted(heard), "messages out of order"
    lost = {i for i, _ in sent} - set(heard)
    assert not lost, f"{len(lost)} of {len(sent)} acknowledged messages lost"
    print(f"     {len(sent)} messages acknowledged, {len(heard)} heard, 5 kills, {bot.registrations} registration")

with checks.that("the same client object still works after the restarts"):
    ok(a.send_message({"type": "stream", "to": "python", "topic": "loop", "content": "still here"}))
    ids = [e["id"] for e in bot.events]
    assert ids == sorted(set(ids)), "event ids do not rise"

checks.summary()
