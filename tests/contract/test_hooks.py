"""Webhooks in on both databases: taken once, never lost, and of a stranger's call next to nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any, cast

import pytest

from observatory.features.hooks import commands as hooks
from observatory.features.hooks.call_reader import FORM
from observatory.features.hooks.signatures import Scheme, new_secret
from observatory.features.hooks.types_mapping import HookMapping
from observatory.features.hooks.worker import EACH_A_MINUTE
from observatory.features.policies import commands as rulemaking
from observatory.features.redaction import commands as redaction_rules
from observatory.features.redaction import commands_shredding as shredding
from observatory.features.redaction import worker as retention
from observatory.features.redaction.commands import RedactionRequest
from observatory.pipeline.state import HOME_TENANT, Submission, SubmissionResult
from observatory.protocol.responses import Refused
from observatory.protocol.tenant_config import Match, PolicyRule
from observatory.runtime.worker_context import TenantWatch, WorkerContext
from tests import calling
from tests.contract.conftest import OTHER_TENANT, Harness
from tests.contract.hooking import MAPPING, Caller, messages, received

PULL = {"action": "opened", "number": 7, "title": "mail me at ada@example.org"}
SCHEMES: tuple[Scheme, ...] = ("standard", "github", "stripe", "slack")


def change(caller: Caller, **wanted: Any) -> SubmissionResult:
    act = hooks.change(caller.harness.admin(), caller.hook_id, wanted, caller.harness.now())
    return caller.harness.submit(act)[0]


@pytest.mark.req(113, 128, 224)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_signed_call_becomes_one_message_for_its_target_s525(harness: Harness, scheme: Scheme) -> None:
    """S525, S526: durable, logged as valid, told of; the same delivery again is answered as the first."""
    caller = Caller(harness, scheme)
    body = PULL | {"id": "evt_1", "event_id": "Ev1"}
    first = caller.call(body)
    assert (first.code, first.answer.outcome, first.answer.repeated) == (202, "forwarded", False)
    (message,) = messages(harness)
    assert message["message_id"] == first.answer.message_id
    metadata = message["metadata"]
    assert (metadata["address"], metadata["payload"]) == ("cluster:code-reviewer", {"number": 7})
    assert message["sender"]["entity_id"] == f"sys_{caller.hook_id}"
    again = caller.call(body)
    assert (again.code, again.answer.message_id, again.answer.repeated) == (202, message["message_id"], True)
    assert again.answer.session_id == first.answer.session_id == metadata["session_id"]
    (row,) = caller.calls()
    assert (row["signature"], row["outcome"], row["repeats"]) == ("valid", "forwarded", 1)
    assert json.loads(bytes(row["body"])) == body and row["message"] is None
    assert row["body_hash"].startswith("sha256:") and len(messages(harness)) == 1
    (event,) = received(harness, "webhook_received")
    assert (event["call_id"], event["webhook_message_id"]) == (row["call_id"], row["message_id"])
    assert "ada@" not in json.dumps(event) and caller.secret not in json.dumps(
        received(harness, "hook_created")
    )


def test_deliveries_that_differ_are_two_and_one_body_of_github_is_one_s526(harness: Harness) -> None:
    """S526: of GitHub's the id is not signed, so a body that was taken comes in vain under any id."""
    standard, github = Caller(harness), Caller(harness, "github", name="hub")
    for caller, outcomes in ((standard, [False, False]), (github, [False, True])):
        found = [caller.call(PULL, delivery).answer.repeated for delivery in ("dlv_1", "dlv_2")]
        assert found == outcomes, caller.scheme
    assert github.call(PULL | {"number": 8}, "dlv_1").answer.repeated, "and so does an id"
    ids = {message["metadata"]["session_id"] for message in messages(harness)}
    assert len(messages(harness)) == 3 and len(ids) == 2, "one session for a key, of each hook its own"


