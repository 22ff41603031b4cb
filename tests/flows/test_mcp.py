"""The MCP door itself: who opens it, what it shows, what it refuses, and that all of it is in the trail."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.shared.exceptions import MCPError

from tests.flows.insight import settled
from tests.flows.mcp_ways import HEADERS, WAYS, Hand, call, played, post, text_of, trail
from tests.flows.server import Server
from tests.flows.tenant import Tenant
from tests.samples import decision_log, envelope

Json = dict[str, Any]
SIX = (
    "audit_session_start", "thought_record", "audit_verify_chain", "merkle_finalize", "merkle_root",
    "audit_session_end",
)  # fmt: skip
READING = ("search_messages", "get_session", "get_step", "list_pending_decisions", "get_proof")
LIST = {"jsonrpc": "2.0", "id": 7, "method": "tools/list"}
PLAN: Json = {"type": "plan", "content": {"trajectory": "straight on"}}


@pytest.fixture
def tenant(server: Server, tmp_path: Path) -> Iterator[Tenant]:
    made = Tenant(server, tmp_path / "tenant")
    yield made
    made.stop()


@pytest.mark.req(300, 301, 302, 303, 304, 305, 306)
@pytest.mark.parametrize(("way", "mode"), WAYS)
def test_the_tools_are_these_and_say_how_they_are_used_s403(server: Server, way: str, mode: str) -> None:
    """S400, S403, S413: by both ways and in both eras the same."""

    async def story(hand: Hand) -> None:
        tools = {tool.name: tool for tool in (await hand.client.list_tools()).tools}
        assert tuple(tools) == SIX + READING
        for name, tool in tools.items():
            assert tool.description and tool.title
            assert tool.input_schema["type"] == "object"
            assert tool.input_schema["additionalProperties"] is False
            assert all(one["description"] for one in tool.input_schema["properties"].values())
            hints = tool.annotations
            assert hints is not None
            assert hints.read_only_hint is (name in READING or name == "merkle_root")
            assert hints.destructive_hint is False and hints.open_world_hint is False
            assert hints.idempotent_hint is (name not in ("audit_session_start", "thought_record"))
        said = hand.client.instructions or ""
        places = [said.index(name) for name in ("start", "verify", "closing", "finalize", "root", "end.")]
        assert places == sorted(places), "the order is told"
        assert tools["thought_record"].input_schema["required"] == ["task_id", "type", "content"]
        assert tools["audit_session_start"].input_schema["required"] == ["intent"]

    played(server, story, way, mode)


def test_only_a_key_opens_the_door_s401(server: Server) -> None:
    """S401, S404: no key, a wrong one, a cookie: 401 and nothing more."""
    wrong = {"authorization": "Bearer obs_" + "A" * 50}
    for role, headers in (("nobody", {}), ("nobody", wrong), ("nobody", {"authorization": "Basic eA=="})):
        answer = post(server, LIST, role, **headers)
        assert answer.status_code == 401 and answer.headers["www-authenticate"] == "Bearer"
        error = answer.json()["error"]
        assert error["data"]["reason"] == "unauthorized" and "Bearer obs_" in error["message"]
    made = server.http("operator").post("/v1/logins", json={}).json()
    with httpx2.Client(base_url=server.url, trust_env=False) as browser:
        assert browser.post(made["url"]).status_code == 303
        assert browser.get("/v1/whoami").status_code == 200, "the cookie is good"
        assert browser.post("/mcp", json=LIST, headers=HEADERS).status_code == 401

    async def story(hand: Hand) -> None:
        raise AssertionError("nobody comes in here")

    for way in ("http", "stdio"):
        with pytest.raises(BaseException) as refused:  # the SDK wraps it in groups
            played(server, story, way, key="obs_" + "A" * 50)
        assert "key" in _deepest(refused.value)


def _deepest(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error)


@pytest.mark.parametrize(
    ("headers", "code", "reason"),
    [
        ({"host": "evil.example"}, 421, "foreign_host"),
        ({"origin": "https://evil.example"}, 403, "foreign_origin"),
        ({"origin": "null"}, 403, "foreign_origin"),
        ({"origin": "SELF", "sec-fetch-site": "cross-site"}, 403, "foreign_origin"),
        ({"origin": "SELF"}, 200, ""),
        ({"content-type": "text/plain"}, 415, "unsupported_media_type"),
        ({"content-encoding": "gzip"}, 415, "unsupported_encoding"),
    ],
)
def test_foreign_pages_and_names_are_refused_whatever_key_they_bring_s401(
    server: Server, headers: dict[str, str], code: int, reason: str
) -> None:
    """S401, S402: against DNS rebinding, as at every other door and for keys too."""
    own = {name: server.url if text == "SELF" else text for name, text in headers.items()}
    answer = post(server, LIST, **own)
    assert answer.status_code == code, answer.text
    received = answer.json()
    assert reason in (received.get("reason"), (received.get("error") or {}).get("data", {}).get("reason"), "")


def test_there_is_no_stream_and_no_session_s400(server: Server) -> None:
    """S400."""
    http = server.http("operator")
    for method in ("GET", "DELETE", "PUT"):
        answer = http.request(method, "/mcp", headers={"accept": "text/event-stream"})
        assert answer.status_code == 405 and answer.headers["allow"] == "POST"
    answer = post(server, LIST, **{"mcp-session-id": "made up"})
    assert answer.status_code == 200 and "mcp-session-id" not in answer.headers
    assert len(answer.json()["result"]["tools"]) == 11


def test_bodies_that_are_no_message_are_refused_s402(tenant: Tenant) -> None:
    """S402, S405: and a call among them is in the trail."""
    big = json.dumps(call("get_session", {"session_id": "x" * (1 << 20)})).encode()
    bodies: list[tuple[bytes, int]] = [
        (b"", 400),
        (b"{", 400),
        (b"\xff\xfe", 400),
        (b"[]", 400),
        (b"7", 400),
        (b'{"jsonrpc": "2.0", "id": 1}', 400),
        (b'{"jsonrpc": "2.0", "id": 1, "method": 5}', 400),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": "\\u0000"}}', 400),
        (b"[" * 100_000, 400),
        (big, 413),
    ]
    for body, code in bodies:
        answer = post(tenant, body)
        assert answer.status_code == code, (body[:40], answer.text)
        assert answer.json()["error"]["message"]

    def pieces() -> Iterator[bytes]:
        yield from (big[at : at + 65_536] for at in range(0, len(big), 65_536))

    assert tenant.http("operator").post("/mcp", content=pieces(), headers=HEADERS).status_code == 413
    assert post(tenant, b"{}", **{"content-type": "text/plain"}).status_code == 415
    away = ["too_large", "too_large", "unsupported_media_type"]
    assert [(one["tool"], one["reason"], one["arguments_hash"]) for one in trail(tenant)] == [
        ("unknown", reason, None) for reason in away
    ]
    twice = (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_session","name":"merkle_root"}}'
    )
    calls = [call("get_session", {"session_id": name}) for name in "abc"]
    batch = json.dumps([7, *calls, {"method": "ping"}]).encode()
    assert [post(tenant, body).status_code for body in (twice, batch)] == [400, 400]
    found = trail(tenant)[len(away) :]
    assert [(one["outcome"], one["reason"]) for one in found] == [("refused", "bad_request")] * 4
    assert len({one["arguments_hash"] for one in found}) == 4, "of a batch each for itself"
    flood = json.dumps(calls * 100).encode()
    assert post(tenant, flood).status_code == 400
    assert len(trail(tenant)) == len(away) + 4 + 64, "and so many at most"


SECRET = "obs-secret-words-of-an-argument"
HOSTILE: list[tuple[Any, Any, str, str]] = [
    ("get_session", {}, "get_session", "bad_arguments"),
    ("get_session", {"session_id": 7}, "get_session", "bad_arguments"),
    ("get_session", {"session_id": ""}, "get_session", "bad_arguments"),
    ("get_session", {"session_id": f"{SECRET}/dag"}, "get_session", "bad_arguments"),
    ("get_session", {"session_id": "x" * 100_000}, "get_session", "bad_arguments"),
    ("get_session", {"session_id": "a", SECRET: 1}, "get_session", "bad_arguments"),
    ("get_session", {"session_id": "a\nb"}, "get_session", "bad_arguments"),
    ("get_session", {"session_id": "../agents"}, "get_session", "bad_arguments"),
    ("get_session", {"session_id": ".."}, "get_session", "not_found"),
    ("get_session", {"session_id": SECRET + "?limit=1#x"}, "get_session", "not_found"),
    ("get_step", {"session_id": "a", "step_id": "b/annotations"}, "get_step", "bad_arguments"),
    ("search_messages", {"query": SECRET, "limit": 0}, "search_messages", "bad_arguments"),
    ("search_messages", {"query": SECRET, "limit": True}, "search_messages", "bad_arguments"),
    ("search_messages", {"query": [SECRET]}, "search_messages", "bad_arguments"),
    ("list_pending_decisions", {"limit": 10**9}, "list_pending_decisions", "bad_arguments"),
    ("get_proof", {"audit_event_id": "evt_" + "x" * 500}, "get_proof", "bad_arguments"),
    ("thought_record", {"task_id": SECRET, "type": SECRET, "content": []}, "thought_record", "bad_arguments"),
    ("audit_session_start", {"intent": SECRET * 1_000}, "audit_session_start", "bad_arguments"),
    ("merkle_root", {"session_id": None}, "merkle_root", "bad_arguments"),
    ("merkle_root", [SECRET], "merkle_root", "bad_request"),
    (SECRET, {"session_id": "a"}, "unknown", "unknown_tool"),
    ("tools/call", {}, "unknown", "unknown_tool"),
    (7, {}, "unknown", "bad_request"),
]


@pytest.mark.req(523)
def test_hostile_calls_are_refused_and_each_is_in_the_trail_without_its_words_s405(tenant: Tenant) -> None:
    """S405, S407: by name, rule and reason; no value is quoted, and the event holds only a hash."""
    for tool, arguments, _, reason in HOSTILE:
        answer = post(tenant, call(tool, arguments))
        received = answer.json()
        if "error" in received:
            assert received["error"]["code"] == -32602 and received["error"]["message"], answer.text
        else:
            assert received["result"]["isError"] is True, answer.text
            assert received["result"]["structuredContent"]["reason"] == reason, answer.text
        assert SECRET not in answer.text
    events = trail(tenant)
    assert [(one["tool"], one["reason"]) for one in events] == [(tool, why) for _, _, tool, why in HOSTILE]
    assert {one["outcome"] for one in events} == {"refused"}
    hashes = [
        "sha256:" + sha256(json.dumps(said, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
        for _, said, _, _ in HOSTILE
    ]
    assert [one["arguments_hash"] for one in events] == hashes
    page = tenant.http("admin").get("/v1/audit/tenant", params={"limit": 1_000})
    assert SECRET not in page.text
    severities = {one["severity_number"] for one in page.json()["items"] if "outcome" in one["body"]}
    assert severities == {13}


def test_a_faulty_call_is_told_everything_that_is_wrong_s407(server: Server) -> None:
    """S407: all faults at once, each with what is expected."""
    received = post(server, call("thought_record", {"type": "note", "content": 1, "extra": 1})).json()[
        "result"
    ]
    detail = received["structuredContent"]["detail"]
    for word in (
        "task_id is missing",
        "type must be one of plan",
        "content must be an object",
        "does not have",
    ):
        assert word in detail
    assert received["content"][0]["text"].endswith("then call again.")


def test_an_unknown_tool_is_an_error_that_names_those_there_are_s407(server: Server) -> None:
    """S407: as the SDK's client sees it."""

    async def story(hand: Hand) -> None:
        with pytest.raises(MCPError, match="audit_session_start, thought_record"):
            await hand.ask("no_such_tool")

    played(server, story)


