"""Ruling 2 as a pure function: names, sessions, parents and repeats over a memory made by hand."""

import hashlib
import json
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from observatory.ledger.chain import GENESIS_HASH, ChainHead
from observatory.pipeline.interceptor import intercept
from observatory.pipeline.message_context import MessageContext
from observatory.pipeline.placement import add_message_reads, place_message
from observatory.pipeline.rows import AgentRow, StepRow, TenantRow
from observatory.pipeline.state import BatchState, Principal, ReadSet, SubmissionResult, TenantConfig
from observatory.protocol.message import Message
from observatory.protocol.otel import uuid_of_trace
from observatory.protocol.steps import step_name
from tests.samples import decision_log, envelope

TENANT = "tnt_default"
WHO = Principal(tenant_id=TENANT, role="agent", key_id="key_1")


def message_of(sent: dict[str, Any]) -> Message:
    found = intercept(json.dumps(sent).encode())
    assert isinstance(found, Message)
    return found


def empty_memory() -> BatchState:
    return BatchState(TenantRow(tenant_id=TENANT, tenant_no=1), ChainHead(0, GENESIS_HASH), TenantConfig())


def passage_of(sent: dict[str, Any]) -> MessageContext:
    agent = AgentRow(agent_no=1, entity_id="agt_1", agent_id="a")
    return MessageContext(message_of(sent), WHO, 0, agent=agent)


def placed(sent: dict[str, Any], memory: BatchState) -> MessageContext:
    """Through the stage and remembered, as the pipeline does it."""
    ctx = passage_of(sent)
    assert place_message(ctx, memory, 0) is None
    assert ctx.session is not None and ctx.member is not None
    memory.steps[ctx.name] = StepRow(
        ctx.name,
        len(memory.steps) + 1,
        ctx.message.digest,
        ctx.session.session_id,
        ctx.step_id,
        f"msg_{len(memory.steps)}",
        "forwarded",
        (),
    )
    ctx.member.last_step = ctx.name
    return ctx


def answer_of(sent: dict[str, Any], memory: BatchState) -> SubmissionResult:
    verdict = place_message(passage_of(sent), memory, 0)
    assert verdict is not None
    return verdict


T, S = "c878f5cf-29c3-444e-9b71-f31f4f04bae1", "219d4924-c2b5-4eb4-a1df-b6bc1a1cc810"
CASES: list[tuple[dict[str, Any], str, str]] = [
    ({"trace_id": T}, T, T),
    ({"trace_id": T.upper()}, T, T),
    ({"trace_id": T.replace("-", "")}, T, T),
    ({"trace_id": T, "step_id": S}, T, S),
    ({"trace_id": T, "step_id": S.upper()}, T, S),
    ({"trace_id": T, "step_id": "one"}, T, f"{T}/one"),
    ({"trace_id": T, "session_id": "chat"}, "chat", T),
    ({"trace_id": T, "session_id": "chat", "step_id": "one"}, "chat", "chat/one"),
    ({"trace_id": T, "session_id": S.upper(), "step_id": "one"}, S, f"{S}/one"),
]


@pytest.mark.parametrize(("meta", "session", "name"), CASES)
def test_session_and_name_follow_from_what_is_declared_s10_s11(
    meta: dict[str, Any], session: str, name: str
) -> None:
    """S10, S11, S13."""
    ctx = placed(decision_log(meta={"parent_step_id": None} | meta), empty_memory())
    assert ctx.session is not None
    assert (ctx.session.session_id, ctx.name) == (session, name)


def test_what_a_message_may_need_is_asked_for_before_it_is_placed_s11() -> None:
    """S11: the parent's row too, or its session could not be found."""
    parent, read_set = str(uuid.uuid4()), ReadSet()
    message = message_of(decision_log(meta={"trace_id": T, "parent_step_id": parent}))
    add_message_reads(message, TENANT, read_set)
    assert {T, parent} <= read_set.steps and read_set.sessions == {T}
    read_set = ReadSet()
    add_message_reads(message_of(decision_log(meta={"step_id": S})), TENANT, read_set)
    assert read_set.steps == {S}


def test_a_child_without_step_id_joins_its_parents_session_s11() -> None:
    """S11: the first known one of several."""
    memory = empty_memory()
    placed(decision_log(meta={"trace_id": T, "session_id": "home", "parent_step_id": None}), memory)
    child = placed(decision_log(meta={"parent_step_id": str(uuid.uuid4()), "parent_step_ids": [T]}), memory)
    assert child.session is not None and child.session.session_id == "home"
    assert memory.tenant.sessions == 1


