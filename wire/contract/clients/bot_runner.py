"""The official bot runner, `zulip-run-bot`, with a bot account: mentions, direct messages, storage, and kill -9."""
import os
import subprocess
import sys
import time

from harness import Checks, Server, eventually, ok, refused

STORAGE_LIMIT = 10_000_000  # characters of the keys and values of a bot

checks = Checks()
server = Server()
people = server.people()
owner = people[0]
bot = {}
runner = None


def replies(after):
    """Returns the messages of the bot after a message."""
    got = ok(server.call("GET", "messages", owner, anchor=str(after), num_before=0, num_after=100, apply_markdown=False,
                         narrow=[{"operator": "sender", "operand": bot["user_id"]}]))
    return [m["content"] for m in got["messages"] if m["id"] > after]


def within_a_second(condition):
    until = time.monotonic() + 1
    while time.monotonic() < until:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    return None


def send(**message):
    return ok(server.call("POST", "messages", owner, **message))["id"]


with checks.that("an owner creates a bot and subscribes it"):
    got = ok(server.call("POST", "bots", owner, full_name="Counter", short_name="counter", bot_type=1))
    bot = {"user_id": got["user_id"], "key": got["api_key"]}
    bot["email"] = ok(server.call("GET", f"users/{bot['user_id']}", owner))["user"]["email"]
    ok(server.call("POST", "users/me/subscriptions", owner, subscriptions=[{"name": "bots at work"}],
                   principals=[owner["me"]["user_id"], bot["user_id"]]))

with checks.that("the storage of a bot: its own, bounded, and the same after kill -9"):
    got = ok(server.call("POST", "bots", owner, full_name="Keeper", short_name="keeper", bot_type=1))
    keeper = {"key": got["api_key"], "email": ok(server.call("GET", f"users/{got['user_id']}", owner))["user"]["email"]}
    ok(server.call("PUT", "bot_storage", keeper, storage={"state": "ä" * 10, "gone": "x"}))
    ok(server.call("DELETE", "bot_storage", keeper, keys=["gone"]))
    for method, parameters in (("GET", {}), ("PUT", {"storage": {"state": "stolen"}}), ("DELETE", {})):
        refused(server.call(method, "bot_storage", owner, **parameters), "PERMISSION_DENIED", text="Must be a bot user")
    assert ok(server.call("GET", "bot_storage", bot))["storage"] == {}, "another bot sees the storage"
    refused(server.call("GET", "bot_storage", keeper, keys=["gone"]), "BAD_REQUEST", text="Key does not exist.")
    refused(server.call("DELETE", "bot_storage", keeper, keys=["state", "gone"]), "BAD_REQUEST", text="Key does not exist.")
    # 15 characters are stored. The new entry alone fits, and both together do not.
    much = server.call("PUT", "bot_storage", keeper, storage={"more": "x" * (STORAGE_LIMIT - 15)})
    refused(much, "BAD_REQUEST", text=f"Request exceeds storage limit by 4 characters. The limit is {STORAGE_LIMIT} characters.")
    ok(server.call("PUT", "bot_storage", keeper, storage={"more": "x" * (STORAGE_LIMIT - 19)}))
    server.kill()
    server.start()
    kept = ok(server.call("GET", "bot_storage", keeper))["storage"]
    assert kept["state"] == "ä" * 10 and set(kept) == {"state", "more"} and len(kept["more"]) == STORAGE_LIMIT - 19, set(kept)
    ok(server.call("DELETE", "bot_storage", keeper))
    assert ok(server.call("GET", "bot_storage", keeper))["storage"] == {}

