"""How steps are named (ruling 2d), in one place for gateway, store and SDK.

A step's name is its id when that is a UUID, or an envelope's message id; any other text is unique only
within its session, so its name is `<session_id>/<step_id>`. Parents refer to names; a bare text means a
step of the same session.
"""

from __future__ import annotations

from observatory.protocol.identity import canonical_uuid


def step_name(session_id: str, step_id: str) -> str:
    if step_id.startswith("msg_") or canonical_uuid(step_id) == step_id:
        return step_id
    return f"{session_id}/{step_id}"


def parent_name(session_id: str, parent: str) -> str:
    return parent if "/" in parent else step_name(session_id, parent)


def step_of_name(name: str) -> str:
    """The step id a name was made of: what span ids are computed from."""
    return name.partition("/")[2] or name
