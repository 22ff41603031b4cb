"""Control: what is held, told, decided and ruled; the registry's and the members' new columns."""

from alembic import op

revision = "0003"
down_revision = "0002"

OWNED = (
    "holds",
    "rewrites",
    "interventions",
    "deliveries",
    "pulses",
    "decisions",
    "policies",
    "budgets",
    "spend",
    "routes",
    "breakers",
    "kill_switches",
    "instructions",
)

ADDED = [
    "ALTER TABLE agents ADD COLUMN display_name TEXT",
    "ALTER TABLE agents ADD COLUMN capabilities TEXT",
    "ALTER TABLE agents ADD COLUMN owner_id TEXT",
    "ALTER TABLE agents ADD COLUMN team_id TEXT",
    "ALTER TABLE agents ADD COLUMN workspace_id TEXT",
    "ALTER TABLE agents ADD COLUMN evicted_ns BIGINT",
    "ALTER TABLE agents ADD COLUMN cost DOUBLE PRECISION NOT NULL DEFAULT 0",
    "ALTER TABLE agents ADD COLUMN instructions_version BIGINT NOT NULL DEFAULT 0",
    "CREATE INDEX agents_type ON agents (tenant_id, agent_type)",
    "CREATE INDEX agents_cluster ON agents (tenant_id, cluster_id)",
    "ALTER TABLE sessions ADD COLUMN held BIGINT NOT NULL DEFAULT 0",
    "ALTER TABLE sessions ADD COLUMN agents BIGINT NOT NULL DEFAULT 0",
    "ALTER TABLE sessions ADD COLUMN cost DOUBLE PRECISION NOT NULL DEFAULT 0",
    "ALTER TABLE sessions ADD COLUMN spent DOUBLE PRECISION NOT NULL DEFAULT 0",
    "ALTER TABLE sessions ADD COLUMN rejected BIGINT NOT NULL DEFAULT 0",
    "CREATE INDEX sessions_held ON sessions (tenant_id, session_no) WHERE held > 0",
    "ALTER TABLE members ADD COLUMN paused_ns BIGINT",
    "ALTER TABLE members ADD COLUMN paused_by TEXT",
    "ALTER TABLE members ADD COLUMN pause_seq BIGINT",
    "ALTER TABLE members ADD COLUMN arrived_ns BIGINT NOT NULL DEFAULT 0",
    "CREATE INDEX members_paused ON members (tenant_id, session_no, agent_no) WHERE paused_ns IS NOT NULL",
    # What older rows can tell by themselves.
    "UPDATE sessions SET agents = (SELECT count(*) FROM members m WHERE m.tenant_id = sessions.tenant_id "
    "AND m.session_no = sessions.session_no), cost = (SELECT coalesce(sum(m.cost), 0) FROM members m "
    "WHERE m.tenant_id = sessions.tenant_id AND m.session_no = sessions.session_no)",
    "UPDATE sessions SET spent = cost",
    "UPDATE agents SET cost = (SELECT coalesce(sum(m.cost), 0) FROM members m "
    "WHERE m.tenant_id = agents.tenant_id AND m.agent_no = agents.agent_no)",
]

