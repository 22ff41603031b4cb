"""What is appended stays, in order, exactly, once; what fails leaves nothing. Over both databases."""

from __future__ import annotations

import json
import uuid
from hashlib import sha256
from typing import Any

import msgspec
import pytest

from observatory.errors import StatementFailed
from observatory.features.access import commands as access
from observatory.ledger.verify import ChainCheck, payload_matches
from observatory.pipeline.ports import EventFilter, MessageFilter
from observatory.pipeline.rows import AuditRow, MessageRow, RowWrite
from observatory.pipeline.sender_clock import BEHIND
from observatory.pipeline.state import (
    HOME_TENANT,
    Command,
    ReadSet,
    RejectedBody,
    SubmissionResult,
    TransactionChanges,
)
from observatory.protocol.clock import from_ns
from observatory.protocol.message import Message
from observatory.store import postgres_append, reads, sqlite_append
from tests.contract.conftest import OTHER_TENANT, Harness
from tests.samples import decision_log, envelope


def log(**meta: Any) -> dict[str, Any]:
    return decision_log(meta={"step_id": str(uuid.uuid4()), "session_id": "ses-1", **meta})


def assert_whole(harness: Harness, tenant_id: str = HOME_TENANT) -> int:
    """The trail verifies from genesis to the head the store reports; returns its length."""
    events = harness.trail_of(tenant_id)
    check = ChainCheck(tenant_id)
    check.feed((event.sequence_number, event.record, event.leaf_hash) for event in events)
    result = check.result(harness.read(harness.store.head(tenant_id)))
    assert result.valid, result.first_break
    return len(events)


@pytest.mark.req(460)
def test_events_of_a_tenant_are_numbered_densely_in_order_and_verify_to_the_head(harness: Harness) -> None:
    for _ in range(3):
        assert {verdict.code for verdict in harness.send(*(log() for _ in range(20)))} == {202}
    numbers = [event.sequence_number for event in harness.trail_of()]
    assert numbers == list(range(1, len(numbers) + 1))
    assert assert_whole(harness) >= 61


def test_what_was_sent_comes_back_byte_for_byte_and_the_record_carries_its_digest(harness: Harness) -> None:
    odd = log(cluster_id="Zürich 🦊 \u2028 \\u00e9")
    raw = json.dumps(odd, ensure_ascii=False, indent=1).encode()
    arrival = harness.arrival(odd)
    arrival.message = msgspec.structs.replace(arrival.message, raw=raw, digest=_digest(raw))
    (verdict,) = harness.submit(arrival)
    stored = harness.read(harness.store.message(HOME_TENANT, verdict.answer.message_id))
    assert stored is not None and stored.raw == raw
    (event,) = harness.read(
        harness.store.events(
            HOME_TENANT,
            EventFilter(after=stored.sequence_number - 1, before=stored.sequence_number + 1),
            5,
            True,
        )
    )
    assert payload_matches(event.record, raw)


def test_a_repeat_answers_as_the_first_did_and_writes_nothing(harness: Harness) -> None:
    first, second = log(), envelope("text")
    answers = [verdict.answer for verdict in harness.send(first, second)]
    length = assert_whole(harness)
    again = harness.send(first, second)
    assert [verdict.code for verdict in again] == [202, 202]
    assert [verdict.answer for verdict in again] == answers
    harness.reopen()
    assert [verdict.answer for verdict in harness.send(first, second)] == answers
    assert assert_whole(harness) == length


def test_a_repeat_is_warned_of_its_time_as_the_first_was_s1300(harness: Harness) -> None:
    """S1300: what was on time is not late for being sent again; what waited in the queue neither."""
    body = log(timestamp=from_ns(harness.now()))
    waits = harness.arrival(log(timestamp=from_ns(harness.now())))
    (first,) = harness.send(body)
    assert not [text for text in first.answer.warnings if "clock" in text]
    harness.wait(2 * 3_600_000_000_000)
    assert harness.send(body)[0].answer == first.answer
    (queued,) = harness.submit(waits)
    assert not [text for text in queued.answer.warnings if "clock" in text]
    (late,) = harness.send(log(timestamp=from_ns(harness.now() - 2 * 3_600_000_000_000)))
    assert [text for text in late.answer.warnings if "clock" in text] == [BEHIND["decision_log"]]


def test_the_same_step_with_other_content_is_a_conflict_and_is_told_of(harness: Harness) -> None:
    body = log()
    harness.send(body)
    length = assert_whole(harness)
    changed = {**body, "action": {**body["action"], "status": "failure"}}
    (verdict,) = harness.send(changed)
    assert verdict.code == 409
    assert assert_whole(harness) == length + 1