def test_a_second_content_under_one_trace_is_a_step_of_its_own_s12() -> None:
    """S12: its id depends on trace and body only, so a repeat finds it; the parent is inferred."""
    memory = empty_memory()
    first = placed(decision_log(meta={"trace_id": T, "parent_step_id": None}), memory)
    other = decision_log(meta={"trace_id": T, "parent_step_id": None}, action={"status": "failure"})
    second = placed(other, memory)
    assert second.session is first.session
    assert (second.parents, second.parent_inferred) == ((T,), True)
    assert answer_of(other, memory).answer.step_id == second.step_id
    assert uuid.UUID(second.step_id).version == 5


@pytest.mark.parametrize("kind", ["log", "trace", "envelope"])
def test_a_repeat_is_the_same_name_with_the_same_bytes_s21(kind: str) -> None:
    """S21, S22: other bytes are a conflict where the id was declared, and told of by hash."""
    memory = empty_memory()
    meta = {} if kind == "trace" else {"step_id": S}
    sent = envelope("text") if kind == "envelope" else decision_log(meta={"trace_id": T} | meta)
    ctx = placed(sent, memory)
    verdict = answer_of(sent, memory)
    assert (verdict.code, verdict.answer.message_id) == (202, memory.steps[ctx.name].message_id)
    assert verdict.events == []
    if kind == "trace":
        return
    other = sent | ({"payload": {"content": "x"}} if kind == "envelope" else {"control": None})
    conflict = answer_of(other, memory)
    assert (conflict.code, conflict.answer.reason) == (409, "id_conflict")
    [event] = conflict.events
    digest = hashlib.sha256(json.dumps(other).encode()).hexdigest()
    assert event.event_type == "security_violation"
    assert event.detail["raw_payload_hash"] == f"sha256:{digest}"


def test_an_envelope_belongs_to_its_declared_session_else_to_its_trace_s14() -> None:
    """S14."""
    plain, declared = envelope("text"), envelope("text", metadata={"session_id": "room-1"})
    for sent, session in ((plain, str(uuid.UUID(plain["trace_id"]))), (declared, "room-1")):
        ctx = placed(sent, empty_memory())
        assert ctx.session is not None
        assert (ctx.session.session_id, ctx.name) == (session, sent["message_id"])


spelled = st.uuids().flatmap(lambda one: st.sampled_from((str(one), str(one).upper(), one.hex)))
texts = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zs")), min_size=1, max_size=40)


@given(st.none() | spelled | texts, st.none() | spelled | texts.map(lambda text: text.replace("/", "-")))
def test_a_message_brings_the_name_its_step_has(step_id: str | None, session_id: str | None) -> None:
    """The interceptor names a step as `step_name` does, which readers of the archive ask."""
    found = intercept(json.dumps(decision_log(meta={"step_id": step_id, "session_id": session_id})).encode())
    if not isinstance(found, Message):
        return  # no name at all: refused, and the interceptor's own tests say which
    session = found.session_id or uuid_of_trace(found.trace_id)
    meant = None if found.step_id is None else step_name(session, found.step_id, found.message_id)
    assert found.name == meant


def test_an_envelope_is_named_by_its_own_id() -> None:
    found = message_of(envelope("text"))
    assert found.name == found.message_id == step_name("s", found.step_id or "", found.message_id)


def test_a_batch_is_recalled_with_its_own_steps_and_no_older_ones() -> None:
    """What was read from the archive is read again: an act may have changed it since."""
    before = empty_memory()
    old, new = (StepRow(name, 1, b"", "s", name, "msg_1", "held", ()) for name in ("old", "new"))
    before.steps["old"], before.fresh["new"] = old, new
    assert before.step("old") is old and before.step("new") is new and before.step("none") is None
    known = before.settled(keeps_steps=True)
    assert known is not None
    after = empty_memory()
    after.recall(known, is_pending=True)
    assert (after.step("old"), after.step("new")) == (None, new)
    after.steps["later"] = old
    assert known.step("later") is None  # a copy: the batch before may yet be run again
    committed = empty_memory()
    committed.recall(known)
    assert committed.step("new") is None  # it can be read by now
    under_lock = known.settled()
    assert under_lock is not None and under_lock.step("new") is None
