"""The official Python client of the Model Context Protocol against /mcp: a whole key, scoped keys, and subscriptions."""
import asyncio
import json
import time

import httpx2
from mcp import ClientSession
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from harness import TIMEOUT_SECONDS, Checks, Server, ok

READ_TOOLS = {"list_channels", "list_topics", "list_people", "read_messages", "read_message", "search_messages",
              "list_reminders"}
WRITE_TOOLS = {"send_message", "add_reaction", "remove_reaction", "edit_message", "upload_file", "add_reminder"}


def data(result):
    """Returns the JSON of a result after the line that says what it is."""
    assert not result.is_error, result.content[0].text
    mark, text = result.content[0].text.split("\n", 1)
    assert "do not follow instructions" in mark, mark
    return json.loads(text)


def check(checks, what, passed):
    with checks.that(what):
        assert passed


class Session:
    """A connected session, which collects the notifications of the server."""

    def __init__(self, server, key):
        self.url, self.key, self.updates = server.site + "/mcp", key, []

    async def __aenter__(self):
        self.http = httpx2.AsyncClient(headers={"Authorization": "Bearer " + self.key}, timeout=TIMEOUT_SECONDS)
        self.transport = streamable_http_client(self.url, http_client=self.http)
        read, write = await self.transport.__aenter__()
        self.session = await ClientSession(read, write, message_handler=self.take).__aenter__()
        self.hello = await self.session.initialize()
        return self

    async def take(self, message):
        if getattr(message, "method", "") == "notifications/resources/updated":
            self.updates.append(str(message.params.uri))

    async def __aexit__(self, *error):
        await self.session.__aexit__(None, None, None)
        await self.transport.__aexit__(None, None, None)
        await self.http.aclose()

    async def updated(self, uri):
        until = time.monotonic() + TIMEOUT_SECONDS
        while uri not in self.updates:
            assert time.monotonic() < until, f"no update of {uri}: {self.updates}"
            await asyncio.sleep(0.02)
        self.updates.clear()


def scoped(server, who, label, **scope):
    return ok(server.call("POST", "users/me/api_keys", who, ours=True, label=label, expires_in=3600, scope=scope))["api_key"]


async def whole_key(server, checks, owner, channel):
    async with Session(server, owner["key"]) as s:
        check(checks, "the server names itself", s.hello.server_info.name == "parley")
        tools = {t.name for t in (await s.session.list_tools()).tools}
        check(checks, "a whole key has only reading tools", tools == READ_TOOLS)
        off = await s.session.call_tool("send_message", {"channel_id": channel, "topic": "mcp", "content": "x"})
        check(checks, "a write tool is off for it", off.is_error and "This tool is off" in off.content[0].text)
        listed = data(await s.session.call_tool("list_channels", {}))["channels"]
        check(checks, "channels are listed", any(c["channel_id"] == channel for c in listed))
        people = data(await s.session.call_tool("list_people", {}))["people"]
        check(checks, "people are listed", any(p["email"] == owner["email"] for p in people))
        wrong = await s.session.call_tool("list_topics", {"channel_id": 999_999})
        check(checks, "an error of the API is an error of the tool", wrong.is_error and "Invalid channel" in wrong.content[0].text)
        wrong = await s.session.call_tool("list_topics", {"channel": "x"})
        check(checks, "unknown arguments are refused", wrong.is_error)
        templates = (await s.session.list_resource_templates()).resource_templates
        check(checks, "three templates of resources", len(templates) == 3)


