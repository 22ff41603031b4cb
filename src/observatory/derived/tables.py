"""Tables of the derived store: data that can be rebuilt from the archive, the same on both databases.

There are no migrations: when `DERIVED_VERSION` differs everything is dropped and folded again. Every key
starts with the tenant. Text from payloads is only in `insight_facts`, in the goals of
`insight_session_lines` and in the search index, so that it can be deleted with its payload. The search
index has its own DDL per dialect (search_sqlite.py, search_postgres.py).
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    Index,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)

DERIVED_VERSION = "2"
DERIVED = MetaData()
KINDS = {"t": Text, "i": BigInteger, "f": Float, "b": LargeBinary}


def _table(name: str, key: str, spec: str, *indexes: str) -> Table:
    """`spec` is `column:kind` or `column:kind!` for NOT NULL; `indexes` name columns after the tenant."""
    columns = [Column("tenant_id", Text, nullable=False)]
    for word in spec.split():
        column, kind = word.split(":")
        columns.append(Column(column, KINDS[kind[0]](), nullable=not kind.endswith("!")))
    table = Table(
        f"insight_{name}",
        DERIVED,
        *columns,
        PrimaryKeyConstraint("tenant_id", *key.split()),
        sqlite_with_rowid=False,
    )
    for index in indexes:
        words = index.split()
        Index(f"insight_{name}_{words[0]}", table.c.tenant_id, *(table.c[word] for word in words))
    return table


# How far each tenant was folded (`fold`) and when the row at the cursor was committed; and how many messages
# were skipped (`skipped`: a fold failed, `unread`: its content did not decode).
cursors = _table("cursors", "name", "name:t! seq:i! at_ns:i!")

# One row per message. `name_key` is the 8-byte key of the step's name (store/keys.py), by which links find
# it.
# `cost` is what this step added (ruling 19); `reported` the cumulative figure as sent. The index by session
# covers all columns a spread or a blast radius needs of a session's steps.
steps = _table(
    "steps",
    "seq",
    "seq:i! name_key:i! span_key:i! session_no:i! agent_no:i! recipient_no:i! message_type:t! state:t! "
    "status:t tool:t cost:f! reported:f tokens:i! confidence:f entropy:f terminal:i! cluster_id:t at_ns:i!",
    "session_no seq name_key span_key agent_no recipient_no state status tool cost at_ns",
    "name_key",
    "span_key",
    "agent_no seq",
    "at_ns",
    "confidence",
)
# The cumulative figure an agent's next report in a session is compared with.
totals = _table("totals", "session_no agent_no", "session_no:i! agent_no:i! total:f! seq:i!")
# Causality as declared: a child and the key of a parent's name (or of its span, `kind` span).
# A covering index has those of a session in order, as for its steps.
links = _table(
    "links",
    "seq parent_key",
    "seq:i! parent_key:i! kind:t! session_no:i!",
    "parent_key",
    "session_no seq parent_key kind",
)

# Envelopes that name a span are few: a later step with that span finds them.
SPANS = text("kind = 'span'")
Index(
    "insight_links_spans", links.c.tenant_id, links.c.parent_key, sqlite_where=SPANS, postgresql_where=SPANS
)
# Links from one session into another: a link with its parent's session first, once both steps are known; for
# uses of its facts only that there are any (`kind` use, 0 for key and number). So children in other sessions
# are found without searching for the name of every step.
crossings = _table(
    "crossings",
    "from_no session_no parent_key seq kind",
    "from_no:i! session_no:i! parent_key:i! seq:i! kind:t!",
)

# Counters by minute (at_ns // 60e9): the source of the map's rates, its replay and the cost heatmap.
agent_minutes = _table(
    "agent_minutes",
    "minute agent_no",
    "minute:i! agent_no:i! messages:i! failures:i! violations:i! alerts:i! tokens:i! cost:f!",
    "agent_no minute",
)
session_minutes = _table(
    "session_minutes",
    "minute session_no",
    "minute:i! session_no:i! messages:i! tokens:i! cost:f!",
    "session_no minute",
)
# The same by second (at_ns // 1e9), for the whole tenant: the throughput panel shows the last minute by
# second.
seconds = _table("seconds", "second", "second:i! messages:i! failures:i! violations:i! cost:f!")
# kind: causal (a child's agent follows a parent's), message (declared recipient)
edge_minutes = _table(
    "edge_minutes",
    "minute from_no to_no kind",
    "minute:i! from_no:i! to_no:i! kind:t! messages:i! failures:i! latency_ms:i!",
)
# kind: cluster, type, tool, model, each as the message named it; label is empty where it named none.
label_minutes = _table(
    "label_minutes",
    "minute kind label",
    "minute:i! kind:t! label:t! messages:i! failures:i! tokens:i! cost:f!",
)
# Where an agent's cumulative figure differs from the sum of its steps. kind: fell, differs
gaps = _table(
    "gaps",
    "seq",
    "seq:i! session_no:i! agent_no:i! kind:t! reported:f! computed:f! gap:f! at_ns:i!",
    "session_no seq",
    "agent_no seq",
)

# Every string an agent added to its memory, once per agent and session. `fact_key` is the key of its
# normalised text: the same claim has the same key wherever it is made. `subject` and `value` are what drift
# compares, if the text has that form. `fact_id` is its step's number shifted by 18 bits, plus its index.
facts = _table(
    "facts",
    "fact_id",
    "fact_id:i! seq:i! session_no:i! agent_no:i! cluster_id:t at_ns:i! fact_key:i! subject_key:i subject:t "
    "value:t text:t!",
    "fact_key fact_id",
    "seq",
    "subject_key value fact_id",
    "agent_no fact_id",
    "session_no fact_id",
    "cluster_id fact_id",
)
# A step that used a fact: kind declared | exact | near, weight 0–1; `copy_id` is the fact it derived or 0.
# `from_no` and `from_agent` are the fact's session and agent: a covering index has those of a session in
# order,
# and uses between agents are counted without reading any fact. A step has several uses: its number leads the
# key, so that new ones are appended at the end.
uses = _table(
    "uses",
    "seq fact_id",
    "seq:i! fact_id:i! kind:t! weight:f! agent_no:i! session_no:i! copy_id:i! from_no:i! from_agent:i!",
    "from_no fact_id seq kind weight session_no copy_id",
    "from_agent seq agent_no",
)
# Where a claim was first made in a session, by an agent, in a cluster: `claim_key` is a hash of text and
# scope.
claims = _table("claims", "claim_key", "claim_key:i! fact_id:i!")
# What an agent may have received: its latest sessions, and its latest senders (`number:seq`).
reach = _table("reach", "agent_no", "agent_no:i! rooms:t! mail:t!")

# What a line of the session table shows next to the session's own row (features/sessions/types_lines.py).
# `turn` is the sequence number of the last change to the line: readers of lines continue from there.
session_lines = _table(
    "session_lines",
    "session_no",
    "session_no:i! turn:i! last_seq:i! goal_seq:i! goal:t goal_key:t confidence:f trail:t! crew:t! ended:i!",
    "turn",
)
# The alerts of the alert tray, and what ends them; their text is read from the record.
alerts = _table("alerts", "seq", "seq:i! kind:t! session_no:i! agent_no:i! starts:i! at_ns:i!", "kind seq")

findings = _table(
    "findings", "finding_id", "finding_id:i! kind:t! seq:i! session_id:t! agent_id:t! at_ns:i! body:t!"
)

# Search. One document per message: its words (features/search/words.py), which the dialect's own index
# follows
# by triggers (search_sqlite.py, search_postgres.py), and the sign bits of its embedding. `turn` is the
# sequence
# number of the vector's last change: readers that cache vectors continue from there. A rowid table: long rows
# fit its pages better.
# `meant`: the number of leading characters that are embedded.
documents = Table(
    "insight_documents",
    DERIVED,
    Column("tenant_id", Text, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("meant", BigInteger, nullable=False),
    Column("body", Text, nullable=False),
    PrimaryKeyConstraint("tenant_id", "seq"),
)
vectors = _table("vectors", "seq", "seq:i! turn:i! bits:b!", "turn seq")
