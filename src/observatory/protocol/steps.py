"""Step names (ruling 2d), in one place for gateway, store and SDK.

A step's name is its id when that is a UUID, or when it is an envelope's own message id; any other text is
unique only within its session, so its name is `<session_id>/<step_id>`. A session id contains no slash, so
the first one separates them. Parents refer to names; a text without a slash means a step of the same session,
except `msg_…`, which means an envelope.
"""

from __future__ import annotations

from observatory.protocol.identity import MESSAGE, canonical_uuid

UUID_LENGTH = 36  # of the canonical spelling: most other ids differ in length


def step_name(session_id: str, step_id: str, message_id: str | None = None) -> str:
    """`message_id` is the sender's own or the archived one; only an envelope's equals its step id."""
    if step_id == message_id or (len(step_id) == UUID_LENGTH and canonical_uuid(step_id) == step_id):
        return step_id
    return f"{session_id}/{step_id}"


def parent_name(session_id: str, parent: str) -> str:
    if "/" in parent or parent.startswith(MESSAGE):
        return parent
    return step_name(session_id, parent)


def step_of_name(name: str) -> str:
    """The step id in a name: what span ids are computed from."""
    return name.partition("/")[2] or name
