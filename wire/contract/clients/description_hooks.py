"""What schemathesis is told beside the description: what must not be called, how a poll does not wait, and which numbers
mean something here. It is loaded by schemathesis, in a process that description.py starts."""
import json
import os

import schemathesis

KNOWN = json.loads(os.environ["PARLEY_KNOWN"])  # numbers of things that are there, by the name of the parameter

# Parameters that would change what the caller logs in with.
LOGIN = {"/api/v1/settings": ("email",), "/api/v1/settings/display": ("email",), "/api/v1/settings/notifications": ("email",)}


@schemathesis.serializer("application/offset+octet-stream")
def piece(ctx, value):
    """A piece of a file is bytes as they are."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


def choose(name, value, path):
    """Every other number becomes one that is there; the rest stay what they were."""
    known = KNOWN.get(name)
    if not known or value is None or isinstance(value, bool):
        return value
    n = value if isinstance(value, int) else sum(str(value).encode("utf-8", "replace"))
    return known[n // 2 % len(known)] if n % 2 else value


@schemathesis.hook
def before_call(context, case, kwargs):
    path = case.path
    if case.path_parameters:
        case.path_parameters = {k: choose(k, v, path) for k, v in case.path_parameters.items()}
    if isinstance(case.query, dict):
        case.query = {k: choose(k, v, path) for k, v in case.query.items()}
        if path == "/api/v1/events" and case.method.upper() == "GET":
            case.query["dont_block"] = "true"  # a poll waits for most of a minute otherwise
    if isinstance(case.body, dict):
        case.body = {k: choose(k, v, path) for k, v in case.body.items() if k not in LOGIN.get(path, ())}


@schemathesis.check
def no_failure(ctx, response, case):
    """Nothing ends in a failure of the server. 503 is an answer where it says that something is not set up here."""
    if response.status_code >= 500 and not (response.status_code == 503 and b'"code":' in response.content):
        raise AssertionError(f"{response.status_code}: {response.content[:300]!r}")
