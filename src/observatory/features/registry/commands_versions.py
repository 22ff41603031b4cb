"""The command that sets the versions of an agent type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import Command, Principal, SubmissionResult, UnitOfWork
from observatory.protocol.responses import Refused
from observatory.protocol.versions import VersionEntry, VersionStatus, parse_semver


def change_versions(
    who: Principal,
    agent_type: str,
    entries: Sequence[VersionEntry],
    now_ns: int,
    was: Mapping[str, VersionStatus] | None = None,
) -> Command:
    """Set all versions of one agent type: versions left out are retired, never deleted."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        memory, now_ns = uow.memory, uow.now_ns
        before = memory.tenant_config.versions.get(agent_type, {})
        if was is not None and was != {entry.version: entry.status for entry in before.values()}:
            why = "these versions were changed meanwhile; reload and try again"
            return SubmissionResult(409, Refused(reason="stale_versions", detail=why))
        named = {entry.version for entry in entries}
        # Another spelling of a named version (v1.0.0 for 1.0.0) gets its status; it is not left out.
        by_semver = {parse_semver(entry.version): entry for entry in entries}
        left_out = [
            msgspec.structs.replace(by_semver[key], version=old.version)
            if (key := parse_semver(old.version)) in by_semver
            else msgspec.structs.replace(old, status="retired")
            for old in before.values()
            if old.version not in named
        ]
        memory.tenant.rulebook_version += 1
        writes = [
            RowWrite(
                "versions",
                {
                    "tenant_id": who.tenant_id,
                    "agent_type": agent_type,
                    "version": entry.version,
                    "status": entry.status,
                    "fields": msgspec.json.encode(entry.fields).decode()
                    if entry.fields is not None
                    else None,
                    "updated_ns": now_ns,
                    "updated_by": who.entity_id,
                },
                key=("tenant_id", "agent_type", "version"),
            )
            for entry in (*entries, *left_out)
        ]
        # Later commands and messages of the batch already use the new registry.
        registry = memory.tenant_config.versions | {
            agent_type: {entry.version: entry for entry in (*entries, *left_out)}
        }
        memory.tenant_config = msgspec.structs.replace(memory.tenant_config, versions=registry)
        memory.judged = {}
        detail = {
            "agent_type": agent_type,
            "versions": {entry.version: entry.status for entry in (*entries, *left_out)},
        }
        event = gateway_event(
            who.tenant_id, "version_registered", f"versions of {agent_type} set", now_ns, who, detail
        )
        return SubmissionResult(200, [*entries, *left_out], [event], writes)

    return Command(who, now_ns, decide)
