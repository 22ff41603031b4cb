"""What sessions reads of the stores."""

from __future__ import annotations

from observatory.features.sessions.queries_alarms import AlarmReads
from observatory.features.sessions.queries_lines import LineReads
from observatory.features.sessions.queries_membership import MembershipQueries

RECORD_QUERIES = (
    AlarmReads,
    MembershipQueries,
)
DERIVED_QUERIES = (LineReads,)
