"""An agent paused everywhere carries its pause; a held message knows who made the key it came with."""

from alembic import op

revision = "0017"
down_revision = "0019"

STATEMENTS = (
    "ALTER TABLE agents ADD COLUMN paused_ns BIGINT",
    "ALTER TABLE agents ADD COLUMN paused_by TEXT",
    "ALTER TABLE agents ADD COLUMN pause_seq BIGINT",
    "CREATE INDEX agents_paused ON agents (tenant_id, agent_no) WHERE paused_ns IS NOT NULL",
    "ALTER TABLE holds ADD COLUMN key_maker TEXT",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
