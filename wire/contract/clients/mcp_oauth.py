"""The official Python client of the Model Context Protocol gets a key by itself: it finds the server by the metadata,
registers, sends the user to the browser, and exchanges the code."""
import asyncio
import html
import os
import re
import subprocess
import urllib.parse

import httpx2
from mcp import ClientSession
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

from harness import ROOT, TIMEOUT_SECONDS, Checks, Server, ok

PASSWORD = "correct-horse-battery-staple"
BACK = "http://127.0.0.1:33418/callback"


def check(checks, what, passed):
    with checks.that(what):
        assert passed


class Storage:
    """What the client keeps."""

    def __init__(self):
        self.tokens = self.client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


class Browser:
    """A user who allows an app some of the rights that it asks for."""

    def __init__(self, server, email, rights):
        self.web = httpx2.Client(base_url=server.site, timeout=TIMEOUT_SECONDS)
        self.email, self.rights, self.answer, self.page = email, rights, None, ""

    @staticmethod
    def field(page, name):
        return html.unescape(re.search(f'name="{name}" value="([^"]*)"', page).group(1))

    def form(self, page, path, **fields):
        return self.web.post(path, data={"csrfmiddlewaretoken": self.field(page, "csrfmiddlewaretoken"), **fields})

    async def open(self, address):
        r = self.web.get(address)
        if r.headers.get("Location", "").startswith("/login/"):
            page = self.web.get(r.headers["Location"]).text
            r = self.form(page, "/accounts/login/", username=self.email, password=PASSWORD, next=self.field(page, "next"))
            r = self.web.get(r.headers["Location"])
        self.page = r.text
        r = self.form(self.page, "/oauth/authorize", request=self.field(self.page, "request"), right=self.rights,
                      lifetime="86400", answer="allow", password=PASSWORD)
        assert r.headers["Location"].startswith(BACK), r.headers
        self.answer = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(r.headers["Location"]).query))

    async def wait(self):
        return AuthorizationCodeResult(code=self.answer["code"], state=self.answer["state"], iss=self.answer["iss"])


async def connect(server, checks, owner, rights, tools):
    """Connects without a key, and checks which tools the session has."""
    storage, browser = Storage(), Browser(server, owner["email"], rights)
    provider = OAuthClientProvider(
        server_url=server.site + "/mcp", storage=storage, redirect_handler=browser.open, callback_handler=browser.wait,
        client_metadata=OAuthClientMetadata(client_name="Conform", redirect_uris=[BACK]))
    name = "+".join(rights)
    async with httpx2.AsyncClient(auth=provider, timeout=TIMEOUT_SECONDS) as web:
        async with streamable_http_client(server.site + "/mcp", http_client=web) as (read, write):
            async with ClientSession(read, write) as session:
                hello = await session.initialize()
                check(checks, f"{name}: the client connects", hello.server_info.name == "parley")
                got = {t.name for t in (await session.list_tools()).tools}
                check(checks, f"{name}: the session has the tools", tools(got))
    check(checks, f"{name}: the page names the app", "Conform" in browser.page)
    check(checks, f"{name}: the key expires", 0 < storage.tokens.expires_in <= 86400)
    check(checks, f"{name}: the key has the rights that the user left", storage.tokens.scope.split() == rights)
    return storage


def main():
    server, checks = Server("--oauth-registration"), Checks()
    owner = server.people()[0]
    subprocess.run([os.path.join(ROOT, "bin", "parley"), "user", "password", "--data", os.path.join(server.dir, "data"),
                    "--email", owner["email"], "--password", PASSWORD, "--keep-keys"], check=True, capture_output=True)
    asyncio.run(connect(server, checks, owner, ["read"], lambda tools: "send_message" not in tools))
    storage = asyncio.run(connect(server, checks, owner, ["read", "send"], lambda tools: "send_message" in tools))
    keys = ok(server.call("GET", "users/me/api_keys", owner, ours=True))["api_keys"]
    check(checks, "the keys are in the user's list", [k["label"] for k in keys] == ["Conform", "Conform"])
    ok(server.call("DELETE", f"users/me/api_keys/{keys[1]['id']}", owner, ours=True))
    head = {"Authorization": "Bearer " + storage.tokens.access_token, "Content-Type": "application/json"}
    status = server.raw("POST", "/mcp", '{"jsonrpc":"2.0","id":1,"method":"ping"}', head)[0]
    check(checks, "a key that the user has revoked is refused", status == 401)
    checks.summary()


if __name__ == "__main__":
    main()
