"""Sends recorded requests to an organization that was imported from an export of the reference server.

The folder imports/zulip beside the specification has the export, and the answers that the reference server gave to an
owner, a member and a guest just before it. After the import, the same requests must give the same answers, with other IDs.
imported_differences.json lists the accepted differences and their reasons. Without the folder the check is skipped.

Options: see report in accepted.py.
"""
import base64
import json
import os
import re
import subprocess
import sys
import tarfile
import urllib.parse

from accepted import Accepted, report
from harness import ROOT, Server
from transcript_compare import VALUE, Comparer, Difference

FOLDER = os.path.join(os.environ.get("PARLEY_SHARED", os.path.join(ROOT, "..", "shared")), "imports", "zulip")
ACCEPTED = "imported_differences.json"
NAME = "lumen"
# Parts of a path with the kind of thing whose ID it has.
IN_PATH = (("u", r"(/users/)(\d+)"), ("s", r"(/streams/)(\d+)"), ("s", r"(/users/me/)(\d+)(?=/topics)"),
           ("m", r"(/messages/)(\d+)"), ("g", r"(/user_groups/)(\d+)"))


class Imported:
    """Imported is the server with the imported organization."""

    def __init__(self):
        lines = [json.loads(line) for line in open(os.path.join(FOLDER, "answers.jsonl"), encoding="utf-8")]
        self.header, self.requests = lines[0]["header"], lines[1:]
        self.server = Server()
        self.host = f"{NAME}.127.0.0.1:{self.server.port}"
        archive = os.path.join(FOLDER, "zulip-export-a.tar.gz")
        subprocess.run([os.path.join(ROOT, "bin", "parley"), "import", "zulip", archive, "--realm", NAME, "--data",
                        os.path.join(self.server.dir, "data"), "--report", os.path.join(self.server.dir, "report.json")],
                       check=True, capture_output=True)
        self.keys = {}
        for name, who in self.header["as"].items():
            got = self.send("POST", "/api/v1/dev_fetch_api_key", None, {"username": who["email"]})[1]
            self.keys[name] = got["email"], got["api_key"]
        theirs = "http://" + self.header["host"]
        self.compare = Comparer([theirs, self.header["host"], "http://127.0.0.1:9991"],
                                ["http://" + self.host, self.host])
        self.learn(archive)

    def send(self, method, path, who, params):
        headers = {"Host": self.host, "User-Agent": "ZulipDiff/1.0"}
        if who:
            headers["Authorization"] = "Basic " + base64.b64encode(":".join(self.keys[who]).encode()).decode()
        form = urllib.parse.urlencode(params)
        if method == "GET":
            status, raw, _ = self.server.raw(method, path + ("?" + form if form else ""), None, headers)
        else:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            status, raw, _ = self.server.raw(method, path, form, headers)
        return status, json.loads(raw)

    def answer(self, path, field):
        """Returns the lists of a field, as the owner got them from the reference and gets them from Parley."""
        recorded = next(r for r in self.requests if r["path"] == path and r["as"] == "iris")
        return recorded["answer"][field], self.send("GET", path, "iris", recorded["params"])[1][field]

    def learn(self, archive):
        """Learns which IDs belong together: of users, channels and groups by names, of messages by their order."""
        for kind, path, field, key, number in (("u", "/api/v1/users", "members", "delivery_email", "user_id"),
                                               ("u", "/api/v1/users", "members", "full_name", "user_id"),
                                               ("s", "/api/v1/streams", "streams", "name", "stream_id"),
                                               ("g", "/api/v1/user_groups", "user_groups", "name", "id")):
            theirs, ours = self.answer(path, field)
            named = {row[key]: row[number] for row in ours if row.get(key)}
            for row in theirs:
                if row.get(key) in named and (kind, row[number]) not in self.compare.to_parley:
                    self.compare.learn(kind, row[number], named[row[key]])
        theirs = []
        with tarfile.open(archive) as tar:
            for member in tar:
                if re.search(r"/messages-\d+\.json$", member.name):
                    theirs += [m["id"] for m in json.load(tar.extractfile(member))["zerver_message"]]
                if member.name.endswith("/realm.json"):
                    bots = json.load(tar.extractfile(member))["zerver_userprofile_crossrealm"]
        for ours, message in enumerate(sorted(theirs), 1):
            self.compare.learn("m", message, ours)
        registered = self.send("POST", "/api/v1/register", "iris", {"fetch_event_types": '["realm_user"]'})[1]
        system = {bot["email"].split("@")[0]: bot["user_id"] for bot in registered["cross_realm_bots"]}
        for bot in bots:
            if bot["email"].split("@")[0] in system:
                self.compare.learn("u", bot["id"], system[bot["email"].split("@")[0]])

    def ours(self, kind, number):
        return self.compare.to_parley.get((kind, int(number)), int(number))

    def translated(self, request):
        """Returns the path and parameters of a request with the IDs of Parley."""
        path = request["path"]
        for kind, pattern in IN_PATH:
            path = re.sub(pattern, lambda m: m[1] + str(self.ours(kind, m[2])), path)
        params = dict(request["params"])
        if "narrow" in params:
            narrow = json.loads(params["narrow"])
            for term in narrow:
                if term["operator"] == "channel" and isinstance(term["operand"], int):
                    term["operand"] = self.ours("s", term["operand"])
                if term["operator"] == "dm" and isinstance(term["operand"], list):
                    term["operand"] = [self.ours("u", u) for u in term["operand"]]
            params["narrow"] = json.dumps(narrow)
        return path, params

    def run(self):
        found = []
        for n, request in enumerate(self.requests, 1):
            path, params = self.translated(request)
            status, answer = self.send(request["method"], path, request["as"], params)
            place = request["method"] + " " + re.sub(r"\d+", "{id}", request["path"].replace("/api/v1/", ""))
            if answer["result"] != request["answer"]["result"]:
                found.append(Difference(n, place, "", VALUE, request["answer"].get("msg"), answer.get("msg")))
                continue
            found += self.compare.values(n, place, request["answer"], answer)
        return found


def main():
    if not os.path.isdir(FOLDER):
        print(f"skipped: {FOLDER} does not exist\n1 passed, 0 failed")
        return 0
    imported = Imported()
    failed = report(imported.run(), Accepted(ACCEPTED), f"{len(imported.requests)} answers")
    print(f"{len(imported.requests)} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