def test_two_names_that_share_a_dedupe_key_are_still_two(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    for room in (reads, sqlite_append, postgres_append):
        monkeypatch.setattr(room, "dedupe_key", lambda tenant_id, name: 7)
    first, second = log(), log()
    answers = [harness.send(body)[0].answer for body in (first, second)]
    assert answers[0].sequence_number < answers[1].sequence_number
    assert [harness.send(body)[0].answer for body in (first, second)] == answers
    for body, answer in zip((first, second), answers, strict=True):
        found = harness.read(harness.store.message(HOME_TENANT, body["meta"]["step_id"]))
        assert found is not None and found.sequence_number == answer.sequence_number


def test_a_repeat_within_one_batch_is_found_too(harness: Harness) -> None:
    body = log()
    first, second = harness.send(body, body)
    assert first.answer == second.answer
    assert len(harness.read(harness.store.messages(HOME_TENANT, MessageFilter(), 10, True))) == 1


def test_a_new_process_goes_on_where_the_last_one_ended(harness: Harness) -> None:
    body = log(step_id=None, parent_step_id=None)
    del body["meta"]["step_id"]
    harness.send(body)
    harness.reopen()
    (verdict,) = harness.send({**body, "action": {**body["action"], "status": "failure"}})
    stored = harness.read(harness.store.message(HOME_TENANT, verdict.answer.message_id))
    assert stored is not None and stored.parent_inferred, "the agent's last step is known after a restart"
    assert_whole(harness)
    (session,) = harness.read(harness.store.rows(HOME_TENANT, "sessions", session_id="ses-1"))
    assert session["messages"] == 2
    (agent,) = harness.read(harness.store.rows(HOME_TENANT, "agents"))
    assert (agent["agent_no"], agent["messages"], agent["agent_id"]) == (1, 2, "researcher-alpha-9")
    (member,) = harness.read(harness.store.rows(HOME_TENANT, "members"))
    assert (member["messages"], member["tokens"], member["cost"]) == (2, 2500, 0.084)


def test_a_statement_that_fails_rolls_everything_back(harness: Harness) -> None:
    before = assert_whole(harness)

    def decide(uow: Any) -> SubmissionResult:
        twice = [RowWrite("tenants", {"tenant_id": HOME_TENANT, "display_name": "again", "created_ns": 1})]
        return SubmissionResult(200, None, [], twice)

    with pytest.raises(StatementFailed):
        harness.submit(harness.arrival(log()), Command(harness.admin(), harness.now(), decide))
    assert assert_whole(harness) == before
    assert harness.read(harness.store.messages(HOME_TENANT, MessageFilter(), 10, True)) == []
    assert harness.read(harness.store.rows(HOME_TENANT, "agents")) == []
    assert harness.send(log())[0].code == 202, "the lane goes on"


def test_an_exception_of_the_unit_itself_rolls_back_and_passes_through(harness: Harness) -> None:
    class Defect(Exception):
        pass

    def unit(transaction: Any) -> None:
        memory = transaction.load(HOME_TENANT, ReadSet(), None)
        row = {
            "tenant_id": HOME_TENANT,
            "user_id": "usr_1",
            "name": "a",
            "display_name": "A",
            "role": "viewer",
        }
        transaction.save(memory, TransactionChanges(writes=[RowWrite("users", row | {"created_ns": 1})]))
        raise Defect

    with pytest.raises(Defect):
        harness.transact(HOME_TENANT, unit)
    assert harness.read(harness.store.rows(HOME_TENANT, "users")) == []


@pytest.mark.parametrize("poison", ["\ud800", "x" * 10], ids=["a lone surrogate", "a number beyond 64 bits"])
def test_a_row_no_database_can_hold_is_refused_as_a_statement(harness: Harness, poison: str) -> None:
    def unit(transaction: Any) -> None:
        memory = transaction.load(HOME_TENANT, ReadSet(), None)
        number = memory.head.sequence_number + 1
        wide = 1 if poison == "\ud800" else 1 << 70
        message = MessageRow(number, poison, "s", "n", wide, "text", "forwarded", None, False, None, b"", b"")
        transaction.save(memory, TransactionChanges(messages=[message]))

    with pytest.raises(StatementFailed):
        harness.transact(HOME_TENANT, unit)
    assert harness.send(log())[0].code == 202
    assert_whole(harness)


def test_a_tenant_nobody_created_gets_nothing_written(harness: Harness) -> None:
    unread = RejectedBody(
        harness.admin("tnt_unborn"), harness.now(), None, None, "not JSON", "sha256:" + "0" * 64, None
    )
    for item in (harness.arrival(log(), "tnt_unborn"), unread):
        with pytest.raises(StatementFailed):
            harness.submit(item, tenant_id="tnt_unborn")
    assert harness.read(harness.store.head("tnt_unborn"))[0] == 0
    assert harness.trail_of("tnt_unborn") == []
    assert harness.sql(f"SELECT count(*) FROM {harness.trail}") == [(1,)], "only the home tenant's making"
    assert harness.read(harness.store.rows("tnt_unborn", "agents")) == []


def test_new_tenants_get_numbers_and_chains_of_their_own(harness: Harness) -> None:
    for tenant_id in (OTHER_TENANT, "tnt_third"):
        harness.create_tenant(tenant_id)
        harness.send(log(), log(), tenant_id=tenant_id)
        assert_whole(harness, tenant_id)
    numbers = [row[0] for row in harness.sql("SELECT tenant_no FROM chain_heads ORDER BY tenant_no")]
    assert numbers == [1, 2, 3]
    assert [row["tenant_id"] for row in harness.read(harness.store.tenant_rows())] == [
        HOME_TENANT,
        OTHER_TENANT,
        "tnt_third",
    ]


def test_making_a_tenant_twice_is_a_conflict(harness: Harness) -> None:
    harness.create_tenant(OTHER_TENANT)
    act = access.create_tenant(harness.admin(OTHER_TENANT), OTHER_TENANT, "again", harness.now())
    assert harness.submit(act, tenant_id=OTHER_TENANT)[0].code == 409


def test_sequence_numbers_given_twice_are_refused_by_the_database(harness: Harness) -> None:
    (event,) = harness.trail_of()

    def unit(transaction: Any) -> None:
        memory = transaction.load(HOME_TENANT, ReadSet(), None)
        row = AuditRow(1, 0, 9, 0, None, None, event.record, event.leaf_hash)
        transaction.save(memory, TransactionChanges(audit=[row]))

    with pytest.raises(StatementFailed):
        harness.transact(HOME_TENANT, unit)


def test_a_revoked_key_and_an_ended_login_are_gone_under_the_lock_and_others_are_not(
    harness: Harness,
) -> None:
    who = harness.admin()
    user = {
        "tenant_id": HOME_TENANT,
        "user_id": "usr_1",
        "name": "ada",
        "display_name": "Ada",
        "role": "admin",
    }
    harness.submit(access.create_user(who, user | {"created_ns": 1}, harness.now()))
    key: dict[str, Any] = {
        "tenant_id": HOME_TENANT,
        "role": "agent",
        "scopes": "[]",
        "user_id": None,
        "agent_id": None,
    }
    key |= {"label": "", "created_ns": 1, "created_by": "usr_1"}
    for name in ("key_a", "key_b"):
        row = key | {"key_id": name, "public_id": name, "key_hash": name.encode()}
        harness.submit(access.create_key(harness.admin(), row, harness.now()))
    login: dict[str, Any] = {
        "tenant_id": HOME_TENANT,
        "user_id": "usr_1",
        "kind": "link",
        "created_ns": 1,
        "expires_ns": 1 << 62,
    }
    for name in ("lgn_a", "lgn_b"):
        row = login | {"login_id": name, "token_hash": name.encode()}
        harness.submit(access.issue_login(harness.admin(), row, harness.now()))
    harness.submit(access.revoke_key(harness.admin(), "key_a", harness.now()))
    harness.submit(
        access.sign_out(
            msgspec.structs.replace(harness.admin(), key_id="lgn_a"), "lgn_a", "usr_1", harness.now()
        )
    )
    doubtful = dict.fromkeys(("key_a", "key_b", "lgn_a", "lgn_b", "key_unknown"), -1)
    memory = harness.transact(HOME_TENANT, lambda tx: tx.load(HOME_TENANT, ReadSet(keys=doubtful), None))
    assert memory.revoked_keys == {"key_a", "lgn_a", "key_unknown"}
    assert harness.read(harness.store.principal_by_key("key_a")) is None
    found = harness.read(harness.store.principal_by_key("key_b"))
    assert found is not None and found[0].key_id == "key_b" and found[1] == b"key_b"
    assert harness.read(harness.store.login_by_token(b"lgn_a")) is None
    held = harness.read(harness.store.login_by_token(b"lgn_b"))
    assert held is not None and held["role"] == "admin"


def _digest(raw: bytes) -> bytes:
    return sha256(raw).digest()


def test_a_message_of_each_form_is_found_by_any_of_its_names(harness: Harness) -> None:
    named, sent = log(step_id="step 7"), envelope("text")
    first, second = harness.send(named, sent)
    for name in (first.answer.message_id, "ses-1/step 7", second.answer.message_id, sent["message_id"]):
        found = harness.read(harness.store.message(HOME_TENANT, name))
        assert found is not None, name
    assert (
        harness.read(harness.store.message(HOME_TENANT, "msg_0195f000-0000-7000-8000-000000000001")) is None
    )
    assert isinstance(harness.arrival(sent).message, Message)
