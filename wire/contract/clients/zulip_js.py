"""Starts a server and runs zulip_js.js, which uses the official JavaScript package, against it."""
import os
import subprocess
import sys

from harness import Server

server = Server()
people = server.people()
try:
    done = subprocess.run(
        ["node", os.path.join(os.path.dirname(os.path.realpath(__file__)), "zulip_js.js"), server.site,
         people[0]["email"], people[0]["key"], str(people[-1]["me"]["user_id"])],
        stdin=subprocess.DEVNULL, timeout=180)
except subprocess.TimeoutExpired:
    print("FAIL zulip-js did not end in 180 s\n0 passed, 1 failed")
    sys.exit(1)
sys.exit(done.returncode)
