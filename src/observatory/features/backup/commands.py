"""The command that records an export over HTTP: every export of the trail is an event (S704)."""

from __future__ import annotations

from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.state import Command, Principal, SubmissionResult, UnitOfWork


def record_export(who: Principal, first: int, last: int, payloads: bool, now_ns: int) -> Command:
    def decide(uow: UnitOfWork) -> SubmissionResult:
        detail = {"from_sequence": first, "to_sequence": last, "payloads": payloads}
        summary = f"events {first} to {last} were exported by {who.entity_id}"
        event = gateway_event(who.tenant_id, "export_created", summary, uow.now_ns, who, detail)
        return SubmissionResult(200, None, [event])

    return Command(who, now_ns, decide)