TABLES = [
    # Open holds are few; ended ones stay, for the archive's state and for who ended them.
    """CREATE TABLE holds (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), sequence_number BIGINT NOT NULL,
        session_no BIGINT NOT NULL, agent_no BIGINT NOT NULL, message_id TEXT NOT NULL, step_id TEXT NOT NULL,
        name TEXT NOT NULL, span_id TEXT NOT NULL, message_type TEXT NOT NULL, agent_type TEXT,
        cluster_id TEXT, cause TEXT NOT NULL,
        reason TEXT NOT NULL, recipient TEXT, state TEXT NOT NULL, gate BIGINT NOT NULL, waits TEXT,
        digest {bytes} NOT NULL,
        rewrite_seq BIGINT, quorum BIGINT NOT NULL, approvals TEXT, requested_by TEXT NOT NULL,
        bound BIGINT NOT NULL, deadline_ns BIGINT, on_expiry TEXT NOT NULL, held_ns BIGINT NOT NULL,
        ended_ns BIGINT, ended_by TEXT, released_seq BIGINT, PRIMARY KEY (tenant_id, sequence_number))""",
    "CREATE INDEX holds_open ON holds (tenant_id, session_no) WHERE state = 'held'",
    "CREATE INDEX holds_due ON holds (tenant_id, deadline_ns) "
    "WHERE state = 'held' AND deadline_ns IS NOT NULL",
    """CREATE TABLE rewrites (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), sequence_number BIGINT NOT NULL,
        message_seq BIGINT NOT NULL, raw {bytes}, digest {bytes} NOT NULL, created_ns BIGINT NOT NULL,
        undone_ns BIGINT, PRIMARY KEY (tenant_id, sequence_number))""",
    """CREATE TABLE interventions (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), sequence_number BIGINT NOT NULL,
        intervention_id TEXT NOT NULL, command TEXT NOT NULL, operator_id TEXT NOT NULL,
        session_no BIGINT NOT NULL, agent_no BIGINT NOT NULL, message_id TEXT, message_seq BIGINT,
        before_hash TEXT, after_hash TEXT, note TEXT, issued_ns BIGINT NOT NULL, reversed_ns BIGINT,
        acknowledged_ns BIGINT, confirmed_ns BIGINT, PRIMARY KEY (tenant_id, sequence_number))""",
    "CREATE INDEX interventions_session ON interventions (tenant_id, session_no, sequence_number)",
    """CREATE TABLE deliveries (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), sequence_number BIGINT NOT NULL,
        agent_no BIGINT NOT NULL, sender_no BIGINT NOT NULL, session_no BIGINT NOT NULL, kind TEXT NOT NULL,
        address TEXT, message_seq BIGINT, body TEXT, state TEXT NOT NULL, created_ns BIGINT NOT NULL,
        given_ns BIGINT, acked_ns BIGINT, ended_ns BIGINT,
        PRIMARY KEY (tenant_id, sequence_number, agent_no))""",
    "CREATE INDEX deliveries_open ON deliveries (tenant_id, agent_no, sequence_number) "
    "WHERE state = 'pending'",
    "CREATE INDEX deliveries_parked ON deliveries (tenant_id, sequence_number) WHERE state = 'parked'",
    "CREATE INDEX deliveries_time ON deliveries (tenant_id, created_ns) WHERE message_seq IS NOT NULL",
    """CREATE TABLE pulses (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), agent_no BIGINT NOT NULL,
        heartbeat_ns BIGINT NOT NULL, status TEXT, chained_ns BIGINT NOT NULL, task TEXT, usage TEXT,
        PRIMARY KEY (tenant_id, agent_no))""",
    """CREATE TABLE decisions (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), decision_id TEXT NOT NULL,
        request_seq BIGINT NOT NULL, session_no BIGINT NOT NULL, agent_no BIGINT NOT NULL,
        user_id TEXT NOT NULL, state TEXT NOT NULL, options TEXT NOT NULL, deadline_ns BIGINT,
        auto_option TEXT, option_id TEXT, answered_by TEXT, answered_ns BIGINT, response_seq BIGINT,
        action_id TEXT, created_ns BIGINT NOT NULL, updated_ns BIGINT NOT NULL,
        PRIMARY KEY (tenant_id, decision_id))""",
    "CREATE INDEX decisions_pending ON decisions (tenant_id, user_id) WHERE state = 'pending'",
    """CREATE TABLE policies (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), rule_id TEXT NOT NULL,
        position BIGINT NOT NULL, effect TEXT NOT NULL, matches TEXT NOT NULL, quorum BIGINT NOT NULL,
        deadline_s BIGINT, on_expiry TEXT NOT NULL, note TEXT NOT NULL, created_ns BIGINT NOT NULL,
        updated_ns BIGINT NOT NULL, updated_by TEXT NOT NULL, removed_ns BIGINT,
        PRIMARY KEY (tenant_id, rule_id))""",
    """CREATE TABLE budgets (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), budget_id TEXT NOT NULL, scope TEXT NOT NULL,
        target TEXT NOT NULL, soft DOUBLE PRECISION, hard DOUBLE PRECISION, period TEXT NOT NULL,
        created_ns BIGINT NOT NULL, updated_ns BIGINT NOT NULL, updated_by TEXT NOT NULL, removed_ns BIGINT,
        PRIMARY KEY (tenant_id, budget_id))""",
    """CREATE TABLE spend (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), budget_id TEXT NOT NULL,
        spent DOUBLE PRECISION NOT NULL, period_ns BIGINT NOT NULL, soft_seq BIGINT,
        PRIMARY KEY (tenant_id, budget_id))""",
    """CREATE TABLE routes (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), capability TEXT NOT NULL,
        weights TEXT NOT NULL, updated_ns BIGINT NOT NULL, updated_by TEXT NOT NULL,
        PRIMARY KEY (tenant_id, capability))""",
    """CREATE TABLE breakers (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), capability TEXT NOT NULL, state TEXT NOT NULL,
        window_ns BIGINT NOT NULL, successes BIGINT NOT NULL, failures BIGINT NOT NULL, opened_ns BIGINT,
        probe_seq BIGINT, reason TEXT, forced_by TEXT, PRIMARY KEY (tenant_id, capability))""",
    """CREATE TABLE kill_switches (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), kill_id TEXT NOT NULL, scope TEXT NOT NULL,
        target TEXT NOT NULL, state TEXT NOT NULL, token_hash {bytes}, reason TEXT NOT NULL,
        requested_by TEXT NOT NULL, created_ns BIGINT NOT NULL, expires_ns BIGINT NOT NULL, engaged_ns BIGINT,
        released_ns BIGINT, updated_ns BIGINT NOT NULL, PRIMARY KEY (tenant_id, kill_id))""",
    """CREATE TABLE instructions (
        tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id), agent_type TEXT NOT NULL,
        version BIGINT NOT NULL, text TEXT NOT NULL, note TEXT NOT NULL, created_ns BIGINT NOT NULL,
        created_by TEXT NOT NULL, PRIMARY KEY (tenant_id, agent_type, version))""",
]