@pytest.mark.req(523)
def test_roles_are_those_of_the_doors_s404(tenant: Tenant) -> None:
    """S404, S405: an agent reads nothing of others, a viewer records nothing; all is in the trail."""

    async def agent(hand: Hand) -> None:
        for tool, arguments in (
            ("search_messages", {"query": "x"}),
            ("get_session", {"session_id": "x"}),
            ("list_pending_decisions", {}),
            ("get_proof", {"audit_event_id": "evt_x"}),
        ):
            assert (await hand.refused(tool, **arguments))["reason"] == "not_allowed"

    async def viewer(hand: Hand) -> None:
        found = await hand.refused("thought_record", task_id="tsk", **PLAN)
        assert found["reason"] == "not_allowed" and "key" in found["next"]
        assert (await hand.refused("audit_session_start", intent="x"))["reason"] == "not_allowed"
        assert await hand.do("list_pending_decisions") == {"items": [], "next_cursor": None}

    played(tenant, agent, key=tenant.key("agent"))
    played(tenant, viewer, key=tenant.key("viewer"))
    received = [(one["role"], one["tool"], one["outcome"]) for one in trail(tenant)]
    assert received == [
        *(("agent", tool, "refused") for tool in (READING[0], READING[1], READING[3], READING[4])),
        ("viewer", "thought_record", "refused"),
        ("viewer", "audit_session_start", "refused"),
        ("viewer", "list_pending_decisions", "ok"),
    ]
    assert len(trail(tenant, "permission_denied")) == 6


