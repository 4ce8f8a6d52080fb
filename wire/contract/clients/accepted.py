"""Accepted differences between the reference server and Parley: each has a reason; every other one fails the check."""
import collections
import json
import os
import re
import sys


class Accepted:
    """The accepted differences of a check and those of all checks, which are in common_differences.json.

    Each has a reason and at least one of: place, path, kind, steps, reference, parley.
    """

    def __init__(self, file):
        here = os.path.dirname(os.path.realpath(__file__))
        self.rules, self.own = [], 0
        for name in (file, "common_differences.json"):
            with open(os.path.join(here, name), encoding="utf-8") as rules:
                self.rules += json.load(rules)["differences"]
            self.own = self.own or len(self.rules)
        self.used = collections.Counter()

    def reason(self, d):
        for i, rule in enumerate(self.rules):
            if "steps" in rule and d.step not in rule["steps"]:
                continue
            if "kind" in rule and d.kind not in rule["kind"].split("|"):
                continue
            if any(f in rule and not re.search(rule[f], text(v)) for f, v in
                   (("place", d.place), ("path", d.path), ("reference", d.reference), ("parley", d.parley))):
                continue
            self.used[i] += 1
            return rule["reason"]
        return None


def text(value):
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def report(found, accepted, what):
    """Prints what differs, and returns the number of kinds of differences that are not accepted.

    Options of the command line: --all prints every difference, also accepted ones; --step N prints those of one step.
    """
    show = int(sys.argv[sys.argv.index("--step") + 1]) if "--step" in sys.argv else None
    counts, kinds, examples = collections.Counter(), collections.Counter(), collections.defaultdict(list)
    for d in found:
        reason = accepted.reason(d)
        counts[reason] += 1
        if d.step == show or "--all" in sys.argv:
            print(d.step, d.place, d.path, d.kind, text(d.reference)[:2000], "|", text(d.parley)[:2000], "|", reason)
        if reason is None:
            kind = (d.place, d.path, d.kind)
            kinds[kind] += 1
            if len(examples[kind]) < 4:
                examples[kind].append(d)
    for reason, count in sorted(((r, c) for r, c in counts.items() if r), key=lambda rc: -rc[1]):
        print(f"{count:6} accepted: {reason}")
    for i, rule in enumerate(accepted.rules):
        if i < accepted.own and not accepted.used[i]:
            print(f"       not needed: {json.dumps(rule)[:160]}")
    for kind, count in kinds.most_common():
        print(f"FAIL {kind[0]} {kind[1]}: {kind[2]}, {count} times")
        for d in examples[kind]:
            print(f"     step {d.step}: reference {text(d.reference)[:260]}")
            print(f"     {' ' * len(str(d.step))}       parley    {text(d.parley)[:260]}")
    print(f"{what} compared; {len(found)} differences, {counts[None]} of them not accepted, of {len(kinds)} kinds")
    return len(kinds)
