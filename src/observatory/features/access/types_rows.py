"""The rows that every new tenant starts with."""

from __future__ import annotations

from observatory.ledger.chain import GENESIS_HASH
from observatory.pipeline.event_writer import SYSTEM_SESSION, system_trace
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import BatchState


def tenant_rows(memory: BatchState, display_name: str, created_ns: int) -> list[RowWrite]:
    """The first rows of a tenant: itself, its chain's head, and the session of events without a session."""
    tenant_id = memory.tenant.tenant_id
    head = {
        "tenant_id": tenant_id,
        "tenant_no": memory.tenant.tenant_no,
        "sequence_number": 0,
        "event_hash": GENESIS_HASH,
        "sessions": 0,
        "agents": 0,
        "access_version": 0,
        "rulebook_version": 0,
    }
    system = {
        "tenant_id": tenant_id,
        "session_no": 0,
        "session_id": SYSTEM_SESSION,
        "trace_id": system_trace(tenant_id),
        "first_seq": 1,
        "last_seq": 1,
        "started_ns": created_ns,
        "last_ns": created_ns,
        "messages": 0,
    }
    tenant = {"tenant_id": tenant_id, "display_name": display_name, "created_ns": created_ns}
    return [RowWrite("tenants", tenant), RowWrite("chain_heads", head), RowWrite("sessions", system)]
