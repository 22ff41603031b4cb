"""What people note about steps, and the queue of steps whose agent was not sure, on both databases."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from tests.flows.graphs import Json, ask, dag, new, nodes, send, send_all, step
from tests.flows.server import Server


def events(server: Server, kind: str) -> list[Json]:
    found = ask(server, "/v1/audit/tenant", limit=1000)["items"]
    return [event for event in found if event["body"]["event_type"] == kind]


def note(server: Server, session: str, name: str, role: str = "operator", **body: Any) -> Any:
    return server.http(role).post(f"/v1/sessions/{session}/steps/{name}/annotations", json=body)


def test_a_note_is_kept_shown_and_audited_by_its_hash_s219(either_tenant: Server) -> None:
    """S219: text, label and kind of failure; the record holds hashes only."""
    session, text = new(), "It quotes the customer's secret"
    sent = send(either_tenant, step(session, "noted"))
    made = note(either_tenant, session, "noted", text=text, label="case 7", category="made_up")
    assert made.status_code == 201, made.text
    item = made.json()
    assert (item["text"], item["label"], item["category"]) == (text, "case 7", "made_up")
    assert item["sequence_number"] == sent["sequence_number"]
    received = ask(either_tenant, f"/v1/sessions/{session}/steps/noted")
    assert [one["annotation_id"] for one in received["annotations"]] == [item["annotation_id"]]
    for path in (f"/v1/sessions/{session}/annotations", "/v1/annotations"):
        assert [one["text"] for one in ask(either_tenant, path, role="viewer")["items"]] == [text]
    assert ask(either_tenant, "/v1/annotations", category="no_stop")["items"] == []
    (event,) = events(either_tenant, "annotation_added")
    assert event["body"]["text_hash"] == "sha256:" + hashlib.sha256(text.encode()).hexdigest()
    assert "secret" not in str(event) and "case 7" not in str(event)


def test_a_note_is_taken_back_by_its_author_or_an_operator_s220(either_tenant: Server) -> None:
    """S220: it is shown no more; the record keeps that it was there. Another's is an operator's."""
    session = new()
    send(either_tenant, step(session, "noted"))
    path = "/v1/annotations/{}"
    mine = note(either_tenant, session, "noted", text="mine").json()["annotation_id"]
    theirs = note(either_tenant, session, "noted", role="approver", text="theirs").json()["annotation_id"]
    refused = either_tenant.http("approver").delete(path.format(mine))
    assert refused.status_code == 403 and refused.json()["reason"] == "not_yours"
    for role, one in (("operator", mine), ("operator", theirs)):
        assert either_tenant.http(role).delete(path.format(one)).json()["removed"] is True
        assert either_tenant.http(role).delete(path.format(one)).status_code == 404
    assert ask(either_tenant, f"/v1/sessions/{session}/annotations")["items"] == []
    assert len(events(either_tenant, "annotation_removed")) == 2


def test_notes_come_in_pages_newest_first_s219(either_tenant: Server) -> None:
    """S219: with a cursor that leads on and one that is none refused."""
    session = new()
    send(either_tenant, step(session, "noted"))
    for number in range(5):
        assert note(either_tenant, session, "noted", text=str(number)).status_code == 201
    seen, cursor = [], None
    while True:
        query: Json = {"limit": 2} | ({"cursor": cursor} if cursor else {})
        page = ask(either_tenant, "/v1/annotations", **query)
        seen += [item["text"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == ["4", "3", "2", "1", "0"]
    assert either_tenant.http("operator").get("/v1/annotations", params={"cursor": "!"}).status_code == 400


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"text": ""}, 422),
        ({"text": "x" * 4_097}, 422),
        ({"text": "é" * 2_049}, 422),
        ({"text": "x", "category": "bad luck"}, 422),
        ({"text": "x", "mood": "bad"}, 422),
        ({"label": "x"}, 422),
        ({"text": "x" * 4_096, "category": "other"}, 201),
    ],
)
def test_a_note_that_is_none_is_refused_s221(server: Server, body: Json, code: int) -> None:
    """S221: at most 4,096 bytes, a kind that is listed, nothing unknown."""
    session = new()
    send(server, step(session, "noted"))
    answer = note(server, session, "noted", **body)
    assert answer.status_code == code, answer.text
    assert note(server, session, "unknown", text="x").status_code == 404


def test_kinds_of_failure_are_listed_with_their_meaning_s221(server: Server) -> None:
    """S221: each with its family and a sentence."""
    items = ask(server, "/v1/annotations/categories")["items"]
    assert {item["family"] for item in items} == {"setup", "coordination", "verification", "other"}
    assert all(item["meaning"].endswith(".") for item in items) and len(items) > 14


@pytest.mark.req(185)
def test_low_confidence_is_flagged_and_waits_for_a_person_s214_s222(either_tenant: Server) -> None:
    """S214, S222: below the setting a forwarded step is flagged and queued until somebody has looked."""
    session = new()

    def sure(name: str, score: float | None, **more: Any) -> Json:
        return step(session, name, cognition={"confidence_score": score}, **more)

    logs = [
        sure("doubt", 0.49),
        sure("even", 0.5),
        sure("sure", 0.9),
        sure("silent", None),
        sure("guess", 0.0),
        sure("held", 0.1, agent="gated", control={"hitl_required": True}),
    ]
    sent = send_all(either_tenant, logs)
    flagged = {name for name, node in nodes(dag(either_tenant, session)).items() if node["low_confidence"]}
    assert flagged == {"doubt", "guess", "held"}
    queue = ask(either_tenant, "/v1/reviews", state="open")
    assert [item["step_id"] for item in queue["items"]] == ["guess", "doubt"]
    assert (queue["threshold"], queue["items"][1]["confidence"]) == (0.5, 0.49)
    first = ask(either_tenant, "/v1/reviews", limit=1)
    second = ask(either_tenant, "/v1/reviews", limit=1, cursor=first["next_cursor"])
    assert [page["items"][0]["step_id"] for page in (first, second)] == ["guess", "doubt"]
    number = sent[0]["sequence_number"]
    done = either_tenant.http("approver").post(
        f"/v1/reviews/{number}", json={"verdict": "wrong", "note": "a secret reason"}
    )
    assert done.status_code == 200 and done.json()["verdict"] == "wrong", done.text
    assert [item["step_id"] for item in ask(either_tenant, "/v1/reviews")["items"]] == ["guess"]
    (shown,) = ask(either_tenant, "/v1/reviews", state="done")["items"]
    assert (shown["step_id"], shown["note"], shown["verdict"]) == ("doubt", "a secret reason", "wrong")
    received = ask(either_tenant, f"/v1/sessions/{session}/steps/doubt")
    assert received["review"]["verdict"] == "wrong"
    (event,) = events(either_tenant, "step_reviewed")
    assert event["body"]["verdict"] == "wrong" and "secret" not in str(event)


def test_a_review_can_be_given_again_and_only_of_a_message_s223(either_tenant: Server) -> None:
    """S223: the last verdict stands and both are in the record; numbers of no message are 404."""
    sent = send(either_tenant, step(new(), "any"))
    http = either_tenant.http("operator")
    path = f"/v1/reviews/{sent['sequence_number']}"
    for verdict in ("unsure", "ok"):
        assert http.post(path, json={"verdict": verdict}).json()["verdict"] == verdict
    assert len(events(either_tenant, "step_reviewed")) == 2
    assert http.post(path, json={"verdict": "maybe"}).status_code == 422
    for number in (0, 1, 99_999_999, 1 << 50):
        assert http.post(f"/v1/reviews/{number}", json={"verdict": "ok"}).status_code == 404, number
    assert either_tenant.http("viewer").post(path, json={"verdict": "ok"}).status_code == 403
    assert http.get("/v1/reviews", params={"state": "lost"}).status_code == 400
