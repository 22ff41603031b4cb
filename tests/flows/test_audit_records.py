"""What somebody needs who verifies a whole log alone: exact bytes, checkpoints, and events by kind."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from observatory.ledger import note
from observatory.ledger.verify import ChainCheck
from tests.flows.tenant import Tenant
from tests.samples import decision_log
from tests.waiting import until

Json = dict[str, Any]


def signed(own: Tenant) -> Json:
    def look() -> Json:
        found: Json = own.http("viewer").get("/v1/audit/log").json()
        return found if found["state"] == "signed" else {}

    return until(look)


def lines(own: Tenant, **query: Any) -> list[bytes]:
    answer = own.http("viewer").get("/v1/audit/records", params=query)
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("application/x-ndjson")
    assert answer.content == b"" or answer.content.endswith(b"\n")
    return answer.content.splitlines()


def test_events_come_in_their_exact_bytes_one_a_line_in_pages_s690(either_tenant: Tenant) -> None:
    """S690: what is served is what was hashed; pages follow each other by number, and end short."""
    either_tenant.send_lines([json.dumps(decision_log()).encode() for _ in range(12)])
    size = signed(either_tenant)["size"]
    whole: list[bytes] = []
    while page := lines(either_tenant, after=len(whole), limit=5):
        assert len(page) <= 5
        whole += page
    assert len(whole) >= size
    check = ChainCheck(either_tenant.tenant_id)
    leaves = [
        either_tenant.http("viewer").get(f"/v1/log/{either_tenant.tenant_id}/tile/0/000.p/{size}").content
    ]
    rows = [
        (number, record, leaves[0][32 * (number - 1) : 32 * number])
        for number, record in enumerate(whole[:size], 1)
    ]
    assert check.feed(rows) and check.result().valid
    event = json.loads(whole[-1])
    proof = either_tenant.http("viewer").get(f"/v1/audit/proof/{event['audit_event_id']}").json()
    assert sha256(whole[-1]).hexdigest() == sha256(proof["record"].encode()).hexdigest()
    assert lines(either_tenant, after=1 << 39) == []
    for query in ("limit=0", "limit=5001", "after=-1", "after=x"):
        assert either_tenant.http("viewer").get(f"/v1/audit/records?{query}").status_code == 400
    assert either_tenant.http("nobody").get("/v1/audit/records").status_code == 401


def test_checkpoints_are_listed_newest_first_and_found_by_the_event_they_hold_s691(
    either_tenant: Tenant,
) -> None:
    """S691: each with its note as it was signed; `over` names the oldest that holds an event."""
    sizes = []
    for _ in range(3):
        either_tenant.send(decision_log())
        sizes.append(signed(either_tenant)["size"])
    http = either_tenant.http("viewer")
    found: list[Json] = []
    more: Json = {"limit": 2}
    while more:
        page = http.get("/v1/audit/checkpoints", params=more).json()
        found += page["items"]
        more = {"limit": 2, "cursor": page["next_cursor"]} if page["next_cursor"] else {}
    assert [one["size"] for one in found] == sorted((one["size"] for one in found), reverse=True)
    assert set(sizes) <= {one["size"] for one in found}
    key = note.Verifier.from_vkey(signed(either_tenant)["vkey"])
    for one in found:
        text, names = note.open(one["checkpoint"].encode(), [key])
        assert note.parse_checkpoint(text)[1] == one["size"] and names and one["witnesses"] == []
    (first,) = http.get("/v1/audit/checkpoints", params={"over": sizes[0]}).json()["items"]
    assert first["size"] == min(one["size"] for one in found if one["size"] >= sizes[0])
    assert http.get("/v1/audit/checkpoints", params={"over": 1 << 39}).json()["items"] == []


def test_events_are_found_by_type_who_and_session_together_s692(either_tenant: Tenant) -> None:
    """S692: one question with several conditions; a page by type may be short and leads on."""
    one, other = (decision_log(identity={"agent_id": f"who-{n}"}) for n in (1, 2))
    session = either_tenant.send(one).json()["session_id"]
    either_tenant.send(other)
    http = either_tenant.http("viewer")

    def ask(**query: Any) -> list[Json]:
        answer = http.get("/v1/audit/tenant", params=query)
        assert answer.status_code == 200, answer.text
        items: list[Json] = answer.json()["items"]
        return items

    (found,) = ask(event_type="message_delivered", entity_id="who-1")
    assert found["attributes"]["av.sender.agent_id"] == "who-1"
    assert [one["hash_chain"] for one in ask(event_type="message_delivered", trace_id=session)] == [
        found["hash_chain"]
    ]
    assert ask(event_type="message_delivered", entity_id="who-2", trace_id=session) == []
    assert ask(event_type='x"y') == [] and ask(event_type="message_delivered", severity_min=21) == []
    assert {one["body"]["event_type"] for one in ask(event_type="tenant_created")} == {"tenant_created"}
    either_tenant.send_lines([json.dumps(decision_log()).encode() for _ in range(5)])
    page = http.get("/v1/audit/tenant", params={"event_type": "message_delivered", "limit": 2}).json()
    assert len(page["items"]) == 2 and page["next_cursor"]
    rest = ask(event_type="message_delivered", limit=1000, cursor=page["next_cursor"])
    assert len(rest) == 5
