"""New content for a held message: what a person wrote, with the original's ids.

Ruling 24: agent, session, step and id stay the original's whatever the new content says, and the gateway
marks its intervention (`interrupt_signal`). The entropy score the agent reported stays too (S1126): a message
is shown with the computed score in its place (ruling 15), and no person reports for an agent. Only sections
that are present are changed: the interceptor reports missing ones.
"""

from __future__ import annotations

from typing import Any

import msgspec

OF_META = ("trace_id", "step_id", "session_id", "cluster_id")
OF_IDENTITY = ("agent_id", "agent_type", "capability_version")
OF_COGNITION = ("entropy_score",)
REPORTED_SCORE = "reported_entropy_score"  # the member that has the agent's own score in a displayed message
OF_ENVELOPE = ("envelope_version", "message_id", "trace_id", "span_id", "parent_span_id", "sender")
OF_METADATA = ("session_id", "conversation_id")


def with_ids_of(original: bytes, content: dict[str, Any], step_id: str, session_id: str) -> bytes:
    """The bytes of the new content, carrying the original's ids."""
    before: dict[str, Any] = msgspec.json.decode(original)
    after = dict(content)
    if "envelope_version" in before:
        _take(after, before, OF_ENVELOPE)
        metadata = after.get("metadata")
        if isinstance(metadata, dict) or before.get("metadata"):
            after["metadata"] = dict(metadata) if isinstance(metadata, dict) else {}
            _take(after["metadata"], before.get("metadata") or {}, OF_METADATA)
        return msgspec.json.encode(after)
    for section, names in (("meta", OF_META), ("identity", OF_IDENTITY), ("cognition", OF_COGNITION)):
        if isinstance(after.get(section), dict):
            after[section] = dict(after[section])
            _take(after[section], before.get(section) or {}, names)
    if isinstance(after.get("cognition"), dict):
        after["cognition"].pop(REPORTED_SCORE, None)
    if isinstance(after.get("meta"), dict):
        # Explicit, so that nothing is inferred a second time.
        after["meta"] |= {"step_id": step_id, "session_id": session_id}
        for name in ("parent_step_id", "parent_step_ids"):
            if name in before["meta"]:
                after["meta"].setdefault(name, before["meta"][name])
    control = after.get("control")
    if control is None or isinstance(control, dict):
        after["control"] = {**(control or {}), "interrupt_signal": "rewrite"}
    return msgspec.json.encode(after)


def _take(target: dict[str, Any], source: dict[str, Any], names: tuple[str, ...]) -> None:
    for name in names:
        if name in source:
            target[name] = source[name]
        else:
            target.pop(name, None)
