"""The schedule through the doors: jobs reach their agents, agents are reminded, what fails is told."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from observatory import Agent, AsyncAgent
from observatory.sdk.errors import Rejected
from tests.flows.hand import answer, done, refused
from tests.flows.server import Server
from tests.flows.tenant import Tenant
from tests.samples import decision_log
from tests.waiting import until

Json = dict[str, Any]
JOB: Json = {
    "name": "sweep",
    "cron": "0 6 29 2 *",
    "target": {"kind": "agent", "name": "sweeper"},
    "intent": "sweep the floor",
    "payload": {"room": 7},
}


@pytest.fixture
def own(server: Server, tmp_path: Path) -> Tenant:
    return Tenant(server, tmp_path / "own")


def inbox(own: Tenant, agent_id: str, many: int = 1) -> list[Json]:
    path = f"/v1/agents/{agent_id}/inbox"

    def look() -> list[Json]:
        items: list[Json] = own.http("admin").get(path, params={"wait": 1}).json()["items"]
        return items if len(items) >= many else []

    return until(look)


def step(agent_id: str, **more: Any) -> Json:
    identity = {"agent_id": agent_id, "agent_type": "sweeping"}
    return decision_log(identity=identity, **({"meta": {"parent_step_id": None}} | more))


def ask(agent_id: str, session_id: str, asked: Any, **more: Any) -> Json:
    """A step that asks for a reminder."""
    text = asked if isinstance(asked, str) else json.dumps(asked)
    action = {"tool_call": "schedule_reminder", "tool_input": text, "status": "success"}
    meta = {"session_id": session_id, "step_id": str(uuid.uuid4()), "parent_step_id": None}
    return step(agent_id, meta=meta, action=action, **more)


def events(own: Tenant, event_type: str) -> list[Json]:
    items = own.http("operator").get("/v1/audit/tenant", params={"limit": 1_000}).json()["items"]
    return [item["body"] for item in items if item["body"]["event_type"] == event_type]


@pytest.mark.req(215, 216, 112)
def test_a_job_from_the_cron_line_to_the_agents_word_s480(own: Tenant) -> None:
    """S467, S475, S480, S481: previewed, made, seen to come, run by hand, acknowledged, kept as history."""
    http = own.http("operator")
    own.send(step("sweeper"))
    seen = http.post("/v1/jobs/preview", json={"cron": "30 2 * * *", "zone": "Europe/Berlin"}).json()
    assert seen["explained"] == "At 02:30 every day" and len(seen["next"]) == len(seen["local"]) == 5
    job = http.post("/v1/jobs", json=JOB | {"cron": "*/5 * * * *", "jitter_s": 20}).json()
    path = f"/v1/jobs/{job['job_id']}"
    assert job["state"] == "active" and job["next_at"] >= job["next_for"]
    soon = http.get("/v1/jobs/upcoming", params={"hours": 1}).json()["items"]
    assert len(soon) in (11, 12) and soon[0]["next_for"] == job["next_for"]
    assert [one["next_at"] for one in soon] == sorted(one["next_at"] for one in soon)
    run = http.post(f"{path}/run")
    assert run.status_code == 202 and run.json()["manual"] is True
    (item,) = inbox(own, "sweeper")
    said = item["message"]
    assert said["payload"]["content"] == "sweep the floor" and said["metadata"]["payload"] == {"room": 7}
    assert said["sender"] == {"entity_id": "sys_scheduler", "entity_type": "system"}

    def newest() -> Json:
        found: Json = http.get(f"{path}/runs").json()["items"][0]
        return found

    until(lambda: newest()["state"] == "sent")
    assert newest()["acknowledged_at"] is None and newest()["message_id"] == item["message_id"]
    own.http("agent").post("/v1/agents/sweeper/inbox/ack", json={"ids": [item["delivery_id"]]})
    assert newest()["acknowledged_at"] is not None
    shown = http.get("/v1/jobs").json()["items"][0]
    assert (shown["last_outcome"], shown["failures"], shown["runs"]) == ("sent", 0, 1)
    assert http.post(f"{path}/pause").json()["next_at"] is None
    changed = http.put(path, json=JOB | {"name": "leap", "payload": {}}).json()
    assert (changed["state"], changed["next_at"], changed["name"]) == ("paused", None, "leap")
    assert http.post(f"{path}/resume").json()["next_for"].endswith("-02-29T06:00:00.000000000Z")
    assert http.delete(path).json() == {"job_id": job["job_id"], "removed": True}
    assert http.get("/v1/jobs").json()["items"] == []
    assert [body["change"] for body in events(own, "job_changed")][::-1] == [
        "paused", "changed", "resumed", "removed",
    ]  # fmt: skip
    (fired,) = events(own, "job_fired")
    assert fired["run_id"] == run.json()["run_id"]


BAD: list[tuple[Json, str | None]] = [
    ({"cron": "0 0 30 2 *"}, "the cron line cannot be parsed: invalid field: day-of-month"),
    ({"cron": "61 * * * *"}, "the cron line cannot be parsed: invalid field: minute"),
    ({"cron": "0 0 31 2 SUN#5", "zone": "UTC"}, None),
    ({"cron": "soon"}, "the cron line cannot be parsed: it needs five fields"),
    ({"cron": "* * * * *", "zone": "Mars/Olympus"}, "unknown time zone"),
    ({"cron": "* * * * *", "at": "2027-01-01T00:00:00Z"}, "a job needs either a cron line or one moment"),
    ({"cron": None}, "a job needs either a cron line or one moment"),
    ({"cron": None, "at": "tomorrow"}, "at must be a time such as"),
    ({"cron": None, "at": "2126-01-01T00:00:00Z"}, "at is more than ten years ahead"),
    ({"target": {"kind": "agent", "name": "agt_ nobody"}}, "target, intent or payload make no valid message"),
    ({"payload": {"x": "y" * 70_000}}, "a payload may have at most 65536 bytes"),
]


def test_what_cannot_be_scheduled_is_refused_with_a_sentence_s467(own: Tenant) -> None:
    """S467: nothing is stored, and the sentence is for a person."""
    http = own.http("operator")
    for given, sentence in BAD:
        heard = http.post("/v1/jobs", json=JOB | given)
        if sentence is None:
            assert heard.status_code == 201, "rare, and it comes"
            continue
        assert heard.status_code == 422, given
        assert heard.json()["detail"].startswith(sentence), heard.text
    assert http.post("/v1/jobs", json=JOB | {"misfire": "maybe"}).status_code == 422
    assert len(http.get("/v1/jobs").json()["items"]) == 1
    assert http.post("/v1/jobs", json=JOB).json()["reason"] == "name_taken"
    assert http.get("/v1/jobs", params={"limit": 0}).status_code == 400


@pytest.mark.req(127)
def test_an_agent_is_reminded_in_its_session_s476(own: Tenant) -> None:
    """S476, S477: once; the past and a delay of 0 are at once; what cannot be is refused and seen."""
    http, session = own.http("operator"), str(uuid.uuid4())
    hour = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    later = {"delay_ms": 3_600_000, "payload": "later"}
    for good in ({"delay_ms": 0, "payload": {"n": 0}}, {"at": hour, "payload": {"n": 1}}, later):
        taken = own.send(ask("keeper", session, good))
        assert taken.status_code == 202, taken.text
    own.send(step("stranger"))
    items = inbox(own, "keeper", 2)
    assert sorted(item["message"]["metadata"]["payload"]["n"] for item in items) == [0, 1]
    assert {item["session_id"] for item in items} == {session}
    received = events(own, "reminder_scheduled")
    assert len(received) == 3 and {body["agent_id"] for body in received} == {"keeper"}
    reminders = http.get("/v1/jobs", params={"reminders": True}).json()["items"]
    assert [one["state"] for one in reminders] == ["active", "done", "done"]
    assert [one["payload"] for one in reminders] == ["later", None, None], "the message has it now"
    assert http.get("/v1/jobs", params={"reminders": False}).json()["items"] == []
    changed = http.put(f"/v1/jobs/{reminders[0]['job_id']}", json=JOB)
    assert (changed.status_code, changed.json()["reason"]) == (409, "not_changeable")
    assert http.delete(f"/v1/jobs/{reminders[0]['job_id']}").status_code == 200
    far = {"delay_ms": 100 * 365 * 86_400_000, "payload": 1}
    bad: list[Any] = [
        far,
        {"at": "2126-01-01T00:00:00Z"},
        {"payload": 1},
        {"delay_ms": 1, "at": hour},
        "no json",
    ]
    bad += [{"delay_ms": "soon"}, {"delay_ms": True}, {"delay_ms": 1, "payload": "x" * 70_000}, [1], None]
    # What no message may carry, and what no clock knows.
    deep, vast = "[" * 700 + "]" * 700, "1" + "0" * 400
    bad += ['{"delay_ms":1,"payload":1e999}', f'{{"delay_ms":1,"payload":{deep}}}', f'{{"delay_ms":{vast}}}']
    for asked in bad:
        message = ask("keeper", session, asked)
        answers = [own.send(message) for _ in range(2)]
        assert {answer.status_code for answer in answers} == {403}, (asked, answers[0].text)
        assert answers[0].json()["reason"] == "bad_reminder" and answers[0].json() == answers[1].json()
    archived = http.get("/v1/messages", params={"session_id": session, "state": "refused"}).json()["items"]
    assert len(archived) == len(bad), "refused, and not lost"
    failed = ask("keeper", session, far)
    failed["action"]["status"] = "failure"
    assert own.send(failed).status_code == 202, "a call that failed asked for nothing"
    assert len(events(own, "reminder_scheduled")) == 3


def test_a_reminder_that_a_person_must_see_is_made_when_they_say_so_s478(own: Tenant) -> None:
    """S478: none while it is held, none when it is rejected."""
    http, session = own.http("operator"), str(uuid.uuid4())
    held = [
        own.send(
            ask("keeper", session, {"delay_ms": 0, "payload": n}, control={"hitl_required": True})
        ).json()
        for n in (1, 2)
    ]
    assert [answer["state"] for answer in held] == ["held", "held"]
    assert events(own, "reminder_scheduled") == []
    body = {"agent_id": "keeper", "message_id": held[0]["message_id"]}
    assert http.post(f"/v1/sessions/{session}/reject", json=body).status_code == 200
    body["message_id"] = held[1]["message_id"]
    assert http.post(f"/v1/sessions/{session}/approve", json=body).status_code == 200
    found = until(lambda: [one for one in inbox(own, "keeper") if one["kind"] == "message"])
    assert [one["message"]["metadata"]["payload"] for one in found] == [2]
    assert len(events(own, "reminder_scheduled")) == 1


@pytest.mark.req(127)
def test_reminders_in_the_agents_own_words_s479(own: Tenant) -> None:
    """S479: both SDKs; it goes on in the session that asked."""
    url, key = own.url, own.key("agent")
    with Agent("plain", agent_type="watch", url=url, key=key) as agent:
        with agent.session() as session:
            asked = session.remind(in_s=0.2, payload={"n": 1})
        assert asked.answer(timeout=10).state == "forwarded"
        with pytest.raises(Rejected):
            agent.remind(in_s=1e12).answer(timeout=10)
        with pytest.raises(TypeError):
            agent.remind(in_s=1, at="2027-01-01T00:00:00Z")
        message = next(agent.incoming(timeout=20))
        assert message.is_reminder and message.payload == {"n": 1} and message.intent == "reminder"
        assert message.session_id == session.session_id
        done = agent.session(continues=message).step("Go on", terminal=True)
        assert done.answer(timeout=10).session_id == session.session_id

    async def speak() -> None:
        async with (
            AsyncAgent("async", agent_type="watch", url=url, key=key) as agent,
            agent.session() as session,
        ):
            await session.remind(at=datetime.now(UTC), payload="now")
            async for message in agent.incoming(timeout=20):
                assert message.is_reminder and message.payload == "now"
                assert message.session_id == session.session_id
                return
            raise AssertionError("no reminder came")

    asyncio.run(speak())


@pytest.mark.req(217)
def test_what_the_clock_could_not_say_is_a_dead_letter_s483(own: Tenant) -> None:
    """S464, S483: to a capability; denied by rule; retried when the rule is gone; the rest let go."""
    http = own.http("operator")
    own.send(step("sweeper"))
    rule = http.post("/v1/policies", json={"effect": "deny", "match": {"sender": ["sys_*"]}}).json()[
        "rule_id"
    ]
    target = {"kind": "capability", "name": "sweeping"}
    job = http.post("/v1/jobs", json=JOB | {"max_tries": 1, "target": target}).json()
    path = f"/v1/jobs/{job['job_id']}"
    for _ in range(3):
        assert http.post(f"{path}/run").status_code == 202

    def dead(many: int) -> list[Json]:
        items: list[Json] = http.get("/v1/dead-letters", params={"state": "dead"}).json()["items"]
        return items if len(items) == many else []

    letters = until(lambda: dead(3))
    assert letters[0]["reason"] == f"refused 1 time, last reason: policy_denied by rule {rule}"
    assert json.loads(letters[0]["preview"])["payload"] == {"room": 7}
    assert http.get(path).json()["failures"] == 3
    assert http.get("/v1/scheduler").json()["dead_letters"] == 3
    assert {one["state"] for one in http.get(f"{path}/runs").json()["items"]} == {"dead"}
    http.delete(f"/v1/policies/{rule}")
    one = f"/v1/dead-letters/{letters[0]['letter_id']}"
    assert http.post(f"{one}/retry").json()["state"] == "retried"
    (item,) = inbox(own, "sweeper")
    assert item["message"]["metadata"]["address"] == "type:sweeping"
    done = http.post("/v1/dead-letters/discard", json={"source_id": job["job_id"], "limit": 1}).json()
    assert len(done["done"]) == 1 and done["more"] is True
    again = http.post("/v1/dead-letters/retry", json={"ids": [one["letter_id"] for one in letters]}).json()
    assert len(again["done"]) == 1 and [one["reason"] for one in again["refused"]] == ["already_ended"] * 2
    inbox(own, "sweeper", 2)
    assert until(lambda: http.get(path).json()["failures"] == 0)
    kinds = ("dead_lettered", "dead_letter_retried", "dead_letter_discarded")
    assert [len(events(own, kind)) for kind in kinds] == [3, 2, 1]


@pytest.mark.req(112, 126)
def test_who_leads_and_when_it_last_looked_is_to_be_seen_s482(own: Tenant) -> None:
    """S482: in the API and in the figures; a dead leader must not look like an empty schedule."""
    http = own.http("operator")

    def leads() -> Json | None:
        found: Json = http.get("/v1/scheduler").json()
        return found if found["leader"] and found["leader"]["is_live"] and found["last_look_at"] else None

    shown = until(leads)
    assert shown is not None
    assert shown["leader"]["is_this_gateway"] and shown["leader"]["epoch"] >= 1
    assert (shown["next_at"], shown["lag_s"]) == (None, 0.0)
    seen = datetime.fromisoformat(shown["last_look_at"]).timestamp()
    assert abs(time.time() - seen) < 20
    figures = http.get("/metrics").text
    for name in ("is_leader 1", "epoch ", "poll_seconds", "lag_seconds", 'runs_total{outcome="sent"}'):
        assert f"observatory_scheduler_{name}" in figures, name


def test_a_kill_switch_holds_what_the_clock_says_s464(own: Tenant) -> None:
    """S464: a summons is talk like any other, and is let go with the rest."""
    admin: httpx2.Client = own.http("admin")
    own.send(step("sweeper"))
    job = admin.post("/v1/jobs", json=JOB).json()
    armed = admin.post("/v1/kill-switch", json={"scope": "global", "reason": "a test"}).json()
    path = f"/v1/kill-switch/{armed['kill_id']}"
    token = admin.post(f"{path}/confirm", json={"token": armed["token"]}).json()["token"]
    assert admin.post(f"{path}/confirm", json={"token": token}).status_code == 200
    admin.post(f"/v1/jobs/{job['job_id']}/run")
    runs = f"/v1/jobs/{job['job_id']}/runs"
    assert until(lambda: admin.get(runs).json()["items"][0]["state"] == "held")
    assert admin.post(f"{path}/release", json={"reason": "over"}).status_code in (200, 202)
    found = until(lambda: [one for one in inbox(own, "sweeper") if one["kind"] == "message"])
    assert found[0]["message"]["payload"]["content"] == "sweep the floor"


@pytest.mark.req(215, 216, 217)
def test_the_schedule_from_the_terminal_s486(own: Tenant) -> None:
    """S486: previewed, added, run, looked at, given up on, retried, removed."""
    assert done(own, "jobs", "preview", "0 9 * * 1-5", "--zone", "Europe/Berlin").startswith("At 09:00 ")
    assert "invalid field: day-of-month" in refused(own, "jobs", "preview", "0 0 30 2 *")
    to = ("--to", "type:sweeping", "--intent", "sweep the floor", "--cron", "0 6 29 2 *", "--tries", "1")
    made = answer(own, "jobs", "add", "sweep", *to, "--payload", '{"room": 7}')
    assert made["target"] == {"kind": "capability", "name": "sweeping"} and made["payload"] == {"room": 7}
    assert "not a JSON object" in refused(own, "jobs", "add", "x", *to, "--payload", "[", code=2)
    rule = own.http("operator").post("/v1/policies", json={"effect": "deny", "match": {"sender": ["sys_*"]}})
    assert "the scheduler's next poll" in done(own, "jobs", "run", "sweep")
    until(lambda: own.http("operator").get("/v1/dead-letters").json()["items"])
    (letter,) = answer(own, "dead-letters", "list", "--kind", "job")["items"]
    own.http("operator").delete(f"/v1/policies/{rule.json()['rule_id']}")
    assert '"room":7' in done(own, "dead-letters", "show", letter["letter_id"][:-3])
    assert "give a letter" in refused(own, "dead-letters", "retry", code=2)
    assert done(own, "dead-letters", "retry", letter["letter_id"]).endswith("retried\n")
    until(lambda: own.http("operator").get("/v1/jobs").json()["items"][0]["last_outcome"] == "sent")
    assert "\tsent\t" in done(own, "jobs", "runs", "sweep")
    assert "0 done" in done(own, "dead-letters", "discard", "--all", "--yes")
    assert done(own, "jobs", "pause", "sweep") == "sweep is paused\n"
    assert "\tpaused\t0 6 29 2 * UTC\t" in done(own, "jobs", "list")
    assert "-02-29 06:00:00" in done(own, "jobs", "resume", "sweep")
    assert "misfire run_once" in done(own, "jobs", "show", "sweep")
    assert answer(own, "jobs", "next", "--hours", "1")["items"] == []
    assert done(own, "jobs", "leader").startswith("leader  gtw_")
    assert "is removed" in done(own, "jobs", "remove", "sweep", "--yes")
    assert "sweep not found" in refused(own, "jobs", "show", "sweep")