def test_a_call_killed_at_any_step_is_brought_to_its_end_once_s527(harness: Harness) -> None:
    """S527: before it was taken nothing happened; after, the caller or the clock finishes it."""
    caller = Caller(harness)
    for step, taken in ((1, 0), (2, 1), (3, 1)):
        body = PULL | {"number": 100 + step}
        for finisher in ("the caller", "the clock"):
            delivery = f"dlv_{step}_{finisher[4:]}"
            before = len(messages(harness))
            caller.keeper.fails_at = len(caller.keeper.handed_in) + step
            with pytest.raises(asyncio.CancelledError):
                caller.call(body, delivery)
            found = caller.calls(delivery_id=delivery)
            assert [row["outcome"] for row in found] == ["taken"] * taken
            caller.start()
            if finisher == "the caller":
                answer = caller.call(body, delivery).answer
                assert (answer.outcome, answer.repeated) == ("forwarded", bool(taken))
            else:
                caller.due()
                caller.due(31 * 10**9)
            assert len(messages(harness)) == before + (1 if taken or finisher == "the caller" else 0)
            assert all(row["outcome"] == "forwarded" for row in caller.calls())
    assert len(received(harness, "webhook_received")) == 5


def test_what_is_not_for_us_is_logged_and_goes_no_further_s525(harness: Harness) -> None:
    """S525, S530: ignored, a ping, a challenge, a body nobody reads, one that does not fit the mapping."""
    hub, chat = Caller(harness, "github"), Caller(harness, "slack", name="chat")
    assert hub.call({"action": "closed"}).answer.outcome == "ignored"
    assert hub.call({"zen": "x"}, event="ping").code == 200
    assert chat.call({"type": "url_verification", "challenge": "c1"}).answer == {"challenge": "c1"}
    bad = (b"not json", b'{"a": 1, "a": 2}', b"\xff\xfe", {"action": "opened"})
    assert [hub.call(body).code for body in bad] == [422] * 4
    outcomes = [row["outcome"] for row in hub.calls(hook_id=hub.hook_id)]
    assert outcomes == ["ignored", "answered", *["unmapped"] * 4]
    assert messages(harness) == [] and len(received(harness, "webhook_received")) == 7
    assert change(hub, mapping=HookMapping(intent="look", target=MAPPING.target)).code == 200
    assert hub.call({"action": "closed"}).answer.outcome == "forwarded", "what was ignored may come again"


def test_a_form_is_read_as_its_senders_mean_it_s525(harness: Harness) -> None:
    """S525: GitHub's and Slack's forms carry JSON in `payload`; any other is an object of texts."""
    every = HookMapping(intent="look", target=MAPPING.target)
    caller = Caller(harness, "slack", every)
    at = caller.keeper.at_ns // 10**9
    for body in (b"payload=%7B%22number%22%3A7%7D", b"command=%2Fdeploy&text=atlas"):
        headers = calling.signed("slack", caller.secret, body, at)
        form = headers | {"content-type": FORM}
        assert caller.call(body, headers=form).code == 202
    twice = b"text=atlas&text=pluto"
    form = calling.signed("slack", caller.secret, twice, at) | {"content-type": FORM}
    assert caller.call(twice, headers=form).code == 422, "who reads it may take either"
    payloads = [message["metadata"]["payload"] for message in messages(harness)]
    assert payloads == [{"number": 7}, {"command": "/deploy", "text": "atlas"}]


@pytest.mark.req(224)
def test_calls_that_are_not_valid_leave_little_and_are_told_of_seldom_s528(harness: Harness) -> None:
    """S528, S532: of a few a minute digest, size and headers of the scheme; of the rest the number."""
    caller = Caller(harness)
    for number in range(EACH_A_MINUTE + 25):
        headers: dict[str, str] | None = {} if number % 5 == 0 else None
        reply = caller.call(PULL, secret=new_secret("standard"), headers=headers)
        assert (reply.code, reply.answer.reason[:9]) == (401, "signature")
    rows = caller.calls()
    assert len(rows) == EACH_A_MINUTE and {row["signature"] for row in rows} == {"invalid", "missing"}
    assert all(
        row["body"] is None and row["message_id"] is None and row["delivery_id"] is None for row in rows
    )
    assert json.loads(rows[1]["headers"])["webhook-id"] == "dlv_1"
    assert [event["calls"] for event in received(harness, "webhook_refused")] == [1]
    caller.ticks += 61
    caller.due(61 * 10**9)
    counted = [row for row in caller.calls() if row["calls"] > 1]
    assert sorted((row["signature"], row["calls"]) for row in counted) == [("invalid", 20), ("missing", 5)]
    assert [event["calls"] for event in received(harness, "webhook_refused")] == [1, EACH_A_MINUTE + 24]
    hook = caller.hook()
    kinds = [hook[f"{kind}_calls"] for kind in ("valid", "invalid", "missing")]
    assert (kinds, hook["last_signature"]) == ([0, 28, 7], "invalid")
    before = len(harness.trail_of())
    caller.ticks += 61
    caller.due(61 * 10**9)
    assert len(harness.trail_of()) == before and messages(harness) == []
    (figure,) = [one for one in caller.receiver.measures() if one.labels.get("signature") == "missing"]
    assert figure.value == 7
    for _ in range(EACH_A_MINUTE + 3):
        caller.call(PULL, headers={})
    harness.read(caller.receiver.drain())
    assert caller.hook()["missing_calls"] == 7 + EACH_A_MINUTE + 3, "a clean stop forgets none"
    for _ in range(EACH_A_MINUTE + 3):
        caller.call(PULL, headers={})
    real = caller.keeper.submit

    async def full(tenant_id: str, items: Sequence[Submission]) -> list[SubmissionResult]:
        return [SubmissionResult(503, Refused(reason="not_durable")) for _ in items]

    caller.keeper.submit = full  # type: ignore[method-assign]
    caller.ticks += 61
    caller.due()
    caller.call(PULL, headers={})
    caller.keeper.submit = real  # type: ignore[method-assign]
    harness.read(caller.receiver.drain())
    assert caller.hook()["missing_calls"] == 7 + 2 * (EACH_A_MINUTE + 3) + 1, "nor does a full disk"


