"""Comparison of a recorded answer or event of the reference server with the one of Parley.

The two servers have different IDs, clocks and addresses. A value of the reference is the standard: IDs of Parley are
translated to it, and a pair of IDs that is seen for the first time is learned. A difference is a named tuple with the
place (the request or event), the path inside it, the kind and both values.
"""
import difflib
import json
import re
from typing import NamedTuple

MISSING = "missing"  # the reference has it, Parley does not
EXTRA = "extra"  # Parley has it, the reference does not
VALUE = "value"


class Difference(NamedTuple):
    step: int
    place: str
    path: str
    kind: str
    reference: object
    parley: object


# Fields whose values depend on the clock. Only the type of the value is compared.
TIMES = re.compile(
    r"^(.*timestamp|last_updated|date_.*|create_time|update_time|last_modified|expiry_date|invited|export_time|"
    r"presence_last_update_id|at|date_sent)$")
# Fields that each server chooses for itself: random values, row IDs, versions of pictures.
RANDOM = re.compile(
    r"^(recipient_id|queue_id|event_queue_id|server_generation|api_key|token|path_id|local_message_id|link_url|"
    r"upload_space_used|max_message_id|last_event_id|color|avatar_version|stream_weekly_traffic|size)$")

ID_FIELDS = (
    (re.compile(r"^(sender_id|user_id|user_ids|creator_id|owner_id|bot_owner_id|acting_user_id|members|direct_members|"
                r"subscribers|author_id|add_member_ids|invited_by_user_id|sender_ids|author|muted_users|recipient_user_ids|"
                r"other_user_id|user_ids_string|already_member)$"), "u"),
    (re.compile(r"^(stream_id|stream_ids|streams|new_stream_id|orig_stream_id|prev_stream|stream|realm_default_streams|"
                r"default_streams|.*_stream_id)$"), "s"),
    (re.compile(r"^(message_id|message_ids|first_message_id|anchor|max_message_id|first_processed_id|last_processed_id|"
                r"unread_message_ids|starred_messages|mentions|reminder_target_message_id)$"), "m"),
    (re.compile(r"^(group_id|direct_subgroups|direct_subgroup_ids|subgroup_ids|subgroups|user_group_id|group_ids|.*_group|"
                r"(realm_)?can_create_groups|(realm_)?can_manage_all_groups)$"), "g"),
)
SYSTEM_BOTS = ("Notification Bot", "Welcome Bot", "Email Gateway")
TEXTS = ("content", "rendered_content", "match_content")  # of system bots: each server has its own words
IN_TEXT = (  # IDs inside rendered text, Markdown and addresses
    (re.compile(r'(data-user-id=")(\d+)(")'), "u"),
    (re.compile(r'(data-stream-id=")(\d+)(")'), "s"),
    (re.compile(r'(data-user-group-id=")(\d+)(")'), "g"),
    (re.compile(r"(narrow/(?:stream|channel)/)(\d+)(-)"), "s"),
    (re.compile(r"(/(?:near|with)/)(\d+)(\b)"), "m"),
    (re.compile(r"(\*\*[^*|]+\|)(\d+)(\*\*)"), "u"),
    (re.compile(r"(#user/)(\d+)(\b)"), "u"),
)
REWRITE = (  # what is random or belongs to the installation, in both servers' texts
    (re.compile(r"/user_uploads/(thumbnail/)?[^/\"\s]+/[^/\"\s]+/[\w-]{10,}/"), r"/user_uploads/\1*/"),
    (re.compile(r"https?://secure\.gravatar\.com/avatar/[^\"\s]*|/user_avatars/[^\"\s]*|/static/images/static_avatars/[^\"\s]*"), "AVATAR"),
    (re.compile(r"https://external-content\.[^\"\s]*|/external_content/[^\"\s]*"), "PROXIED"),
    (re.compile(r'data-original-content-type="[^"]*"'), 'data-original-content-type=""'),
    (re.compile(r"[\w-]+@(?:zulip\.com|parley\.invalid)"), "SYSTEM-BOT"),
    (re.compile(r"\buser\d+@[\w.-]+"), "USER-ADDRESS"),
    (re.compile(r"(-bot)@(?:example\.org|127\.0\.0\.1)"), r"\1@BOTS"),
    (re.compile(r"(/\d+x\d+(?:-anim)?)\.(?:webp|jpg|gif)\b"), r"\1.PICTURE"),
    # Links to topics refer to the newest message from level 400 on, before to the oldest one.
    (re.compile(r'(class="stream-topic" [^>]*/with/)\d+'), r"\1*"),
    (re.compile(r"/user_uploads/temporary/\S+"), "TEMPORARY"),
    (re.compile(r"/join/\w+/?"), "INVITATION"),
    (re.compile(r"\.\w{32}(\.show-sender)?@[\w.]+"), ".TOKEN@MAIL"),
    (re.compile(r"(emoji/images/)[\w]+\."), r"\1*."),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "UUID"),
)


