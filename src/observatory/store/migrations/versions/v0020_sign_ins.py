"""A sign-in knows the key it comes from, and ends with it; and when it was used last.

Those that are open when this runs know no key: they end by their hours, as before.
"""

from alembic import op

revision = "0020"
down_revision = "0018b"

STATEMENTS = (
    "ALTER TABLE logins ADD COLUMN key_id TEXT",
    "ALTER TABLE logins ADD COLUMN seen_ns BIGINT",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