def test_a_secret_is_followed_by_another_with_an_overlap_s522(harness: Harness) -> None:
    """S522: both are taken until the overlap is over; without one the old ends at once."""
    caller, old = Caller(harness), ""
    old, caller.secret = caller.secret, new_secret("standard")

    def rotate(overlap_s: int) -> None:
        now_ns = harness.now()
        harness.submit(hooks.rotate(harness.admin(), caller.hook_id, caller.secret, overlap_s, now_ns))

    rotate(60)
    assert [caller.call(PULL, f"dlv_{secret}", secret).code for secret in (old, caller.secret)] == [202, 202]
    caller.keeper.at_ns += 61 * 10**9
    harness.wait(61 * 10**9)
    assert [caller.call(PULL, "dlv_late", secret).code for secret in (old, caller.secret)] == [401, 202]
    assert caller.hook()["old_secret"] is None, "it is emptied"
    old, caller.secret = caller.secret, new_secret("standard")
    rotate(0)
    assert [caller.call(PULL, "dlv_none", secret).code for secret in (old, caller.secret)] == [401, 202]
    events = received(harness, "hook_secret_rotated")
    assert [event["old_until"] is None for event in events] == [False, True]
    assert not any(secret in json.dumps(events) for secret in (old, caller.secret))


def test_a_hook_that_is_closed_answers_as_one_that_never_was_s521(harness: Harness) -> None:
    """S521, S530: disabled, removed, unknown; a change under way is seen by the call."""
    caller = Caller(harness)
    assert change(caller, state="disabled").code == 200
    closed = caller.call(PULL)
    assert change(caller, state="active").code == 200 and caller.call(PULL).code == 202
    assert harness.submit(hooks.remove(harness.admin(), caller.hook_id, harness.now()))[0].code == 200
    gone, row = caller.call(PULL), caller.hook()
    assert (row["secret"], row["old_secret"]) == (None, None)
    caller.hook_id = "whk_nowhere"
    assert closed == gone == caller.call(PULL) and closed.code == 404
    assert len(received(harness, "hook_changed")) == 2 and len(received(harness, "hook_removed")) == 1
    racing = Caller(harness, name="racing")
    seen = racing.hook()
    assert change(racing, window_s=20).code == 200
    racing.receiver._rows = Stale(harness.store, seen)  # type: ignore[assignment]
    assert racing.call(PULL, "dlv_r").code == 202, "judged again by what holds now"
    assert racing.keeper.handed_in[0] is not racing.keeper.handed_in[1]


class Stale:
    """Shows the row of before once."""

    def __init__(self, store: Any, seen: dict[str, Any]) -> None:
        self._store, self._seen = store, [seen]

    async def hook_by_id(self, hook_id: str) -> Any:
        return self._seen.pop() if self._seen else await self._store.hook_by_id(hook_id)