class Comparer:
    """Comparer compares values and remembers which ID of Parley belongs to which ID of the reference."""

    def __init__(self, reference_hosts, parley_hosts):
        self.hosts = reference_hosts, parley_hosts
        self.to_parley, self.to_reference = {}, {}  # (kind, ID) to ID

    def learn(self, kind, reference, parley):
        self.to_parley[kind, reference] = parley
        self.to_reference[kind, parley] = reference

    def same_id(self, kind, reference, parley):
        """Reports whether two IDs belong together, and learns them if both are new."""
        known = self.to_parley.get((kind, reference))
        if known is None and (kind, parley) not in self.to_reference:
            self.learn(kind, reference, parley)
            return True
        return known == parley

    def text(self, value, side):
        for host in self.hosts[side]:
            value = value.replace(host, "")
        for pattern, new in REWRITE:
            value = pattern.sub(new, value)
        if side == 1:
            for pattern, kind in IN_TEXT:
                value = pattern.sub(
                    lambda m: m[1] + str(self.to_reference.get((kind, int(m[2])), m[2])) + m[3], value)
        return value

    def event_lists(self, step, reference, parley):
        """Compares the events of one queue after one step."""
        out = []
        reference, parley = [dict(e) for e in reference], [dict(e) for e in parley]
        for event in reference + parley:
            event.pop("id", None)  # counts the events of a queue
        names = [event_name(e) for e in reference], [event_name(e) for e in parley]
        missing, extra = [], []
        for op, a, b, c, d in difflib.SequenceMatcher(None, *names, autojunk=False).get_opcodes():
            if op == "equal":
                for left, right in zip(reference[a:b], parley[c:d]):
                    out += self.values(step, "event " + event_name(left), left, right)
            else:
                missing += reference[a:b]
                extra += parley[c:d]
        for left in missing:
            name = event_name(left)
            right = next((e for e in extra if event_name(e) == name), None)
            if right is None:
                out.append(Difference(step, "event " + name, "", MISSING, left, None))
                continue
            extra.remove(right)
            out.append(Difference(step, "event " + name, "", "order", None, None))
            out += self.values(step, "event " + name, left, right)
        return out + [Difference(step, "event " + event_name(e), "", EXTRA, None, e) for e in extra]

    def values(self, step, place, reference, parley):
        out = []
        self._walk(lambda *d: out.append(Difference(step, place, *d)), "", "", "", reference, parley)
        return out

    def _walk(self, report, path, key, parent, reference, parley):
        if isinstance(reference, dict) and isinstance(parley, dict):
            self._objects(report, path, key, parent, reference, parley)
        elif isinstance(reference, list) and isinstance(parley, list):
            self._lists(report, path, key, parent, reference, parley)
        elif type(reference) is not type(parley):
            if not (TIMES.match(key) and isinstance(reference, (int, float)) and isinstance(parley, (int, float))):
                report(path, VALUE, reference, parley)  # JSON has one kind of numbers
        elif isinstance(reference, str):
            if RANDOM.match(key) or TIMES.match(key):
                return
            if key == "emoji_code" and reference.isdigit() and parley.isdigit():
                return  # IDs of the organization's own emoji
            if key == "user_ids_string" or key == "value" and reference.startswith("["):
                left, right = ([int(n) for n in re.findall(r"\d+", v)] for v in (reference, parley))
                return self._numbers(report, path, "user_ids", "", left, right)
            objects = as_object(reference), as_object(parley)
            if all(objects):
                return self._walk(report, path, key, parent, *objects)
            if self.text(reference, 0) != self.text(parley, 1):
                report(path, VALUE, self.text(reference, 0), self.text(parley, 1))
        elif isinstance(reference, bool) or reference is None:
            if reference != parley:
                report(path, VALUE, reference, parley)
        elif RANDOM.match(key) or TIMES.match(key):
            pass
        elif key == "to":
            if all(self.to_parley.get((kind, reference)) != parley for kind in "su"):
                report(path, VALUE, reference, parley)
        else:
            kind = id_kind(key, parent)
            if kind:
                if not self.same_id(kind, reference, parley):
                    report(path, VALUE, reference, self.to_reference.get((kind, parley), f"unknown {parley}"))
            elif reference != parley:
                report(path, VALUE, reference, parley)

    def _objects(self, report, path, key, parent, reference, parley):
        if reference.get("sender_full_name") in SYSTEM_BOTS and parley.get("sender_full_name") in SYSTEM_BOTS:
            reference, parley = ({k: v for k, v in o.items() if k not in TEXTS} for o in (reference, parley))
        kind = map_kind(key, reference)
        if kind:
            for name in reference:  # a thing that is new in both is found by its name or its value
                for other in parley:
                    if (kind, int(name)) not in self.to_parley and (kind, int(other)) not in self.to_reference and (
                            named(reference[name]) or reference[name]) == (named(parley[other]) or parley[other]):
                        self.learn(kind, int(name), int(other))
                        break
            parley = {str(self.to_reference.get((kind, int(k)), k)) if k.isdigit() else k: v for k, v in parley.items()}
        for name in reference.keys() | parley.keys():
            inner = f"{path}.{name}" if path else name
            if kind:
                inner = f"{path}{{}}"
            if name not in parley:
                report(inner, MISSING, reference[name], None)
            elif name not in reference:
                report(inner, EXTRA, None, parley[name])
        for name in sorted(reference.keys() & parley.keys()):
            inner = f"{path}{{}}" if kind else f"{path}.{name}" if path else name
            self._walk(report, inner, key if kind else name, key or parent, reference[name], parley[name])

    def _lists(self, report, path, key, parent, reference, parley):
        path += "[]"
        if all(isinstance(v, int) and not isinstance(v, bool) for v in reference + parley):
            return self._numbers(report, path, key, parent, reference, parley)
        if all(isinstance(v, dict) for v in reference + parley) and reference and parley:
            return self._rows(report, path, key, parent, reference, parley)
        if len(reference) != len(parley):
            left, right = [json.dumps(v, sort_keys=True) for v in reference], [json.dumps(v, sort_keys=True) for v in parley]
            return report(path, VALUE, [v for v in left if v not in right], [v for v in right if v not in left])
        for left, right in zip(reference, parley):
            self._walk(report, path, key, parent, left, right)

    def _numbers(self, report, path, key, parent, reference, parley):
        kind = id_kind(key, parent)
        if key == "to":
            kind = next((k for k in "su" if all((k, v) in self.to_parley for v in reference)), "s")
        if kind is None:
            if reference != parley:
                report(path, VALUE, reference, parley)
            return
        new = [v for v in parley if (kind, v) not in self.to_reference]
        fresh = [v for v in reference if (kind, v) not in self.to_parley]
        if len(new) == len(fresh):
            for left, right in zip(fresh, new):
                self.learn(kind, left, right)
        ours = [self.to_reference.get((kind, v), f"unknown {v}") for v in parley]
        if sorted(map(str, ours)) != sorted(map(str, reference)):
            report(path, VALUE, sorted(reference), sorted(ours, key=str))

    def _topics(self, report, path, reference, parley):
        """Reports rows of topics that only one list has, and returns the others in the same order."""
        def topic(row, side):
            channel = row["stream_id"] if side == 0 else self.to_reference.get(("s", row["stream_id"]))
            return channel, (row.get("topic_name") or row.get("topic") or "").lower()
        left, right = ({topic(row, side): row for row in rows} for side, rows in enumerate((reference, parley)))
        for name in left.keys() - right.keys():
            report(path, MISSING, left[name], None)
        for name in right.keys() - left.keys():
            report(path, EXTRA, None, right[name])
        return [left[n] for n in left if n in right], [right[n] for n in left if n in right]

    def _rows(self, report, path, key, parent, reference, parley):
        """Compares lists of objects: by their ID if every object has one, else by their place."""
        field, kind = row_key(key, parent, reference, parley)
        if key == "user_topics" or key == "streams" and parent == "unread_msgs":
            reference, parley = self._topics(report, path, reference, parley)
        if field is None:
            if len(reference) != len(parley):
                report(path, VALUE, f"{len(reference)} entries", f"{len(parley)} entries")
            for left, right in zip(reference, parley):
                self._walk(report, path, key, parent, left, right)
            return
        right_of = {}
        for row in parley:
            value = row[field]
            right_of[self.to_reference.get((kind, value), ("new", value)) if kind else self.text(str(value), 1)] = row
        left_of = {(row[field] if kind else self.text(str(row[field]), 0)): row for row in reference}
        fresh, new = [v for v in left_of if v not in right_of], [v for v in right_of if v not in left_of]
        for left in list(fresh):  # a thing that is new in both is found by its name
            for right in new:
                if kind and isinstance(right, tuple) and named(left_of[left]) and named(left_of[left]) == named(right_of[right]):
                    self.learn(kind, left, right[1])
                    right_of[left] = right_of.pop(right)
                    fresh.remove(left)
                    new.remove(right)
                    break
        if kind and len(fresh) == len(new) and all((kind, v) not in self.to_parley for v in fresh) and all(isinstance(v, tuple) for v in new):
            for left, right in zip(fresh, new):
                self.learn(kind, left, right[1])
                right_of[left] = right_of.pop(right)
            fresh, new = [], []
        for value in fresh:
            report(path, MISSING, left_of[value], None)
        for value in new:
            report(path, EXTRA, None, right_of[value])
        shared = [v for v in left_of if v in right_of]
        if shared != [v for v in right_of if v in left_of] and not fresh and not new and list(right_of) != list(left_of):
            order = [self.to_reference.get((kind, r[field]), r[field]) if kind else self.text(str(r[field]), 1) for r in parley]
            if order != list(left_of):
                report(path, "order", list(left_of), order)
        for value in shared:
            self._walk(report, path, key, parent, left_of[value], right_of[value])


