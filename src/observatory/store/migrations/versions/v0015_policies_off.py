"""A rule that is off keeps its place and rules nothing; the log of deliveries is read of all endpoints."""

from alembic import op

revision = "0015"
down_revision = "0014"

STATEMENTS = (
    "ALTER TABLE policies ADD COLUMN enabled SMALLINT NOT NULL DEFAULT 1",
    "CREATE INDEX webhook_deliveries_newest ON webhook_deliveries (tenant_id, created_ns, delivery_id)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