# What a person put in the place of a message is archived like a message: it can be undone or shredded, not
# changed.
SQLITE = [
    """CREATE TRIGGER rewrites_fixed BEFORE UPDATE ON rewrites
       WHEN NEW.digest IS NOT OLD.digest OR NEW.message_seq IS NOT OLD.message_seq
            OR NEW.tenant_id IS NOT OLD.tenant_id OR NEW.sequence_number IS NOT OLD.sequence_number
            OR NEW.created_ns IS NOT OLD.created_ns
            OR (NEW.raw IS NOT OLD.raw AND NEW.raw IS NOT NULL)
       BEGIN SELECT RAISE(ABORT, 'a rewrite can only be undone or shredded'); END""",
    "CREATE TRIGGER rewrites_no_delete BEFORE DELETE ON rewrites "
    "BEGIN SELECT RAISE(ABORT, 'rewrites is append-only'); END",
]
POSTGRES = [
    """CREATE FUNCTION only_undone() RETURNS trigger LANGUAGE plpgsql AS $$
       BEGIN
         IF NEW.digest = OLD.digest AND NEW.message_seq = OLD.message_seq
            AND NEW.tenant_id = OLD.tenant_id AND NEW.sequence_number = OLD.sequence_number
            AND NEW.created_ns = OLD.created_ns
            AND (NEW.raw IS NULL OR NEW.raw = OLD.raw) THEN RETURN NEW;
         END IF;
         RAISE EXCEPTION 'a rewrite can only be undone or shredded'
           USING ERRCODE = 'integrity_constraint_violation';
       END $$""",
    "CREATE TRIGGER rewrites_fixed BEFORE UPDATE ON rewrites FOR EACH ROW EXECUTE FUNCTION only_undone()",
    "CREATE TRIGGER rewrites_no_delete BEFORE DELETE ON rewrites "
    "FOR EACH ROW EXECUTE FUNCTION refuse_change()",
    "CREATE TRIGGER rewrites_no_truncate BEFORE TRUNCATE ON rewrites "
    "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()",
]
for _table in OWNED:
    _mine = "tenant_id = current_setting('app.tenant')"
    POSTGRES += [
        f"GRANT SELECT, INSERT, UPDATE ON {_table} TO observatory_app",
        f"ALTER TABLE {_table} ENABLE ROW LEVEL SECURITY",
        f"ALTER TABLE {_table} FORCE ROW LEVEL SECURITY",
        f"CREATE POLICY tenant ON {_table} USING ({_mine}) WITH CHECK ({_mine})",
    ]


# The migrating role owns the tables; forced, their policies would hide every row from it.
FILLED = ("agents", "sessions", "members")


def upgrade() -> None:
    lite = op.get_context().dialect.name == "sqlite"
    for table in () if lite else FILLED:
        op.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
    for statement in (*ADDED, *TABLES):
        op.execute(statement.replace("{bytes}", "BLOB" if lite else "BYTEA"))
    for table in () if lite else FILLED:
        op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
    for statement in SQLITE if lite else POSTGRES:
        op.execute(statement)
