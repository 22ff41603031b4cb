"""The act behind an export over HTTP: that the trail left the house is an event like any other (S704)."""

from __future__ import annotations

from observatory.pipeline.event_writer import notice
from observatory.pipeline.state import Act, Desk, Principal, Verdict


def tell_export(who: Principal, first: int, last: int, payloads: bool, now_ns: int) -> Act:
    def decide(desk: Desk) -> Verdict:
        detail = {"from_sequence": first, "to_sequence": last, "payloads": payloads}
        summary = f"events {first} to {last} were exported by {who.entity_id}"
        event = notice(who.tenant_id, "export_created", summary, desk.now_ns, who, detail)
        return Verdict(200, None, [event])

    return Act(who, now_ns, decide)