with checks.that("a command tells a bot nothing of a private channel, and is offered only where it works"):
    service = ok(server.call("POST", "bots", owner, full_name="Deployer", short_name="deployer", bot_type=3,
                             payload_url='"http://127.0.0.1:9/"', interface_type=1))["user_id"]
    ok(server.call("PUT", f"bots/{service}/commands", owner, ours=True, commands=[{"name": "deploy"}]))
    ok(server.call("POST", "users/me/subscriptions", owner, subscriptions=[{"name": "secret plans"}], invite_only=True))
    secret = server.channel(owner, "secret plans")
    public = server.channel(owner, "bots at work")

    def offered(channel):
        listed = ok(server.call("GET", "bot_commands", owner, ours=True, channel_id=channel))["commands"]
        return [c["name"] for c in listed]

    def deliveries():
        return ok(server.call("GET", f"bots/{service}/deliveries", owner, ours=True))["deliveries"]
    assert offered(public) == ["deploy"] and offered(secret) == [], (offered(public), offered(secret))
    refused(server.call("GET", "bot_commands", people[-1], ours=True, channel_id=secret), "BAD_REQUEST")
    hidden = send(type="channel", to=secret, topic="t", content="/deploy secret")
    seen = send(type="channel", to=public, topic="t", content="/deploy public")
    eventually("a call of the service", lambda: [d for d in deliveries() if d["message_id"] == seen])
    assert not [d for d in deliveries() if d["message_id"] == hidden], deliveries()
    ok(server.call("POST", "users/me/subscriptions", owner, subscriptions=[{"name": "secret plans"}], principals=[service]))
    assert offered(secret) == ["deploy"], offered(secret)

if bot:
    config = os.path.join(server.dir, "zuliprc")
    with open(config, "w") as f:
        f.write(f"[api]\nemail={bot['email']}\nkey={bot['key']}\nsite={server.site}\n")
    with open(os.path.join(server.dir, "bot.log"), "ab") as log:
        runner = subprocess.Popen(
            [os.path.join(os.path.dirname(sys.executable), "zulip-run-bot"),
             os.path.join(os.path.dirname(os.path.realpath(__file__)), "bot", "counting.py"), "--config-file", config, "--force"],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        with checks.that("the runner starts, and the bot answers a direct message"):
            def first():
                assert runner.poll() is None, open(os.path.join(server.dir, "bot.log")).read()[-600:]
                # Before the bot has registered it gets no messages: ask again until it answers.
                asked = send(type="private", to=[bot["user_id"]], content="hello")
                return within_a_second(lambda: replies(asked - 1))

            got = eventually("an answer", first)
            assert got[0].endswith(": hello"), got
            # The bot answers in order: with this answer, no late one to an earlier message is missing.
            asked = send(type="private", to=[bot["user_id"]], content="the last")
            eventually("the last answer", lambda: [r for r in replies(asked) if r.endswith(": the last")])

        with checks.that("it answers a mention by name and by id, with the mention cut off"):
            for mention in ("@**Counter**", f"@**Counter|{bot['user_id']}**"):
                asked = send(type="stream", to="bots at work", topic="count", content=f"{mention} me")
                got = eventually("an answer", lambda: replies(asked))
                assert got[0].endswith(": me"), got
                message = ok(server.call("GET", f"messages/{asked}", owner))["message"]
                assert [r["user_id"] for r in message["reactions"]] == [bot["user_id"]], message["reactions"]

        with checks.that("it does not answer other messages"):
            quiet = send(type="stream", to="bots at work", topic="count", content="nothing for a bot")
            asked = send(type="stream", to="bots at work", topic="count", content="@**Counter** and this is")
            eventually("an answer", lambda: replies(asked))
            assert len(replies(quiet)) == 1, replies(quiet)

        with checks.that("it continues to count after kill -9, and answers once"):
            before = int(replies(asked)[0].split(":")[0])
            for n in range(3):
                server.kill()
                server.start()
                asked = send(type="stream", to="bots at work", topic="count", content=f"@**Counter** after {n}")
                got = eventually("an answer", lambda: replies(asked))
                assert got == [f"{before + n + 1}: after {n}"], got
            storage = ok(server.call("GET", "bot_storage", bot))["storage"]
            assert storage["count"] == str(before + 3), storage

        with checks.that("the runner is still the process that was started"):
            assert runner.poll() is None, open(os.path.join(server.dir, "bot.log")).read()[-600:]
    finally:
        runner.terminate()
        try:
            runner.wait(10)
        except subprocess.TimeoutExpired:
            runner.kill()
            runner.wait(10)

checks.summary()
