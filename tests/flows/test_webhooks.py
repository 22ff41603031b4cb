"""Webhooks out through public doors: told, signed, tried again, buried, revived, replayed."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from tests.flows.databases import ALONE
from tests.flows.hand import answer, done, refused
from tests.flows.receiver import Receiver
from tests.flows.server import Server
from tests.samples import decision_log
from tests.waiting import until

Json = dict[str, Any]
OUT = "/v1/webhooks/out"


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, receiver: Receiver) -> Iterator[Server]:
    allowed = ALONE | {"OBSERVATORY_EGRESS_ALLOW": f"127.0.0.1:{receiver.port}"}
    with Server(tmp_path_factory.mktemp("webhooks") / "data", environment=allowed) as running:
        yield running


def make(gateway: Server, receiver: Receiver, *events: str, path: str, **more: Any) -> Json:
    body = {
        "name": path.partition("?")[0],
        "url": f"{receiver.url}{path}",
        "events": events,
        "schedule_s": [0.2, 0.2],
    } | more
    made = gateway.http("admin").post(OUT, json=body)
    assert made.status_code == 201, made.text
    return dict(made.json())


def log(gateway: Server, made: Json, **query: Any) -> list[Json]:
    found = gateway.http("viewer").get(f"{OUT}/{made['endpoint_id']}/deliveries", params=query)
    assert found.status_code == 200, found.text
    return list(found.json()["items"])


def command(gateway: Server, made: Json, verb: str, body: Json | None = None, code: int = 200) -> Json:
    done = gateway.http("admin").post(f"{OUT}/{made['endpoint_id']}/{verb}", json=body)
    assert done.status_code == code, done.text
    return dict(done.json())


@pytest.mark.req(113, 129, 223)
def test_somebody_outside_is_told_signed_and_can_prove_it_s493_s721(
    gateway: Server, receiver: Receiver
) -> None:
    """S490–S493, S501, S504, S509, S511: made, told of a completed task, verified by a foreign library,
    rotated, tested, and all of it in the log. S720, S721: also in that of all endpoints, each try with the
    numbers of the secrets that signed it.
    """
    made = make(gateway, receiver, "task_completed", path="/done?key=hush")
    first, session = made["secret"], str(uuid.uuid4())
    end = {"hitl_required": True, "interrupt_signal": None, "is_terminal": True}
    meta = {"trace_id": session, "session_id": session, "step_id": str(uuid.uuid4()), "parent_step_id": None}
    assert gateway.send(decision_log(meta=meta, control=end)).json()["state"] == "held"
    (hold,) = gateway.http("operator").get("/v1/holds").json()["items"]
    approved = gateway.http("operator").post(
        f"/v1/sessions/{session}/approve",
        json={name: hold[name] for name in ("agent_id", "message_id")} | {"digest": hold["action_digest"]},
    )
    assert approved.status_code == 200, approved.text
    (received,) = until(lambda: receiver.at("/done?key=hush"))
    payload = Webhook(first).verify(received.body, received.headers)
    assert payload["type"] == "task_completed"
    task = payload["data"]["task"]
    assert (task["session_id"], task["agent_id"], task["session_cost"]) == (
        session,
        "researcher-alpha-9",
        0.084,
    )

    second = command(gateway, made, "rotate", {"overlap_s": 60})["secret"]
    tested = command(gateway, made, "test")
    assert (tested["state"], tested["tries"][0]["code"]) == ("delivered", 204)
    assert tested["tries"][0]["signed_with"] == [1, 2]
    newest = receiver.at("/done?key=hush")[-1]
    for secret in (first, second):
        assert Webhook(secret).verify(newest.body, newest.headers)["type"] == "webhook_tested"
    third = command(gateway, made, "rotate", {"overlap_s": 0})["secret"]
    assert command(gateway, made, "test")["tries"][0]["signed_with"] == [3]
    newest = receiver.at("/done?key=hush")[-1]
    assert Webhook(third).verify(newest.body, newest.headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(second).verify(newest.body, newest.headers)

    shown = log(gateway, made)
    assert [one["event_type"] for one in shown] == ["webhook_tested", "webhook_tested", "task_completed"]
    page = gateway.http("viewer").get(f"{OUT}/{made['endpoint_id']}/deliveries", params={"limit": 2}).json()
    (rest,) = log(gateway, made, cursor=page["next_cursor"])
    assert rest["delivery_id"] == received.headers["webhook-id"]
    whole = gateway.http("viewer").get(f"{OUT}/{made['endpoint_id']}/deliveries/{rest['delivery_id']}").json()
    assert whole["payload"].encode() == received.body and whole["tries"][0]["ok"] is True
    whole_log = (
        gateway.http("viewer").get(f"{OUT}/deliveries", params={"event_type": "task_completed"}).json()
    )
    assert {
        **rest,
        "endpoint_name": "/done",
        "endpoint_kind": "webhook",
        "endpoint_removed": False,
    } in whole_log["items"]
    slack = make(gateway, receiver, path="/services/T0/B0/hush", kind="slack", name="slack")
    assert slack["secret"] is None and "hush" not in slack["url"]
    for role, shows in (("admin", True), ("viewer", False)):
        text = gateway.http(role).get(OUT).text
        assert ("key=hush" in text) is shows and "whsec_" not in text and "B0/hush" not in text
    trail = gateway.http("admin").get("/v1/audit/tenant", params={"limit": 1000}).text
    for secret in ("hush", first, second, third):
        assert secret not in trail and secret not in gateway.log


@pytest.mark.req(130, 131, 132, 234)
def test_what_fails_is_tried_again_buried_and_revived_s497(gateway: Server, receiver: Receiver) -> None:
    """S494, S496, S497, S505, S506: one id over all tries; a redirect is a failure; the letter is tried again
    by a person; 410 ends the endpoint; a range is told once more, with what happened meanwhile.
    """
    made = make(gateway, receiver, "message_delivered", path="/fails")
    receiver.answer = lambda arrived: 302 if arrived.path == "/fails" else 204
    receiver.headers = {"location": "http://169.254.169.254/latest/meta-data/"}
    gateway.send(decision_log())
    (dead,) = until(lambda: log(gateway, made, state="dead"))
    tries = receiver.at("/fails")
    assert len(tries) == 3 and len({one.body for one in tries}) == 1
    assert {one.headers["webhook-id"] for one in tries} == {dead["delivery_id"]}
    assert dead["last_code"] == 302
    letters = gateway.http("viewer").get("/v1/dead-letters", params={"kind": "webhook"}).json()["items"]
    (letter,) = [one for one in letters if one["subject_id"] == dead["delivery_id"]]
    receiver.answer, receiver.headers = lambda arrived: 204, {}
    revived = gateway.http("operator").post(f"/v1/dead-letters/{letter['letter_id']}/retry")
    assert revived.status_code == 200, revived.text
    until(lambda: log(gateway, made, state="delivered"))
    assert len(receiver.at("/fails")) == 4

    receiver.answer = lambda arrived: 410 if arrived.path == "/fails" else 204
    gateway.send(decision_log())
    until(lambda: gateway.http("viewer").get(f"{OUT}/{made['endpoint_id']}").json()["state"] == "disabled")
    gateway.send(decision_log())
    receiver.answer = lambda arrived: 204
    assert command(gateway, made, "replay", {"after": 0}, 409)["reason"] == "disabled"
    assert command(gateway, made, "enable")["state"] == "active"
    before = len(receiver.at("/fails"))
    replayed = command(gateway, made, "replay", {"after": dead["sequence_number"] - 1})
    assert replayed == {"replayed": 3, "next_after": None}
    until(lambda: len(receiver.at("/fails")) == before + 3)
    command(gateway, made, "replay", {"delivery_id": dead["delivery_id"], "after": 0}, 422)
    one = command(gateway, made, "replay", {"delivery_id": dead["delivery_id"]})
    assert one["replayed"] == 1
    until(lambda: receiver.at("/fails")[-1].headers["webhook-id"] == dead["delivery_id"])
    until(lambda: not log(gateway, made, state="waiting"))
    assert {item["state"] for item in log(gateway, made)} == {"delivered"}
    received = gateway.http("viewer").get("/metrics").text
    assert (
        "observatory_webhooks_delivered_total" in received and "observatory_webhooks_dead_total" in received
    )


def test_nobody_is_told_where_nobody_may_lie_s507(gateway: Server, receiver: Receiver) -> None:
    """S507, S513: at the door already; the canary, on a port nobody listed, hears nothing."""
    canary = Receiver()
    refused_urls = (
        f"http://127.0.0.1:{canary.port}/", "https://127.0.0.1/", "https://localhost./", "https://2130706433/",
        "https://[::ffff:169.254.169.254]/", "https://169.254.169.254/latest/", "https://10.0.0.1:8443/",
        "https://0x7f.1/", "https://user@example.com/", "http://example.com/", "https://example.com:22/",
        "ftp://example.com/x", "https://127。0。0。1/", "mailto:a@b.example",
    )  # fmt: skip
    for url in refused_urls:
        body: Json = {"name": "never", "url": url, "events": ["gate_opened"]}
        made = gateway.http("admin").post(OUT, json=body)
        assert (made.status_code, made.json()["reason"]) == (422, "bad_url"), url
    for bad in (
        {"events": ["no_such"]}, {"filters": {"colour": ["red"]}}, {"filters": {"severity": ["LOUD"]}},
        {"schedule_s": [0.0]}, {"schedule_s": [1.0] * 21}, {"rate_per_min": 0}, {"name": " "},
        {"name": "two\n"}, {"kind": "pigeon"}, {"secret": "whsec_mine"},
        {"kind": "email", "url": "mailto:a@b\r\nBcc: c@d"},
    ):  # fmt: skip
        body = {"name": "never", "url": f"{receiver.url}/never", "events": ["gate_opened"]} | bad
        assert gateway.http("admin").post(OUT, json=body).status_code == 422, bad
    assert canary.heard == [] and receiver.at("/never") == []
    canary.close()


def test_the_terminal_does_what_the_doors_do_s490(
    gateway: Server, receiver: Receiver, tmp_path: Path
) -> None:
    """S490, S504, S505: add, list, show, test, log, replay, disable, remove."""
    url = f"{receiver.url}/cli"
    said = done(
        gateway, "webhooks", "add", "cli", url, "--event", "message_delivered", "--filter", "agent=me"
    )
    assert "whsec_" in said
    assert done(gateway, "webhooks", "test", "cli").startswith("delivered: the receiver returned 204")
    (row,) = [one for one in answer(gateway, "webhooks", "list")["items"] if one["name"] == "cli"]
    assert row["filters"] == {"agent": ["me"]} and "cli" in done(gateway, "webhooks", "show", "cli")
    (sent,) = log(gateway, row)
    assert '"type":"webhook_tested"' in done(gateway, "webhooks", "log", "cli", sent["delivery_id"])
    assert answer(gateway, "webhooks", "replay", "cli", sent["delivery_id"])["replayed"] == 1
    assert "disabled" in done(gateway, "webhooks", "disable", "cli")
    assert "--yes" in refused(gateway, "webhooks", "remove", "cli", code=2)
    done(gateway, "webhooks", "remove", "cli", "--yes")
    assert gateway.http("viewer").get(f"{OUT}/{row['endpoint_id']}").status_code == 404
