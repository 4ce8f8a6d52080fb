"""Starts the terminal client itself, release 0.7.0, in a terminal of its own, presses its keys and reads its screen."""
import fcntl
import os
import pty
import select
import shutil
import signal
import struct
import sys
import tempfile
import termios
import time

import pyte
from harness import Checks, Server, eventually, ok

COLUMNS, ROWS = 160, 45
ESCAPE, SEND, ENTER = "\x1b", "\x04", "\r"
SCREEN_SECONDS = 60
QUIET_SECONDS = 0.3  # without a byte, the program waits for a key

checks = Checks()
server = Server()
people = server.people()
owner = people[0]
member = next(p for p in people if p["me"]["role"] == 400 and not p["me"]["is_bot"])
name = member["me"]["full_name"]


class Program:
    """The terminal client of one user, and the screen that it draws."""

    def __init__(self, folder, who):
        rc = os.path.join(folder, "zuliprc")
        with open(rc, "w") as f:
            f.write(f"[api]\nemail={who['email']}\nkey={who['key']}\nsite={server.site}\n")
        os.chmod(rc, 0o600)
        self.screen = pyte.Screen(COLUMNS, ROWS)
        self.stream = pyte.ByteStream(self.screen)
        self.pid, self.end = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.environ.update(HOME=folder, TERM="xterm-256color")
            os.execv(os.path.join(os.path.dirname(sys.executable), "zulip-term"), ["zulip-term", "-c", rc])
        fcntl.ioctl(self.end, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))

    def read(self, seconds):
        """Draws what the program writes, until it is silent for some seconds. Returns whether it wrote anything."""
        wrote = False
        while select.select([self.end], [], [], seconds)[0]:
            try:
                data = os.read(self.end, 65536)
            except OSError:  # the program has ended
                return wrote
            self.stream.feed(data)
            wrote = True
        return wrote

    def text(self):
        return "\n".join(line.rstrip() for line in self.screen.display)

    def wait(self, what, reached, *keys):
        """Presses some keys again and again until the screen is as it should be."""
        until = time.monotonic() + SCREEN_SECONDS
        while not reached():
            assert time.monotonic() < until, f"the screen does not show {what}:\n{self.text()}"
            self.press(*keys)
            self.read(QUIET_SECONDS)

    def shows(self, *texts):
        self.wait(texts, lambda: all(text in self.text() for text in texts))

    def all_messages(self):
        """Opens the view of all messages. The program adds a new message to it only if it comes while the view is shown."""
        self.wait("all messages", lambda: "All messages  Search" in self.text(), ESCAPE, "a")

    def shows_at_end(self, text):
        """Waits for a new message in the view of all messages. A key that comes while the program fetches is lost."""
        self.wait(text, lambda: text in self.text(), ESCAPE, "a", "G")

    def press(self, *keys):
        for key in keys:
            while self.read(QUIET_SECONDS):
                pass
            os.write(self.end, key.encode())

    def close(self):
        try:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        except (OSError, ChildProcessError):
            pass


def newest(who, **of):
    """Returns the newest message that a user can read, in a narrow of a channel and topic if they are given."""
    narrow = [{"operator": k, "operand": v} for k, v in of.items()]
    found = ok(server.call("GET", "messages", who, anchor="newest", num_before=1, num_after=0, narrow=narrow,
                           apply_markdown=False))["messages"]
    return found[-1] if found else {"content": "", "flags": [], "reactions": []}


ok(server.call("POST", "users/me/subscriptions", owner, subscriptions=[{"name": "terminal"}],
               principals=[p["me"]["user_id"] for p in (owner, member)]))
ok(server.call("POST", "mark_all_as_read", member))
ok(server.call("POST", "messages", owner, type="stream", to="terminal", topic="tea", content="the **kettle** is on"))

folder = tempfile.mkdtemp(prefix="parley-terminal-")
program = Program(folder, member)
try:
    with checks.that("it starts and shows the organization, the channels and the users"):
        program.shows(name, "# terminal", "Glad to be here.")
    with checks.that("a message of another user arrives while it runs"):
        program.press("a")  # all messages
        ok(server.call("POST", "messages", owner, type="stream", to="terminal", topic="tea", content="two cups are left"))
        program.shows("two cups are left")
    with checks.that("the next unread topic is opened, and is read then"):
        program.press("n")
        program.shows("terminal: topic narrow", "the kettle is on")
        eventually("the read flag", lambda: "read" in newest(member, channel="terminal")["flags"])
    with checks.that("an answer is sent with the name of the program"):
        program.press("r")
        program.press("one for me", SEND)
        eventually("the answer", lambda: newest(owner, channel="terminal", topic="tea")["content"] == "one for me")
        assert newest(owner, channel="terminal")["client"] == "ZulipTerminal", newest(owner, channel="terminal")["client"]
        program.press(ESCAPE)
        program.shows("one for me")
    with checks.that("the own message is edited"):
        program.press("G", "e")
        program.press(", please", SEND)
        eventually("the edit", lambda: newest(owner, channel="terminal")["content"] == "one for me, please")
        program.press(ESCAPE)
        program.shows("one for me, please")
    with checks.that("a reaction and a star of the keyboard are stored"):
        program.press("G", "+")
        eventually("the reaction", lambda: [x["emoji_code"] for x in newest(owner, channel="terminal")["reactions"]] == ["1f44d"])
        program.press("*")
        eventually("the star", lambda: "starred" in newest(member, channel="terminal")["flags"])
    with checks.that("a reaction and an edit of another user are shown"):
        mine = newest(owner, channel="terminal")["id"]
        ok(server.call("POST", f"messages/{mine}/reactions", owner, emoji_name="tada"))
        program.shows(":tada:")
        first = ok(server.call("POST", "messages", owner, type="stream", to="terminal", topic="tea", content="bisquits"))["id"]
        program.shows("bisquits")
        ok(server.call("PATCH", f"messages/{first}", owner, content="biscuits"))
        program.shows("biscuits")
    with checks.that("it finds messages by their words"):
        program.press("/")
        program.press("kettle", ENTER)
        program.shows("Search Results", "the kettle is on")
        program.all_messages()
    with checks.that("a direct message arrives, and its conversation is opened"):
        ok(server.call("POST", "messages", owner, type="direct", to=[member["me"]["user_id"]], content="only for you"))
        program.shows_at_end("only for you")
        program.press("P")
        program.shows("All private messages", "only for you")
    with checks.that("it continues after the server was killed"):
        program.all_messages()
        server.kill()
        server.start()
        ok(server.call("POST", "messages", owner, type="stream", to="terminal", topic="tea", content="back again"))
        program.shows_at_end("back again")
    with checks.that("it has written no error"):
        errors = os.path.join(folder, "zulip-terminal-tracebacks.log")
        text = open(errors).read() if os.path.exists(errors) else ""
        assert not text.strip(), text[-2000:]
finally:
    program.close()
    shutil.rmtree(folder, ignore_errors=True)
checks.summary()
