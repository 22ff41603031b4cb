"""Alerts through public doors: rules are made, fire, and reach a webhook, Slack and a mailbox, all real."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest

from tests.flows.databases import ALONE
from tests.flows.hand import answer, done
from tests.flows.receiver import Receiver
from tests.flows.server import Server
from tests.mailbox import Mailbox
from tests.samples import decision_log
from tests.waiting import until

Json = dict[str, Any]
T = TypeVar("T")
RULES, TRIGGERS = "/v1/alert-rules", "/v1/scaling-triggers"


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


@pytest.fixture(scope="module")
def mailbox() -> Iterator[Mailbox]:
    made = Mailbox()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def gateway(
    tmp_path_factory: pytest.TempPathFactory, receiver: Receiver, mailbox: Mailbox
) -> Iterator[Server]:
    settings = {
        "OBSERVATORY_HEARTBEAT_CHECK_S": "1",
        "OBSERVATORY_HEARTBEAT_TIMEOUT_S": "2",
        "OBSERVATORY_EGRESS_ALLOW": f"127.0.0.1:{receiver.port}",
        "OBSERVATORY_SMTP_URL": f"smtp://127.0.0.1:{mailbox.port}?starttls=never",
        "OBSERVATORY_SMTP_FROM": "observatory@example.com",
    }
    with Server(tmp_path_factory.mktemp("alerts") / "data", environment=ALONE | settings) as running:
        yield running


@pytest.fixture(scope="module")
def endpoints(gateway: Server, receiver: Receiver) -> list[str]:
    made = []
    for kind, url in (
        ("webhook", f"{receiver.url}/hook"),
        ("slack", f"{receiver.url}/slack"),
        ("email", "mailto:ops@example.com"),
    ):
        body = {"name": kind, "kind": kind, "url": url, "events": [], "schedule_s": [0.2]}
        answer = gateway.http("admin").post("/v1/webhooks/out", json=body)
        assert answer.status_code == 201, answer.text
        made.append(answer.json()["endpoint_id"])
    return made


def make(gateway: Server, path: str = RULES, **body: Any) -> Json:
    made = gateway.http("admin").post(path, json=body)
    assert made.status_code == 201, made.text
    return dict(made.json())


def events(gateway: Server, kind: str) -> list[Json]:
    found = gateway.http("admin").get("/v1/audit/tenant", params={"limit": 1000}).json()["items"]
    return [event["body"] for event in found if event["body"]["event_type"] == kind]


def hooked(receiver: Receiver, kind: str) -> list[Json]:
    received = [json.loads(call.body) for call in receiver.at("/hook")]
    return [one["data"]["body"] for one in received if one["type"] == kind]


def patiently(look: Callable[[], T]) -> T:
    """As `until`, for what takes seconds: each look is work for the gateway that is waited for."""

    def rested() -> T:
        time.sleep(0.1)
        return look()

    return until(rested)


def opened(gateway: Server) -> list[tuple[str, str]]:
    items = gateway.http("viewer").get("/v1/alerts/open").json()["items"]
    return [(item["name"], item["subject"]) for item in items]


@pytest.mark.req(219)
def test_what_is_amiss_reaches_everybody_once_and_so_does_its_end_s550_s554(
    gateway: Server, receiver: Receiver, mailbox: Mailbox, endpoints: list[str]
) -> None:
    """S540, S550, S551, S552, S554: defaults, the test button, an alert at three places, a kill."""
    http = gateway.http("admin")
    made = http.post(f"{RULES}/defaults", json={"endpoint_ids": endpoints})
    assert made.status_code == 201 and len(made.json()["items"]) == 11
    assert http.post(f"{RULES}/defaults", json={}).json() == {"items": []}
    listed = gateway.http("viewer").get(RULES).json()
    assert listed["mail_is_set"] and {row["condition"] for row in listed["conditions"]} >= {
        "entropy",
        "chain",
    }
    rule = next(row for row in listed["items"] if row["condition"] == "violations")
    path = f"{RULES}/{rule['rule_id']}"

    tested = http.post(f"{path}/test").json()
    assert [(one["kind"], one["ok"]) for one in tested["outcomes"]] == [
        ("webhook", True),
        ("slack", True),
        ("email", True),
    ], tested
    (test,) = hooked(receiver, "alert_tested")
    assert test["test"] is True and test["rule_id"] == rule["rule_id"]
    assert json.loads(receiver.at("/slack")[0].body)["text"].startswith("*[TEST ERROR] ")
    assert mailbox.letters[0]["Subject"].startswith("[TEST ERROR] Schema violations: test sent")
    assert opened(gateway) == [] and events(gateway, "alert_raised") == []

    for _ in range(5):
        assert gateway.send({"swordfish": 1}).status_code == 422
    (alert,) = until(lambda: hooked(receiver, "alert_raised"))
    assert (alert["condition"], alert["value"], alert["threshold"]) == ("violations", "5", "5")
    assert alert["subject"] == "agent:unknown" and alert["link"].startswith(f"{gateway.url}/fleet?peek=")
    assert "swordfish" not in json.dumps(alert)
    text = json.loads(until(lambda: receiver.at("/slack")[1:])[0].body)["text"]
    assert "Schema violations" in text and alert["link"] in text
    letter = until(lambda: mailbox.letters[1:])[0]
    assert letter["To"] == "ops@example.com" and alert["link"] in letter.get_content()
    assert opened(gateway) == [("Schema violations", "agent:unknown")]
    assert http.get(path).json()["open"] == 1
    tray = gateway.http("viewer").get("/v1/alerts").json()["items"]
    assert {item["kind"] for item in tray} == {"violation"}, "S559: what alarms by itself is listed once"
    assert done(gateway, "alerts", "open").splitlines()[1].split("\t")[1:4] == [
        "error",
        "Schema violations",
        "agent:unknown",
    ]

    gateway.kill()
    gateway.start()
    http = gateway.http("admin")
    assert opened(gateway) == [("Schema violations", "agent:unknown")]
    for _ in range(5):
        assert gateway.send({"swordfish": 1}).status_code == 422
    http.put(path, json={"name": rule["name"], "condition": "violations", "endpoint_ids": []})
    patiently(lambda: opened(gateway) == [])
    (end,) = events(gateway, "alert_resolved")
    assert (end["reason"], end["endpoint_ids"]) == ("rule_changed", [])
    assert len(events(gateway, "alert_raised")) == 1 and len(hooked(receiver, "alert_raised")) == 1
    received = gateway.http("viewer").get("/metrics").text
    assert "observatory_alert_rules 11" in received and "observatory_alerts_firing 0" in received


@pytest.mark.req(219)
def test_a_full_queue_asks_for_more_agents_by_webhook_s553(
    gateway: Server, receiver: Receiver, endpoints: list[str]
) -> None:
    """S553: from the terminal; told with direction and amount, again after the cool-down."""
    words = ("--threshold", "3", "--target", "nobody", "--amount", "2", "--cooldown", "2", "--to", "webhook")
    made = answer(gateway, "scaling", "add", "More of them", "queue_depth", "up", *words)
    assert (made["direction"], made["amount"], made["endpoint_ids"]) == ("up", 2, endpoints[:1])
    for _ in range(3):
        boss = {"agent_id": "boss", "agent_type": "lead", "recipient": "type:nobody"}
        assert gateway.send(decision_log(identity=boss)).status_code == 202
    first = patiently(lambda: hooked(receiver, "scaling_triggered"))[0]
    assert (first["subject"], first["value"]) == ("capability:nobody", "3")
    assert (first["direction"], first["amount"]) == ("up", 2)
    patiently(lambda: hooked(receiver, "scaling_triggered")[1:])
    assert events(gateway, "alert_resolved")[0]["condition"] == "violations", "a trigger is not resolved"
    assert "More of them" in done(gateway, "scaling", "list")
    assert "is muted until" in done(gateway, "scaling", "mute", "More of them", "5")
    assert "is unmuted" in done(gateway, "scaling", "mute", "More of them", "0")
    assert "ok" in done(gateway, "scaling", "test", "More of them")
    assert "removed" in done(gateway, "scaling", "remove", "More of them", "--yes")


@pytest.mark.req(218, 219)
def test_a_silent_agent_is_told_and_heard_again_s548_s559(
    gateway: Server, mailbox: Mailbox, endpoints: list[str]
) -> None:
    """S548, S559: by heartbeats that stop, and begin again; the tray shows both."""
    beat = {"agent_id": "sleeper", "status": "active"}
    rule = make(
        gateway, name="Silent", condition="silence", threshold=1, cooldown_s=0, endpoint_ids=endpoints[2:]
    )
    assert gateway.http("agent").post("/v1/heartbeat", json=beat).status_code < 300

    def received(mark: str) -> list[Any]:
        time.sleep(0.1)
        gateway.http("agent").post("/v1/heartbeat", json=beat) if mark == "RESOLVED" else None
        words = f"[{mark}] Silent: agent sleeper"
        return [one for one in mailbox.letters if one["Subject"].startswith(words)]

    (letter,) = until(lambda: received("WARNING"))
    (shown,) = gateway.http("viewer").get("/v1/alerts", params={"kind": "rule"}).json()["items"]
    assert (shown["severity"], shown["open"], shown["until"]) == ("warning", True, None)
    assert shown["link"] == "/fleet?peek=agent:sleeper" and "Silent: agent sleeper" in shown["text"]
    assert f"{gateway.url}/fleet?peek=agent:sleeper" in letter.get_content()
    until(lambda: received("RESOLVED"))
    (shown,) = gateway.http("viewer").get("/v1/alerts", params={"kind": "rule"}).json()["items"]
    assert not shown["open"] and shown["until"] > shown["at"]
    assert gateway.http("admin").delete(f"{RULES}/{rule['rule_id']}").json()["removed"] is True


BAD: list[tuple[Json, int, str]] = [
    ({"condition": "moon"}, 422, "bad_request"),
    ({"condition": "entropy", "scope": "cluster"}, 422, "bad_rule"),
    ({"condition": "entropy", "threshold": -1}, 422, "bad_rule"),
    ({"condition": "gate_age", "window_s": 5}, 422, "bad_rule"),
    ({"condition": "gate_age", "for_s": 100_000}, 422, "bad_request"),
    ({"condition": "entropy", "endpoint_ids": ["whe_nobody"]}, 422, "unknown_endpoint"),
    ({"condition": "entropy", "name": " "}, 422, "bad_request"),
    ({"condition": "entropy", "name": "x" * 101}, 422, "bad_request"),
    ({"condition": "entropy", "colour": "red"}, 422, "bad_request"),
    ({"condition": "entropy", "name": "taken"}, 409, "name_taken"),
]


def test_what_cannot_be_watched_is_refused_at_the_door_s541_s557(gateway: Server) -> None:
    """S541: with one sentence, and nothing is kept."""
    http = gateway.http("admin")
    make(gateway, name="taken", condition="security")
    before = len(http.get(RULES).json()["items"])
    for more, code, reason in BAD:
        answer = http.post(RULES, json={"name": "bad"} | more)
        assert (answer.status_code, answer.json()["reason"]) == (code, reason), answer.text
    trigger = {"name": "bad", "condition": "entropy", "direction": "up"}
    assert http.post(TRIGGERS, json=trigger).json()["reason"] == "bad_rule"
    assert http.post(TRIGGERS, json=trigger | {"condition": "breaker", "amount": 0}).status_code == 422
    assert len(http.get(RULES).json()["items"]) == before
    rule = http.get(RULES).json()["items"][0]["rule_id"]
    assert http.post(f"{RULES}/{rule}/mute", json={"minutes": 20_000}).status_code == 422
    for verb, path in (("get", ""), ("delete", ""), ("post", "/test")):
        answer = getattr(http, verb)(f"{TRIGGERS}/{rule}{path}")
        assert answer.status_code == 404, "an alert rule is no scaling trigger"
    assert "smtp_url" in refused_start(gateway)


def refused_start(gateway: Server) -> str:
    """S557: a gateway whose mail server cannot be meant does not start, and says why without quoting it."""
    bad = {"OBSERVATORY_SMTP_URL": "smtp://u:swordfish@h?starttls=never"}
    with pytest.raises(AssertionError) as ended:
        Server(gateway.folder.parent / "bad", environment=ALONE | bad).start()
    assert "swordfish" not in str(ended.value)
    return str(ended.value)
