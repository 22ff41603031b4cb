"""The names of tables and columns, for composing queries in two dialects.

The DDL itself is in `migrations/`; the contract suite reads and writes every table on both databases,
so a difference between the two shows there. Small tables are the same on both. The three big ones
differ: on SQLite one packed key (ADR-024), on PostgreSQL the seed's columns.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, Integer, LargeBinary, MetaData, Table, Text
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP

SHARED = MetaData()
SQLITE = MetaData()
POSTGRES = MetaData()


def _table(metadata: MetaData, name: str, spec: str) -> Table:
    kinds = {"t": Text, "i": BigInteger, "s": Integer, "b": LargeBinary, "f": Float, "j": JSONB}
    columns = []
    for word in spec.split():
        column, kind = word.split(":")
        columns.append(Column(column, TIMESTAMP(timezone=True) if kind == "z" else kinds[kind]()))
    return Table(name, metadata, *columns)


tenants = _table(SHARED, "tenants", "tenant_id:t display_name:t created_ns:i disabled_ns:i")
chain_heads = _table(
    SHARED,
    "chain_heads",
    "tenant_id:t tenant_no:i sequence_number:i event_hash:t sessions:i agents:i access_version:i "
    "rulebook_version:i",
)
users = _table(
    SHARED, "users", "tenant_id:t user_id:t name:t display_name:t role:t created_ns:i disabled_ns:i"
)
api_keys = _table(
    SHARED,
    "api_keys",
    "tenant_id:t key_id:t public_id:t key_hash:b role:t scopes:t user_id:t agent_id:t label:t created_ns:i "
    "created_by:t expires_ns:i revoked_ns:i",
)
logins = _table(
    SHARED,
    "logins",
    "tenant_id:t login_id:t token_hash:b user_id:t kind:t created_ns:i expires_ns:i ended_ns:i",
)
versions = _table(
    SHARED, "versions", "tenant_id:t agent_type:t version:t status:t fields:t updated_ns:i updated_by:t"
)
agents = _table(
    SHARED,
    "agents",
    "tenant_id:t agent_no:i entity_id:t agent_id:t agent_type:t capability_version:t cluster_id:t model:t "
    "provider:t hub_address:t trust_level:t first_seen_ns:i last_seen_ns:i violation_ns:i messages:i",
)
sessions = _table(
    SHARED,
    "sessions",
    "tenant_id:t session_no:i session_id:t trace_id:t first_seq:i last_seq:i started_ns:i last_ns:i "
    "messages:i",
)
members = _table(
    SHARED,
    "members",
    "tenant_id:t session_no:i agent_no:i last_step:t last_seq:i messages:i tokens:i cost:f",
)
house = _table(SHARED, "house", "name:t value:t")

audit_log = _table(
    SQLITE,
    "audit_log",
    "key:i tenant_no:i ts_ns:i severity:s session_key:i sender_key:i recipient_key:i record:b leaf_hash:b",
)
lite_messages = _table(
    SQLITE,
    "messages",
    "key:i message_id:t step_id:t session_no:i message_type:t state:t parents:t parent_inferred:s warnings:t "
    "dedupe:i digest:b",
)
lite_payloads = _table(SQLITE, "payloads", "key:i raw:b salt:b shredded_by:i")

audit_events = _table(
    POSTGRES,
    "audit_events",
    "audit_event_id:t tenant_id:t sequence_number:i timestamp:z observed_timestamp:z trace_id:t span_id:t "
    "parent_span_id:t trace_flags:s severity_number:s severity_text:t body:j resource:j attributes:j "
    "event_hash:t previous_hash:t record:b leaf_hash:b sender_key:i recipient_key:i",
)
pg_messages = _table(
    POSTGRES,
    "messages",
    "tenant_id:t sequence_number:i message_id:t step_id:t session_no:i message_type:t state:t parents:t "
    "parent_inferred:s warnings:t dedupe:i digest:b",
)
pg_payloads = _table(POSTGRES, "payloads", "tenant_id:t sequence_number:i raw:b salt:b shredded_by:i")

# What tells the age of a row, whichever of these a table has; ids settle a tie.
AGE = (
    "created_ns", "updated_ns", "session_no", "agent_no", "tenant_id", "user_id", "key_id", "login_id",
    "agent_type", "version", "name",
)  # fmt: skip
# Which small tables operators' acts may write, and what `Directory.rows` may read.
SMALL = {
    table.name: table
    for table in (tenants, chain_heads, users, api_keys, logins, versions, agents, sessions, members, house)
}
# Every table that belongs to a tenant: RLS on PostgreSQL, copied by `observatory copy`.
OWNED = ("tenants", "chain_heads", "users", "api_keys", "logins", "versions", "agents", "sessions", "members")
BIG = ("audit_events", "messages", "payloads")
