"""The version stage: N and N-1 pass, an unknown version passes with a warning, a retired one does not.

The registry is data per agent type (ruling 5). An unknown version is recorded once per (agent type,
version) as an event, and reported in every answer as a warning.
"""

from __future__ import annotations

from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.message_context import MessageContext
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import BatchState, SubmissionResult
from observatory.protocol.responses import Fault, Rejected
from observatory.protocol.versions import fields_not_accepted, find, judge_version


def check(ctx: MessageContext, memory: BatchState, now_ns: int) -> SubmissionResult | None:
    message = ctx.message
    kind, version = message.agent_type, message.capability_version
    if kind is None or version is None:
        return None
    judged = memory.judged.get((kind, version))
    if judged is None:
        entries = memory.tenant_config.versions.get(kind, {})
        judged = memory.judged[kind, version] = judge_version(entries, version), find(entries, version)
    verdict, entry = judged
    if verdict == "retired":
        return _retired(ctx, memory, now_ns)
    if verdict == "unknown":
        _record_once(ctx, memory, kind, version, now_ns)
        ctx.warnings.append(
            "identity.capability_version: this version is not in the registry of its agent type; "
            "it was accepted (register it with PUT /v1/versions)"
        )
    elif entry is not None and entry.fields is not None and message.log is not None:
        extra = fields_not_accepted(message.log, entry.fields)
        if extra:
            ctx.warnings.append(
                f"{', '.join(extra)}: not in the field set of this capability_version; stored, not validated"
            )
    return None


def _retired(ctx: MessageContext, memory: BatchState, now_ns: int) -> SubmissionResult:
    message = ctx.message
    digest = "sha256:" + message.digest.hex()
    problem = "this capability_version is retired for its agent type; deploy a current one"
    event = gateway_event(
        ctx.principal.tenant_id,
        "schema_violation",
        f"refused a message of {message.sender_id}: retired capability_version",
        now_ns,
        ctx.principal,
        {
            "agent_id": message.sender_id,
            "capability_version": message.capability_version,
            "violation_reason": f"identity.capability_version: {problem}",
            "raw_payload_hash": digest,
        },
    )
    if ctx.agent is not None:
        ctx.agent.violation_ns = now_ns
        memory.touch(ctx.agent)
    faults = (Fault(path="identity.capability_version", problem=problem),)
    answer = Rejected(reason="schema_violation", faults=faults, raw_payload_hash=digest)
    return SubmissionResult(422, answer, [event])


def _record_once(ctx: MessageContext, memory: BatchState, kind: str, version: str, now_ns: int) -> None:
    if (kind, version) in memory.tenant_config.noted or (kind, version) in memory.noted:
        return
    memory.noted.add((kind, version))
    memory.tenant.rulebook_version += 1
    row = {
        "tenant_id": memory.tenant.tenant_id,
        "agent_type": kind,
        "version": version,
        "status": "seen",
        "updated_ns": now_ns,
        "updated_by": ctx.principal.entity_id,
    }
    ctx.writes.append(RowWrite("versions", row))
    ctx.events.append(
        gateway_event(
            memory.tenant.tenant_id,
            "version_unknown",
            f"agent type {kind} sends a version that is not registered",
            now_ns,
            ctx.principal,
            {"agent_type": kind, "capability_version": version},
        )
    )
