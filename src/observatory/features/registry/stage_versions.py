"""The version stage: N and N-1 pass, an unknown version passes with a warning, a retired one does not.

The registry is data per agent type (ruling 5). An unknown version is told of once per (agent type,
version) as an event, and in every answer as a warning.
"""

from __future__ import annotations

from observatory.pipeline.event_writer import notice
from observatory.pipeline.message_context import Passage
from observatory.pipeline.rows import Write
from observatory.pipeline.state import Memory, Verdict
from observatory.protocol.answers import Fault, Rejected
from observatory.protocol.versions import find, judge, outside


def check(passage: Passage, memory: Memory, now_ns: int) -> Verdict | None:
    message = passage.message
    kind, version = message.agent_type, message.capability_version
    if kind is None or version is None:
        return None
    judged = memory.judged.get((kind, version))
    if judged is None:
        entries = memory.rulebook.versions.get(kind, {})
        judged = memory.judged[kind, version] = judge(entries, version), find(entries, version)
    verdict, entry = judged
    if verdict == "retired":
        return _retired(passage, memory, now_ns)
    if verdict == "unknown":
        _tell_once(passage, memory, kind, version, now_ns)
        passage.warnings.append(
            "identity.capability_version: this version is not in the registry of its agent type; "
            "it was accepted (register it with PUT /v1/versions)"
        )
    elif entry is not None and entry.fields is not None and message.log is not None:
        extra = outside(message.log, entry.fields)
        if extra:
            passage.warnings.append(
                f"{', '.join(extra)}: not in the field set of this capability_version; kept, not relied on"
            )
    return None


def _retired(passage: Passage, memory: Memory, now_ns: int) -> Verdict:
    message = passage.message
    digest = "sha256:" + message.digest.hex()
    problem = "this capability_version is retired for its agent type; deploy a current one"
    event = notice(
        passage.principal.tenant_id,
        "schema_violation",
        f"refused a message of {message.sender_id}: retired capability_version",
        now_ns,
        passage.principal,
        {
            "agent_id": message.sender_id,
            "capability_version": message.capability_version,
            "violation_reason": f"identity.capability_version: {problem}",
            "raw_payload_hash": digest,
        },
    )
    if passage.agent is not None:
        passage.agent.violation_ns = now_ns
        memory.touch(passage.agent)
    faults = (Fault(path="identity.capability_version", problem=problem),)
    answer = Rejected(reason="schema_violation", faults=faults, raw_payload_hash=digest)
    return Verdict(422, answer, [event])


def _tell_once(passage: Passage, memory: Memory, kind: str, version: str, now_ns: int) -> None:
    if (kind, version) in memory.rulebook.noted or (kind, version) in memory.noted:
        return
    memory.noted.add((kind, version))
    memory.tenant.rulebook_version += 1
    row = {
        "tenant_id": memory.tenant.tenant_id,
        "agent_type": kind,
        "version": version,
        "status": "seen",
        "updated_ns": now_ns,
        "updated_by": passage.principal.entity_id,
    }
    passage.writes.append(Write("versions", row))
    passage.events.append(
        notice(
            memory.tenant.tenant_id,
            "version_unknown",
            f"agent type {kind} sends a version that is not registered",
            now_ns,
            passage.principal,
            {"agent_type": kind, "capability_version": version},
        )
    )