def test_what_another_tenant_has_is_not_there_s404(server: Server, tenant: Tenant) -> None:
    """S404: neither its sessions of thoughts nor its messages, and nothing of theirs is changed."""

    async def theirs(hand: Hand) -> str:
        session: str = (await hand.do("audit_session_start", intent="ours alone"))["session_id"]
        await hand.do("thought_record", session_id=session, task_id="tsk_theirs", **PLAN)
        return session

    session = played(tenant, theirs)
    before = tenant.http("admin").get("/v1/audit/tenant", params={"limit": 1}).json()

    async def ours(hand: Hand) -> None:
        for tool in (
            "audit_verify_chain",
            "merkle_finalize",
            "merkle_root",
            "audit_session_end",
            "get_session",
        ):
            assert (await hand.refused(tool, session_id=session))["reason"] == "not_found", tool
        # Of the same name, but ours: theirs is neither seen nor touched.
        record = await hand.do("thought_record", session_id=session, task_id="tsk_theirs", **PLAN)
        assert record["index"] == 0
        start = {"intent": "x", "predecessor_session_id": f"{session}-none"}
        assert (await hand.refused("audit_session_start", **start))["reason"] == "not_found"

    played(server, ours)
    assert tenant.http("admin").get("/v1/audit/tenant", params={"limit": 1}).json() == before


