"""The schedule: jobs, their runs, the leader's lease, dead letters.

A job fires once for a time: `job_runs` has one row for each (job, scheduled_for), whoever tries, and is
inserted before anything is sent. A lease belongs to the house, not to a tenant: its epoch only grows, and
what a leader writes is written only while its epoch is the newest. No row is ever deleted.
"""

from alembic import op

revision = "0008"
down_revision = "0007"

OWNED = ("jobs", "job_runs", "dead_letters")

TABLES = [
    """CREATE TABLE leases (
        name TEXT PRIMARY KEY, holder TEXT NOT NULL, epoch BIGINT NOT NULL, expires_ns BIGINT NOT NULL,
        ticked_ns BIGINT NOT NULL)""",
    """CREATE TABLE jobs (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), job_id TEXT NOT NULL, name TEXT NOT NULL,
        kind TEXT NOT NULL, cron TEXT, zone TEXT NOT NULL, at_ns BIGINT, target_kind TEXT NOT NULL,
        target_name TEXT NOT NULL, intent TEXT NOT NULL, payload TEXT, session_id TEXT,
        misfire TEXT NOT NULL, overlap TEXT NOT NULL, jitter_s BIGINT NOT NULL, grace_s BIGINT NOT NULL,
        max_tries BIGINT NOT NULL, state TEXT NOT NULL, version BIGINT NOT NULL, next_for_ns BIGINT,
        next_ns BIGINT, last_for_ns BIGINT, last_outcome TEXT, last_ns BIGINT, last_seq BIGINT,
        failures BIGINT NOT NULL, runs BIGINT NOT NULL, open_runs BIGINT NOT NULL, queued BIGINT NOT NULL,
        asked_by TEXT, created_ns BIGINT NOT NULL, created_by TEXT NOT NULL, updated_ns BIGINT NOT NULL,
        updated_by TEXT NOT NULL, removed_ns BIGINT,
        PRIMARY KEY (tenant_id, job_id))""",
    "CREATE UNIQUE INDEX jobs_name ON jobs (tenant_id, name) WHERE removed_ns IS NULL AND asked_by IS NULL",
    "CREATE INDEX jobs_due ON jobs (tenant_id, next_ns) WHERE next_ns IS NOT NULL",
    # Of what was handed on or released later: few, so that the commit path hardly knows of it.
    "CREATE INDEX deliveries_later ON deliveries (tenant_id, message_seq) "
    "WHERE sequence_number <> message_seq",
    """CREATE TABLE job_runs (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), job_id TEXT NOT NULL,
        scheduled_for BIGINT NOT NULL, run_id TEXT NOT NULL, epoch BIGINT NOT NULL, state TEXT NOT NULL,
        attempt BIGINT NOT NULL, next_try_ns BIGINT, manual INTEGER NOT NULL, body TEXT, message_id TEXT,
        session_id TEXT, message_seq BIGINT, code BIGINT, reason TEXT, created_ns BIGINT NOT NULL,
        created_by TEXT NOT NULL, ended_ns BIGINT,
        PRIMARY KEY (tenant_id, job_id, scheduled_for))""",
    "CREATE UNIQUE INDEX job_runs_id ON job_runs (tenant_id, run_id)",
    "CREATE INDEX job_runs_due ON job_runs (tenant_id, next_try_ns) WHERE next_try_ns IS NOT NULL",
    """CREATE TABLE dead_letters (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), letter_id TEXT NOT NULL, kind TEXT NOT NULL,
        source_id TEXT NOT NULL, source_name TEXT NOT NULL, subject_id TEXT NOT NULL, reason TEXT NOT NULL,
        preview TEXT NOT NULL, state TEXT NOT NULL, created_ns BIGINT NOT NULL, ended_ns BIGINT,
        ended_by TEXT, PRIMARY KEY (tenant_id, letter_id))""",
    "CREATE INDEX dead_letters_open ON dead_letters (tenant_id, letter_id) WHERE state = 'dead'",
]

# A firing is not taken back: its row keeps its job, its time and its id.
MOVED = (
    "NEW.tenant_id <> OLD.tenant_id OR NEW.job_id <> OLD.job_id OR NEW.scheduled_for <> OLD.scheduled_for "
    "OR NEW.run_id <> OLD.run_id"
)
BACK = "NEW.epoch < OLD.epoch OR NEW.name <> OLD.name"

SQLITE = [
    f"CREATE TRIGGER job_runs_stay BEFORE UPDATE ON job_runs WHEN {MOVED} "
    "BEGIN SELECT RAISE(ABORT, 'a run keeps its job and its time'); END",
    f"CREATE TRIGGER leases_only_grow BEFORE UPDATE ON leases WHEN {BACK} "
    "BEGIN SELECT RAISE(ABORT, 'the epoch of a lease never goes back'); END",
]
SQLITE += [
    f"CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} "
    f"BEGIN SELECT RAISE(ABORT, '{table} keeps its rows'); END"
    for table in (*OWNED, "leases")
]

POSTGRES = [
    f"""CREATE FUNCTION refuse_moved_run() RETURNS trigger LANGUAGE plpgsql AS $$
       BEGIN
         IF {MOVED} THEN
           RAISE EXCEPTION 'a run keeps its job and its time'
             USING ERRCODE = 'integrity_constraint_violation';
         END IF;
         RETURN NEW;
       END $$""",
    f"""CREATE FUNCTION refuse_older_epoch() RETURNS trigger LANGUAGE plpgsql AS $$
       BEGIN
         IF {BACK} THEN
           RAISE EXCEPTION 'the epoch of a lease never goes back'
             USING ERRCODE = 'integrity_constraint_violation';
         END IF;
         RETURN NEW;
       END $$""",
    "CREATE TRIGGER job_runs_stay BEFORE UPDATE ON job_runs FOR EACH ROW EXECUTE FUNCTION refuse_moved_run()",
    "CREATE TRIGGER leases_only_grow BEFORE UPDATE ON leases "
    "FOR EACH ROW EXECUTE FUNCTION refuse_older_epoch()",
]
for _table in (*OWNED, "leases"):
    _mine = "tenant_id = current_setting('app.tenant')"
    POSTGRES += [
        f"CREATE TRIGGER {_table}_no_delete BEFORE DELETE ON {_table} "
        "FOR EACH ROW EXECUTE FUNCTION refuse_change()",
        f"CREATE TRIGGER {_table}_no_truncate BEFORE TRUNCATE ON {_table} "
        "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()",
        f"GRANT SELECT, INSERT, UPDATE ON {_table} TO observatory_app",
    ]
    if _table in OWNED:
        POSTGRES += [
            f"ALTER TABLE {_table} ENABLE ROW LEVEL SECURITY",
            f"ALTER TABLE {_table} FORCE ROW LEVEL SECURITY",
            f"CREATE POLICY tenant ON {_table} USING ({_mine}) WITH CHECK ({_mine})",
        ]


def upgrade() -> None:
    for statement in TABLES:
        op.execute(statement)
    for statement in SQLITE if op.get_context().dialect.name == "sqlite" else POSTGRES:
        op.execute(statement)
