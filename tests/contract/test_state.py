"""What the windows show against the record, over both databases: `observatory verify --state`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from observatory.cli.verify.state_report import StateReport
from observatory.features.access import commands as access
from observatory.features.backup.cli_export import export
from observatory.features.backup.cli_import import import_
from observatory.features.budgets.commands import set_budget
from observatory.features.policies import commands as rulemaking
from observatory.features.registry import commands_eviction as reaping
from observatory.features.relay import commands as interventions
from observatory.features.relay import commands_gates as gates
from observatory.features.relay import commands_undo as reversal
from observatory.features.verification.cli_state import check
from observatory.pipeline.interceptor import intercept
from observatory.pipeline.row_statements import ATTRIBUTE, STATED_TABLES
from observatory.pipeline.state import HOME_TENANT, Command, Principal
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.message import Message
from observatory.protocol.tenant_config import Budget, Match, PolicyRule
from tests.contract.conftest import Harness, SqliteHarness
from tests.contract.test_relay import AGENT, SESSION, act, approve, new_message, pause, person, unpause
from tests.contract.thinking import Thinker

SECRET = b"\x07" * 32


def key_row(harness: Harness, key_id: str = "key_1") -> dict[str, Any]:
    return {
        "tenant_id": HOME_TENANT,
        "key_id": key_id,
        "public_id": f"pub_{key_id}",
        "key_hash": SECRET,
        "role": "viewer",
        "scopes": "[]",
        "user_id": None,
        "agent_id": None,
        "label": "of a test",
        "created_ns": harness.now(),
        "created_by": "usr_ann",
        "expires_ns": None,
        "revoked_ns": None,
    }


def lived(harness: Harness) -> None:
    """Held, rewritten twice, undone once, approved, rejected; rules, a key; thoughts under a seal."""
    harness.send(new_message("0", parent=None), new_message("1", hitl=True, parent="0"))
    pause(harness)
    harness.send(new_message("2", recipient="worker-2"), new_message("w", agent="worker-2"))
    for tool in ("first", "second"):
        body = new_message("2", recipient="worker-2")
        body["action"]["tool_call"] = tool
        new = intercept(json.dumps(body).encode())
        assert isinstance(new, Message)
        who, now = person(harness), harness.now()
        assert act(harness, interventions.rewrite(who, SESSION, AGENT, "2", new, now)).code == 200
    rows = harness.read(harness.store.rows(HOME_TENANT, "interventions"))
    last = max(rows, key=lambda row: row["sequence_number"])
    agent = harness.read(harness.store.rows(HOME_TENANT, "agents", agent_no=last["agent_no"]))[0]
    taken_back = reversal.undo(person(harness), last, SESSION, agent, harness.now())
    assert isinstance(taken_back, Command) and act(harness, taken_back).code == 200
    assert approve(harness, "1").code == 200
    unpause(harness)
    harness.send(new_message("3", hitl=True))
    act(harness, gates.reject_message(person(harness), SESSION, AGENT, "3", None, "no", harness.now()))
    act(harness, interventions.inject(person(harness), SESSION, AGENT, "look again", harness.now()))
    match = Match(sender=("never",))
    rule = PolicyRule(rule_id="pol_1", position=1, effect="deny", match=match, note="kept")
    assert act(harness, rulemaking.create_rule(person(harness), rule, True, harness.now())).code == 201
    cap = Budget(budget_id="bud_1", scope="agent", target=AGENT, soft=None, hard=9.5)
    assert act(harness, set_budget(person(harness), cap, harness.now())).code == 200
    assert act(harness, access.create_key(harness.admin(), key_row(harness), harness.now())).code == 201
    Thinker(harness).whole()


def checked(harness: Harness) -> StateReport:
    return check(harness.url, HOME_TENANT)


def test_rows_are_what_the_record_says_over_both_databases_s1221(harness: Harness) -> None:
    """S1221: at every point of a life."""
    lived(harness)
    report = checked(harness)
    assert report.held, report.sentence
    assert {"messages", "holds", "interventions", "rewrites", "deliveries", "api_keys"} <= set(report.tables)
    assert not any("before commands stated" in one for one in report.not_checked)


EDITS: dict[str, tuple[str, str, str]] = {
    "a message is called held": ("messages", "state", "state = 'held' WHERE step_id = '0'"),
    "its parent is another": ("messages", "parents", "parents = 'x' WHERE step_id = '1'"),
    "who approved": ("holds", "approvals", "approvals = '[\"usr_x\"]' WHERE step_id = '1'"),
    "a rejected one was released": ("holds", "state", "state = 'released' WHERE step_id = '3'"),
    "an operator": ("interventions", "operator_id", "operator_id = 'usr_x'"),
    "an undone rewrite": ("rewrites", "undone_ns", "undone_ns = NULL"),
    "a prompt": ("deliveries", "body", "body = replace(body, 'look', 'skip') WHERE kind = 'inject'"),
    "a read message": ("deliveries", "state", "state = 'acked', acked_ns = 1 WHERE kind = 'message'"),
    "a role of a key": ("api_keys", "role", "role = 'admin' WHERE key_id = 'key_1'"),
    "a rule": ("policies", "effect", "effect = 'allow'"),
    "a cap": ("budgets", "hard", "hard = 99"),
    "a cost": ("sessions", "cost", "cost = cost + 1 WHERE session_no > 0"),
    "a count": ("agents", "messages", "messages = messages + 1"),
}


@pytest.mark.parametrize("what", EDITS)
def test_an_edited_row_is_named_over_both_databases_s1221_s1222(harness: Harness, what: str) -> None:
    """S1221, S1222: table and column; the folder test tries every column."""
    lived(harness)
    table, column, statement = EDITS[what]
    unguarded(harness, table, f"UPDATE {table} SET {statement}")
    found = checked(harness).difference
    assert found is not None and (found.table, found.column or "") == (table, column), found


@pytest.mark.parametrize("returns", [False, True])
def test_who_is_proven_and_who_was_evicted_is_recomputed_s1403(harness: Harness, returns: bool) -> None:
    """S1403: proven by a key of its own once, whatever other keys say; evicted until it speaks."""
    own = Principal(tenant_id=HOME_TENANT, role="agent", key_id="key_own", agent_id="worker-2")
    proven = msgspec.structs.replace(harness.arrival(new_message("0", agent="worker-2")), principal=own)
    harness.submit(proven)
    harness.send(new_message("1", agent="worker-2"), new_message("2", agent="worker-3"))
    entity_id = agent_entity_id(HOME_TENANT, "worker-2")
    act(harness, reaping.evict_by_operator(harness.admin(), entity_id, None, harness.now()))
    if returns:
        harness.send(new_message("3", agent="worker-2"))
    report = checked(harness)
    assert report.held, report.sentence
    for column, value in (("trust_level", "'unverified'"), ("evicted_ns", "1")):
        before = harness.sql(f"SELECT {column} FROM agents WHERE agent_id = 'worker-2'")[0][0]
        harness.sql(f"UPDATE agents SET {column} = {value} WHERE agent_id = 'worker-2'")
        found = checked(harness).difference
        assert found is not None and (found.table, found.column) == ("agents", column), found
        said_before = "NULL" if before is None else repr(before)
        harness.sql(f"UPDATE agents SET {column} = {said_before} WHERE agent_id = 'worker-2'")
    harness.sql("UPDATE agents SET trust_level = 'tenant_verified' WHERE agent_id = 'worker-3'")
    assert checked(harness).difference is not None


def unguarded(harness: Harness, table: str, statement: str) -> None:
    """With every right of whoever runs the database: the triggers are taken away first."""
    if isinstance(harness, SqliteHarness):
        names = harness.sql(f"SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = '{table}'")
        for (name,) in names:
            harness.sql(f"DROP TRIGGER {name}")
    else:
        harness.sql(f"ALTER TABLE {table} DISABLE TRIGGER USER")
    harness.sql(statement)


def test_a_statement_holds_no_secret_and_no_text_s1223(harness: Harness) -> None:
    """S1223: of a key its role and its end, of what was typed the hash."""
    lived(harness)
    texts = [
        event["attributes"][ATTRIBUTE]
        for event in (json.loads(one.record) for one in harness.trail_of())
        if ATTRIBUTE in event["attributes"]
    ]
    stated = {table: row for text in texts for table, rows in json.loads(text).items() for row in rows}
    assert {"api_keys", "policies", "budgets"} <= set(stated)
    assert stated["api_keys"]["role"] == "viewer" and stated["budgets"]["hard"] == "9.5"
    assert stated["api_keys"]["key_hash"].startswith("sha256:") and SECRET.hex() not in "".join(texts)
    assert "of a test" not in "".join(texts) and "kept" not in "".join(texts)
    for one in STATED_TABLES.values():
        assert not {"secret", "old_secret", "token_hash", "key_hash", "headers", "body"} & set(one.plain)
        assert not {"secret", "old_secret", "headers", "body"} & set(one.hashed)


def test_a_row_that_no_event_states_is_one_too_many_s1224(harness: Harness) -> None:
    """S1224."""
    lived(harness)
    columns = "tenant_id, user_id, name, display_name, role, created_ns"
    harness.sql(f"INSERT INTO users ({columns}) VALUES ('{HOME_TENANT}', 'usr_new', 'x', 'x', 'admin', 1)")
    found = checked(harness)
    assert found.sentence == "users usr_new: no event records this row"


def test_a_tenant_without_a_record_is_found_s1306(harness: Harness) -> None:
    """S1306: it opens no window on others, and yet somebody put it there."""
    lived(harness)
    harness.sql("INSERT INTO tenants (tenant_id, display_name, created_ns) VALUES ('tnt_ghost', 'x', 1)")
    assert checked(harness).sentence == "tenants of tnt_ghost: this tenant has no record"


def test_what_an_import_does_not_bring_is_not_checked_s1224(
    sqlite_harness: SqliteHarness, tmp_path: Path
) -> None:
    """S1224: rules, keys, people and inboxes; what it brings is."""
    lived(sqlite_harness)
    out, path = tmp_path / "trail.jsonl", tmp_path / "new" / "observatory.db"
    export(out=out, db=sqlite_harness.url)
    url = f"sqlite:///{path}"
    import_(in_=out, data=str(path.parent), db=url)
    report = check(url, HOME_TENANT)
    assert report.held, report.sentence
    assert any("before the import at event" in one for one in report.not_checked)