def test_reading_tools_answer_as_the_doors_do_s404(tenant: Tenant) -> None:
    """S404, S408: the door's JSON, structured and as text; a step comes with its why and its causes."""
    sent = tenant.send(decision_log(identity={"agent_id": "reader"})).json()
    user = tenant.http("admin").post("/v1/users", json={"name": "asked", "role": "approver"}).json()
    person = {"entity_id": user["user_id"], "entity_type": "user"}
    plain = {"title": "May I?", "deadline": None, "auto_action": None}
    asked = envelope("decision_request", recipient=person, payload=plain)
    assert tenant.send(asked, "admin").status_code == 202
    settled(tenant)
    http, session = tenant.http("operator"), sent["session_id"]

    async def story(hand: Hand) -> None:
        result = await hand.ask("get_session", session_id=session)
        assert json.loads(text_of(result)) == result.structured_content
        assert result.structured_content == http.get(f"/v1/sessions/{session}").json()
        found = await hand.do("search_messages", query="NVDA revenue", limit=5)
        assert sent["step_id"] in [item["step_id"] for item in found["items"]]
        step = await hand.do("get_step", session_id=session, step_id=sent["step_id"])
        assert step["step"]["reasoning"]["intent"].startswith("Verify quarterly revenue")
        assert step["causes"] is not None
        missing = await hand.refused("get_step", session_id=session, step_id="none")
        assert missing["reason"] == "not_found"
        pending = await hand.do("list_pending_decisions", limit=10)
        assert [item["decision_id"] for item in pending["items"]] == [asked["payload"]["decision_id"]]

    played(tenant, story)


def test_an_event_of_a_call_can_be_proved_s404(tenant: Tenant) -> None:
    """S404: `get_proof` of the very event that told of the call before."""

    async def story(hand: Hand) -> None:
        await hand.do("list_pending_decisions")
        page = tenant.http("operator").get("/v1/audit/tenant", params={"limit": 1}).json()["items"]
        assert page[0]["body"]["event_type"] == "mcp_tool_called"
        proof = await hand.do("get_proof", audit_event_id=page[0]["audit_event_id"])
        assert proof["index"] == page[0]["hash_chain"]["sequence_number"] - 1
        assert (await hand.refused("get_proof", audit_event_id="evt_none"))["reason"] == "not_found"

    played(tenant, story)


def test_a_revoked_key_calls_nothing_more_s401(tenant: Tenant) -> None:
    """S401: from the very next call."""
    made = tenant.http("admin").post("/v1/keys", json={"role": "agent"}).json()
    headers = {"authorization": f"Bearer {made['key']}"}
    asked = call("thought_record", {"task_id": "tsk", **PLAN})
    assert post(tenant, asked, "nobody", **headers).json()["result"]["isError"] is False
    assert tenant.http("admin").delete(f"/v1/keys/{made['key_id']}").status_code == 200
    assert post(tenant, asked, "nobody", **headers).status_code == 401
    assert len(trail(tenant)) == 1
