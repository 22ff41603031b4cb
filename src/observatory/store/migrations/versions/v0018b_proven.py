"""Whether an acknowledged intervention was acknowledged by a key that is its agent's own (S1143).

Of what was acknowledged before it is not known.
"""

from alembic import op

revision = "0018b"
down_revision = "0017"


def upgrade() -> None:
    op.execute("ALTER TABLE interventions ADD COLUMN proven BIGINT")
