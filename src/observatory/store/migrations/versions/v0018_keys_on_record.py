"""A held message keeps the key it was sent with, so that its delivery names it too (S1140).

What was held before keeps none: the event of its hold is final, and nothing is guessed.
"""

from alembic import op

revision = "0018"
down_revision = "0016"


def upgrade() -> None:
    op.execute("ALTER TABLE holds ADD COLUMN key_id TEXT")
