"""A real Alertmanager sends an alert to the server, which becomes a message. It needs Debian's prometheus-alertmanager."""
import json
import os
import shutil
import subprocess
import tempfile
import urllib.request

from harness import Checks, Server, eventually, free_port, ok

program = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
if not program:
    print("skipped: no Alertmanager is installed (Debian: apt-get install prometheus-alertmanager)")
    print("0 passed, 0 failed")
    raise SystemExit(0)

checks = Checks()
server = Server()
owner = server.people()[0]
bot = ok(server.call("POST", "bots", owner, full_name="Alerts", short_name="alerts", bot_type=2))
folder = tempfile.mkdtemp(prefix="parley-alertmanager-")
port = free_port()
with open(os.path.join(folder, "config.yml"), "w") as config:
    config.write(f"""route:
  receiver: parley
  group_wait: 1s
receivers:
- name: parley
  webhook_configs:
  - url: {server.site}/api/v1/external/alertmanager?api_key={bot['api_key']}&stream=general&desc=summary
""")
process = subprocess.Popen(
    [program, f"--config.file={folder}/config.yml", f"--storage.path={folder}/data", f"--web.listen-address=127.0.0.1:{port}",
     "--cluster.listen-address="], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def alert():
    body = json.dumps([{"labels": {"alertname": "DiskFull", "instance": "db1"},
                        "annotations": {"summary": "the disk is full @**all**"}, "generatorURL": "http://prom/graph"}])
    request = urllib.request.Request(f"http://127.0.0.1:{port}/api/v2/alerts", body.encode(),
                                     {"Content-Type": "application/json"})
    try:
        return urllib.request.urlopen(request).status == 200
    except OSError:
        return False


def message():
    found = ok(server.call("GET", "messages", owner, anchor="newest", num_before=5, num_after=0, apply_markdown=False))
    return [m for m in found["messages"] if m["sender_email"] == bot["email"]]


try:
    eventually("Alertmanager takes an alert", alert)
    sent = eventually("the message of the alert", message)[-1]
    with checks.that("an alert becomes a message in the topic of its instance"):
        assert sent["subject"] == "db1", sent["subject"]
        assert ":alert: **FIRING** the disk is full" in sent["content"], sent["content"]
    with checks.that("the text of an alert mentions no users"):
        assert "@**" not in sent["content"], sent["content"]
finally:
    process.terminate()
    process.wait(10)
    shutil.rmtree(folder, ignore_errors=True)
checks.summary()