def test_names_are_one_of_each_and_another_tenant_has_its_own_s520(harness: Harness) -> None:
    """S520: and what belongs to one tenant is no other's to change."""
    caller = Caller(harness)
    wanted = hooks.NewHook("ci", "github", MAPPING, 300, new_secret("github"))
    acts = [hooks.create(harness.admin(), wanted, harness.now()) for _ in range(2)]
    assert [one.code for one in harness.submit(*acts)] == [409, 409]
    harness.create_tenant(OTHER_TENANT)
    other = harness.admin(OTHER_TENANT)
    (made,) = harness.submit(hooks.create(other, wanted, harness.now()), tenant_id=OTHER_TENANT)
    assert made.code == 201
    for act in (
        hooks.change(other, caller.hook_id, {"state": "disabled"}, harness.now()),
        hooks.rotate(other, caller.hook_id, new_secret("standard"), 0, harness.now()),
        hooks.remove(other, caller.hook_id, harness.now()),
    ):
        assert harness.submit(act, tenant_id=OTHER_TENANT)[0].code == 404
    assert harness.read(harness.store.rows(OTHER_TENANT, "hooks", hook_id=caller.hook_id)) == []
    assert caller.call(PULL).code == 202


def test_a_kept_body_is_redacted_cut_and_shredded_like_a_message_s529(harness: Harness) -> None:
    """S529: redaction rules say of it what they say of messages; with the message it goes."""
    now_ns = harness.now()
    wish = RedactionRequest(type="builtin", name="email", pattern=None, path=None, note="")
    assert (
        harness.submit(redaction_rules.add(harness.admin(), wish, "red_1", "ab" * 32, now_ns))[0].code < 300
    )
    every = HookMapping(intent="look", target=MAPPING.target)
    caller = Caller(harness, mapping=every)
    assert caller.call(PULL).answer.outcome == "forwarded"
    assert caller.call(PULL).answer.repeated
    (row,) = caller.calls()
    assert b"ada@" not in bytes(row["body"]) and b"[redacted:email:" in bytes(row["body"])
    assert "ada@" not in json.dumps(messages(harness))
    assert caller.call(PULL | {"long": "x" * 90_000}, "dlv_2").code == 202
    assert (len(caller.calls()[1]["body"]), caller.calls()[1]["body_cut"]) == (65_536, 1)
    harness.submit(shredding.shred(harness.admin(), [row["message_seq"]], "asked", harness.now()))
    assert [one["body"] is None for one in caller.calls()] == [True, False]
    change(caller, mapping=HookMapping(intent="look", target=MAPPING.target, when="nothing"))
    assert caller.call(PULL, "dlv_3").answer.outcome == "ignored"
    harness.submit(redaction_rules.set_retention(harness.admin(), 2, harness.now()))
    keeper = retention.RetentionWorker(cast(WorkerContext, caller.keeper), TenantWatch(harness.store))
    harness.read(keeper.due(caller.keeper.at_ns + retention.DAY_NS))
    assert [one["body"] is None for one in caller.calls()] == [True, False, False]
    harness.read(keeper.due(caller.keeper.at_ns + 3 * retention.DAY_NS))
    assert all(one["body"] is None and one["body_hash"] for one in caller.calls()), "old ones without it too"


def test_what_the_corridor_refuses_is_noted_and_not_asked_again_s525(harness: Harness) -> None:
    """S525: the outside has no way round the rules between agents."""
    caller = Caller(harness)
    rule = PolicyRule(
        rule_id="pol_1", position=1, effect="deny", match=Match(recipient=("cluster:code-reviewer",))
    )
    harness.submit(rulemaking.create_rule(harness.admin(), rule, True, harness.now()))
    reply = caller.call(PULL)
    assert (reply.code, reply.answer.outcome) == (202, "refused")
    assert caller.call(PULL).answer.outcome == "refused"
    (row,) = caller.calls()
    assert row["reason"] == "policy_denied" and row["repeats"] == 1
    assert row["body"] is not None, "S529: it is archived as refused, and its body goes with it"
    harness.submit(shredding.shred(harness.admin(), [row["message_seq"]], "asked", harness.now()))
    assert caller.calls()[0]["body"] is None


def test_the_log_keeps_its_rows_and_its_deliveries_s526(harness: Harness) -> None:
    """S526: the databases themselves refuse to forget a delivery or a call."""
    caller = Caller(harness)
    caller.call(PULL)
    for statement in (
        "DELETE FROM hook_deliveries",
        "UPDATE hook_deliveries SET call_id = 'whc_other'",
        "DELETE FROM hook_calls",
        "DELETE FROM hooks",
    ):
        assert harness.refuses(statement), statement
    assert harness.read(harness.store.calls_page(HOME_TENANT, None, 10, caller.hook_id, "valid", "forwarded"))
    assert harness.read(harness.store.calls_page(HOME_TENANT, None, 10, signature="missing")) == []