def id_kind(key, parent):
    for pattern, kind in ID_FIELDS:
        if pattern.match(key):
            return kind
    if key == "id":
        return {"message": "m", "messages": "m", "display_recipient": "u", "realm_user_groups": "g", "user_groups": "g",
                "group": "g"}.get(parent, "id of " + parent)
    if key == "messages" or key == "ids":
        return "m" if key == "messages" else "id of drafts"
    if key.endswith("_id") or key.endswith("_ids") or key == "order" and parent in ("fields", "custom_fields", "custom_profile_fields"):
        return key
    return None


def map_kind(key, reference):
    if reference and all(k.lstrip("-").isdigit() for k in reference):
        return {"subscribed": "u", "already_subscribed": "u", "new_subscription_messages_sent": "u", "presences": "u",
                "user_status": "u", "message_details": "m", "profile_data": "id of profile_data",
                "realm_emoji": "id of realm_emoji", "emoji": "id of emoji"}.get(key)
    return None


def named(row):
    """Returns the text by which a thing of unknown ID is found: its name, or the place of a system bot's message."""
    if isinstance(row, dict) and row.get("sender_full_name") in SYSTEM_BOTS:
        return row["sender_full_name"], row.get("subject"), row.get("type"), str(row.get("display_recipient"))[:20]
    return row.get("full_name") or row.get("name") if isinstance(row, dict) else None


def row_key(key, parent, reference, parley):
    if key in ("edit_history", "message_history", "user_topics") or key == "streams" and parent == "unread_msgs":
        return None, None
    for field, kind in (("stream_id", "s"), ("user_id", "u"), ("message_id", "m"), ("id", None), ("name", ""), ("email", "")):
        rows = reference + parley
        if all(field in row and row[field] is not None for row in rows):
            if len({r[field] for r in reference}) != len(reference) or len({r[field] for r in parley}) != len(parley):
                continue
            return field, id_kind("id", key) if kind is None else kind or None
    return None, None


def as_object(value):
    """Returns the object that a string holds as JSON, or None."""
    if not value.startswith("{"):
        return None
    try:
        return json.loads(value)
    except ValueError:
        return None


def event_name(event):
    parts = [event.get("type")]
    for field in ("op", "property", "flag", "operation"):
        if isinstance(event.get(field), str) and event.get(field) not in parts:
            parts.append(event[field])
    return "/".join(parts)
