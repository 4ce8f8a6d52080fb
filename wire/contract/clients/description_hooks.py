"""Hooks for schemathesis: parameters that must not be sent, polls that must not wait, and IDs of existing objects.
schemathesis loads this file, in a process that description.py starts."""
import json
import os

import schemathesis

KNOWN = json.loads(os.environ["PARLEY_KNOWN"])  # IDs of existing objects, by parameter name

# Parameters that would change the credentials of the run.
LOGIN = {"/api/v1/settings": ("email",), "/api/v1/settings/display": ("email",), "/api/v1/settings/notifications": ("email",)}


@schemathesis.serializer("application/offset+octet-stream")
def piece(ctx, value):
    """Sends a piece of a file as bytes."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


def choose(name, value, path):
    """Replaces every other number by the ID of an existing object. The other values do not change."""
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
            case.query["dont_block"] = "true"  # otherwise a poll waits for most of a minute
    if isinstance(case.body, dict):
        case.body = {k: choose(k, v, path) for k, v in case.body.items() if k not in LOGIN.get(path, ())}


@schemathesis.check
def no_failure(ctx, response, case):
    """No request causes a server failure. 503 is allowed if its JSON says that a service is not configured."""
    if response.status_code >= 500 and not (response.status_code == 503 and b'"code":' in response.content):
        raise AssertionError(f"{response.status_code}: {response.content[:300]!r}")