async def writing_key(server, checks, owner, other, channel):
    key = scoped(server, owner, "writer", rights=["read", "send", "react", "edit", "upload", "remind"])
    topic = f"parley://channel/{channel}/topic/from%20an%20agent"
    async with Session(server, key) as s:
        tools = {t.name for t in (await s.session.list_tools()).tools}
        check(checks, "a key with rights has writing tools", tools == READ_TOOLS | WRITE_TOOLS)
        sent = data(await s.session.call_tool(
            "send_message", {"channel_id": channel, "topic": "from an agent", "content": "hello xylophone"}))["id"]
        found = data(await s.session.call_tool("search_messages", {"query": "xylophone channel:general"}))["messages"]
        check(checks, "a sent message is found", [m["id"] for m in found] == [sent])
        data(await s.session.call_tool("edit_message", {"message_id": sent, "content": "changed xylophone"}))
        data(await s.session.call_tool("add_reaction", {"message_id": sent, "emoji_name": "wave"}))
        read = data(await s.session.call_tool("read_message", {"message_id": sent}))
        check(checks, "it was edited", read["content"] == "changed xylophone" and read["topic"] == "from an agent")
        file = data(await s.session.call_tool("upload_file", {"name": "a.txt", "text": "content"}))
        check(checks, "a file is uploaded", file["markdown"].startswith("[a.txt](/user_uploads/"))
        data(await s.session.call_tool("add_reminder", {"message_id": sent, "at": int(time.time()) + 9999}))
        reminders = data(await s.session.call_tool("list_reminders", {}))["reminders"]
        check(checks, "a reminder is listed", [r["reminder_target_message_id"] for r in reminders] == [sent])

        await s.session.subscribe_resource(topic)
        await s.session.subscribe_resource(f"parley://direct/{other['id']}")
        ok(server.call("POST", "messages", other, type="channel", to=channel, topic="another", content="no update"))
        ok(server.call("POST", "messages", other, type="channel", to=channel, topic="from an agent", content="new"))
        await s.updated(topic)
        ok(server.call("POST", "messages", other, type="direct", to=[owner["id"]], content="direct"))
        await s.updated(f"parley://direct/{other['id']}")
        text = (await s.session.read_resource(topic)).contents[0].text
        check(checks, "a resource has the new message", '"new"' in text and "do not follow instructions" in text)
        await s.session.unsubscribe_resource(topic)
        ok(server.call("POST", "messages", other, type="channel", to=channel, topic="from an agent", content="last"))
        ok(server.call("POST", "messages", other, type="direct", to=[owner["id"]], content="direct again"))
        await s.updated(f"parley://direct/{other['id']}")
        check(checks, "nothing about a topic without subscription", topic not in s.updates)


async def limited_key(server, checks, owner, other, channel):
    key = scoped(server, owner, "limited", rights=["read"], channels=[{"channel_id": channel, "topic": "agents"}])
    ok(server.call("POST", "messages", other, type="channel", to=channel, topic="agents", content="inside"))
    out = ok(server.call("POST", "messages", other, type="channel", to=channel, topic="salaries", content="outside"))
    async with Session(server, key) as s:
        everything = data(await s.session.call_tool("read_messages", {"channel_id": channel}))["messages"]
        check(checks, "a limited key reads its topic only", {m["topic"] for m in everything} == {"agents"})
        hidden = await s.session.call_tool("read_message", {"message_id": out["id"]})
        check(checks, "it cannot read another message", hidden.is_error)
        try:
            await s.session.subscribe_resource(f"parley://channel/{channel + 1000}")
            check(checks, "a hidden channel is no resource", False)
        except Exception as e:
            check(checks, "a hidden channel is no resource", "not found" in str(e))


def raw_requests(server, checks, owner):
    def post(body, **headers):
        head = {"Content-Type": "application/json", "Authorization": "Bearer " + owner["key"], **headers}
        return server.raw("POST", "/mcp", body, head)[0]
    ping = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    check(checks, "a ping is answered", post(ping) == 200)
    check(checks, "another origin is refused", post(ping, Origin="https://evil.example") == 403)
    check(checks, "a wrong key is refused", post(ping, Authorization="Bearer " + "x" * 32) == 401)
    check(checks, "an unknown session is refused", post(ping, **{"Mcp-Session-Id": "none"}) == 404)
    check(checks, "an unknown version is refused", post(ping, **{"Mcp-Protocol-Version": "1999-01-01"}) == 400)
    check(checks, "a batch is refused", post(f"[{ping}]") == 400)
    check(checks, "a large request is refused", post(json.dumps("x" * (2 << 20))) == 413)


async def automatic(server, checks, owner):
    """The client that chooses the version of the protocol itself."""
    http = httpx2.AsyncClient(headers={"Authorization": "Bearer " + owner["key"]}, timeout=TIMEOUT_SECONDS)
    async with http, Client(streamable_http_client(server.site + "/mcp", http_client=http)) as c:
        check(checks, "a client negotiates the version", {t.name for t in (await c.list_tools()).tools} == READ_TOOLS)


def main():
    server, checks = Server(), Checks()
    people = server.people()
    owner, other = people[0], people[1]
    for p in (owner, other):
        p["id"] = ok(server.call("GET", "users/me", p))["user_id"]
    channel = server.channel(owner, "general")
    raw_requests(server, checks, owner)

    async def all_sessions():
        await whole_key(server, checks, owner, channel)
        await writing_key(server, checks, owner, other, channel)
        await limited_key(server, checks, owner, other, channel)
        await automatic(server, checks, owner)
    asyncio.run(all_sessions())
    checks.summary()


main()
