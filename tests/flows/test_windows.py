"""What the windows ask beside the map and the table: panels, forks and pulse live, an agent where it works,
what waits for a person, the alert tray, the tenant one is in."""

from __future__ import annotations

import time
import uuid
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from observatory.protocol.clock import from_ns, to_ns
from tests.flows.answered import acceptable
from tests.flows.fleet import Json, ack, inbox, say
from tests.flows.graphs import ask, send, step
from tests.flows.insight import settled
from tests.flows.server import Server
from tests.flows.tenant import Tenant
from tests.flows.test_live_folded import following
from tests.flows.workers import ASIA, EU, did, work
from tests.samples import decision_log, envelope
from tests.waiting import until

SECOND = 1_000_000_000


def broken(server: Server, agent: str) -> None:
    bad = decision_log(identity={"agent_id": agent}, action={"status": "nonsense"})
    assert server.send(bad).status_code == 422


@pytest.mark.req(197)
def test_throughput_counts_every_message_in_its_second_and_its_minute(either_tenant: Tenant) -> None:
    """S303: 60 points without a gap, the newest last; what is not folded yet counts too."""
    server, began = either_tenant, time.time_ns() - SECOND
    for number in range(7):
        did(server, "ada", status="failure" if number < 3 else "success")
    broken(server, "ada")
    shown = ask(server, "/v1/fleet/throughput")
    assert (shown["messages"], shown["violations"]) == (7, 1), "at once, folded or not"
    settled(server)
    for window, bucket_s in (("60s", 1), ("1h", 60)):
        shown = ask(server, "/v1/fleet/throughput", window=window)
        assert (shown["window"], shown["bucket_s"], len(shown["points"])) == (window, bucket_s, 60)
        times = [to_ns(point["at"]) for point in shown["points"]]
        assert {after - before for before, after in pairwise(times)} == {bucket_s * SECOND}
        assert times[-1] <= to_ns(shown["as_of"]) < times[-1] + bucket_s * SECOND
        assert (shown["messages"], shown["failures"], shown["violations"]) == (7, 3, 1)
        for name in ("messages", "failures", "violations"):
            assert sum(point[name] for point in shown["points"]) == shown[name]
        busy = [at for at, point in zip(times, shown["points"], strict=True) if point["messages"]]
        assert min(busy) >= began - bucket_s * SECOND
    did(server, "ada")
    shown = until(lambda: _moving(ask(server, "/v1/fleet/throughput")))
    whole = [point["messages"] for point in shown["points"][-11:-1]]
    assert shown["rate_per_s"] == pytest.approx(sum(whole) / 10)


def _moving(shown: Json) -> Json:
    return shown if shown["rate_per_s"] else {}


@pytest.mark.req(200)
def test_latency_is_told_by_the_region_of_the_receiver(either_tenant: Tenant) -> None:
    """S306: from delivery to acknowledgement; what stands nowhere is told as unplaced."""
    server = either_tenant
    say(server, "reader", kind="reader", cluster=ASIA)
    say(server, "lost", kind="reader", cluster="basement")
    for number in range(5):
        say(server, "sender", "reader" if number < 4 else "lost", cluster=EU)
    say(server, "sender", "reader", cluster=EU)  # nobody takes this one
    waiting = inbox(server, "reader")
    ack(server, "reader", *waiting[:4])
    ack(server, "lost", *inbox(server, "lost"))
    shown = ask(server, "/v1/fleet/latency", minutes=5)
    placed, unplaced = shown["regions"]
    assert (placed["region"], placed["name"], placed["count"]) == ("gcp:asia-southeast1", "Singapore", 4)
    assert (unplaced["region"], unplaced["lat"], unplaced["count"]) == ("unplaced", None, 1)
    assert 0 < placed["p50_ms"] <= placed["p95_ms"] <= placed["p99_ms"] <= placed["max_ms"]
    assert sum(placed["histogram"]) == 4 and len(placed["histogram"]) == len(shown["edges_ms"]) + 1
    assert (shown["all"]["count"], shown["sampled"], shown["truncated"]) == (5, 5, False)
    assert "acknowledgement" in shown["measured"]


@pytest.mark.req(199)
def test_health_tells_gateway_bus_database_and_insight(either_server: Server, either_tenant: Tenant) -> None:
    """S307: each with a word and a sentence; how big the database is only to whom it belongs."""
    did(either_tenant, "ada")
    settled(either_tenant)
    shown = until(lambda: _well(ask(either_tenant, "/v1/fleet/health")))
    parts = [shown[name] for name in ("gateway", "bus", "database", "insight")]
    assert all(part["status"] == "ok" and part["text"].endswith(".") for part in parts)
    gateway, database, insight = shown["gateway"], shown["database"], shown["insight"]
    assert gateway["version"] and to_ns(gateway["up_since"]) < to_ns(shown["as_of"])
    assert gateway["last_commit_ok"] is True and gateway["waiting"] < gateway["queue_limit"]
    assert (shown["bus"]["kind"], shown["bus"]["connected"]) == ("memory", True)
    assert database["ping_ms"] > 0 and database["size_bytes"] is None
    assert insight["enabled"] and insight["running"] and insight["folded_until"]
    with following(either_tenant, "fleet", "sessions"), following(either_tenant, "waiting"):
        until(lambda: _clients(either_tenant) == 2)  # each once, however much it follows
        until(lambda: _clients(either_server) == 0)  # another tenant's are its own business
    own = ask(either_server, "/v1/fleet/health")["database"]
    assert own["dialect"] in ("sqlite", "postgresql") and own["size_bytes"] > 10_000


def _clients(server: Server) -> int:
    return int(ask(server, "/v1/fleet/health")["gateway"]["live_clients"])


def _well(shown: Json) -> Json:
    """A database that answers slowly on a busy machine is told as degraded, and is well again."""
    return shown if shown["status"] == "ok" else {}


@pytest.mark.req(157, 162)
def test_a_fork_is_told_live_as_it_happens_and_the_pulse_beside_it(either_tenant: Tenant) -> None:
    """S308: records of kind fork and throughput on the topic fleet."""
    server = either_tenant
    with following(server, "fleet") as reader:
        root = did(server, "planner", session="ses-fork")
        did(server, "alone", did(server, "other", session="ses-line"), session="ses-line")
        for agent in ("reader-0", "reader-1", "reader-2"):
            did(server, agent, root, session="ses-fork", delta={"cumulative_session_cost": 0.5})
        reader.until(lambda: [one for one in _forks(reader) if one["children"] == 3])
        (fork,) = _forks(reader)
        assert (fork["agent_id"], fork["session_id"]) == ("planner", "ses-fork")
        assert fork["to"] == ["reader-0", "reader-1", "reader-2"] and fork["id"] == str(
            fork["sequence_number"]
        )
        assert abs(to_ns(fork["at"]) - time.time_ns()) < 60 * SECOND
        broken(server, "planner")
        pulse = reader.until(
            lambda: [one for one in reader.of("fleet", "throughput").values() if one["violations_60s"]]
        )[0]
        assert (pulse["id"], pulse["messages_60s"], pulse["failures_60s"]) == ("now", 6, 0)
        assert pulse["cost_per_min"] == 1.5


def _forks(reader: Any) -> list[Json]:
    return list(reader.of("fleet", "fork").values())


@pytest.mark.req(207)
def test_an_agent_is_paused_and_let_go_wherever_it_works(either_tenant: Tenant) -> None:
    """S309: one command of its own in each session, one answer; each can be undone by itself."""
    server, door = either_tenant, either_tenant.http("operator")
    for session in ("ses-a", "ses-b"):
        did(server, "ada", session=session, intent=f"Work on {session}")
        did(server, "bob", session=session)
    did(server, "bob", session="ses-c")
    settled(server)
    assert door.post("/v1/sessions/ses-a/pause", json={"agent_id": "ada"}).status_code == 202
    paused = door.post("/v1/agents/ada/pause", json={"note": "look into it"})
    assert paused.status_code == 202, paused.text
    received = {one["session_id"]: one for one in paused.json()["sessions"]}
    assert {name: one["state"] for name, one in received.items()} == {
        "ses-a": "already_paused",
        "ses-b": "paused",
    }
    assert (paused.json()["done"], received["ses-b"]["confirmation"]) == (1, "requested")
    held = send(server, work("ada", session="ses-b"))
    assert held["state"] == "held" and send(server, work("bob", session="ses-b"))["state"] == "forwarded"
    items = ask(server, "/v1/agents/ada/sessions")["items"]
    assert [one["session_id"] for one in items] == ["ses-b", "ses-a"], "its own last message first"
    newest = items[0]
    assert (newest["paused"], newest["held"], newest["messages"], newest["active"]) == (True, 1, 2, True)
    assert (newest["goal"], newest["status"]) == ("Work on ses-b", "paused") and newest["paused_by"]
    first = ask(server, "/v1/agents/ada/sessions", limit=1)
    rest = ask(server, "/v1/agents/ada/sessions", limit=1, cursor=first["next_cursor"])
    assert [first["items"][0]["session_id"], rest["items"][0]["session_id"]] == ["ses-b", "ses-a"]
    (command,) = [
        one
        for one in ask(server, "/v1/sessions/ses-b/interventions")["items"]
        if one["intervention_id"] == received["ses-b"]["intervention_id"]
    ]
    assert (command["command"], command["note"]) == ("pause", "look into it")
    freed = door.post("/v1/agents/ada/unpause", json={})
    assert freed.status_code == 200, freed.text
    assert {one["session_id"]: (one["state"], one["released"]) for one in freed.json()["sessions"]} == {
        "ses-a": ("running", 0),
        "ses-b": ("running", 1),
    }
    assert ask(server, f"/v1/messages/{held['message_id']}")["state"] == "forwarded"
    again = door.post("/v1/agents/ada/unpause", json={})
    assert (again.status_code, again.json()["reason"]) == (409, "not_paused")
    assert door.post("/v1/agents/nobody/pause", json={}).status_code == 404


def test_an_agent_in_more_sessions_than_one_pause_takes_is_let_go_in_all(
    server: Server, tmp_path: Path
) -> None:
    """S309: at most 200 get a pause of their own, the agent's holds in the others; all are let go."""
    tenant = Tenant(server, tmp_path / "tenant")
    door = tenant.http("operator")
    names = [f"ses-{number}" for number in range(201)]
    for name in names:
        did(tenant, "ada", session=name)
    paused = door.post("/v1/agents/ada/pause", json={})
    assert (paused.status_code, paused.json()["done"]) == (202, 200)
    assert {send(tenant, work("ada", session=name))["state"] for name in names} == {"held"}
    freed = door.post("/v1/agents/ada/unpause", json={}).json()
    assert freed["done"] == len(freed["sessions"]) == 201
    assert {one["state"] for one in freed["sessions"]} == {"running"}
    tenant.stop()


def test_a_session_is_told_by_the_same_word_wherever_it_is_told(either_tenant: Tenant) -> None:
    """S302, S309: an agent's sessions stand as the table says they do, stuck ones too."""
    server = either_tenant
    put = server.http("operator").put("/v1/settings/detectors", json={"stuck_s": 1})
    assert put.status_code == 200
    did(server, "ada", session="ses-silent")
    over = str(uuid.uuid4())
    send(server, step(over, "last", agent="ada", control={"is_terminal": True}))

    def words(path: str) -> dict[str, str]:
        return {one["session_id"]: one["status"] for one in ask(server, path)["items"]}

    wanted = {"ses-silent": "stuck", over: "ended"}
    until(lambda: words("/v1/sessions") == wanted)
    assert words("/v1/agents/ada/sessions") == wanted


def asked_in(seconds: int, risk: str) -> Json:
    options = [
        {"option_id": "yes", "label": "Publish", "risk_level": risk},
        {"option_id": "no", "label": "Wait", "risk_level": "low"},
    ]
    deadline = None if not seconds else from_ns(time.time_ns() + seconds * SECOND)
    words = {"title": f"Publish ({risk})?", "options": options, "deadline": deadline, "auto_action": None}
    return envelope("decision_request", payload=words)


def test_what_waits_for_a_person_is_told_in_one_request_the_most_urgent_first(either_tenant: Tenant) -> None:
    """S310: gates, decisions and reviews, with what the caller may do to each and why not."""
    server, door, session = either_tenant, either_tenant.http("operator"), str(uuid.uuid4())
    did(server, "bob", session="ses-bob")
    gate = step(
        session,
        "publish",
        agent="ada",
        cognition={"intent": "Publish the note"},
        control={"hitl_required": True},
    )
    gate["identity"]["recipient"] = "bob"
    held = send(server, gate)
    late, risky, soon = asked_in(3_000, "low"), asked_in(0, "critical"), asked_in(600, "medium")
    for one in (late, risky, soon):
        assert server.send(one).status_code == 202
    doubt = work("eve", session="ses-doubt", intent="Guess")
    doubt["cognition"]["confidence_score"] = 0.1
    number = send(server, doubt)["sequence_number"]
    shown = ask(server, "/v1/waiting")
    assert shown["counts"] == {"gates": 1, "decisions": 3, "reviews": 1, "total": 5, "reviews_more": False}
    order = [one["id"] for one in shown["items"]]
    ids = [one["payload"]["decision_id"] for one in (soon, late, risky)]
    assert order == [*ids, held["message_id"], str(number)]
    (found,) = [one for one in shown["items"] if one["kind"] == "gate"]
    assert (found["title"], found["agent_id"], found["recipient"]) == ("Publish the note", "ada", "bob")
    assert found["why"] == "the agent requested an approval" and found["session_id"] == session
    (hold,) = ask(server, "/v1/holds")["items"]
    assert (found["action_digest"], found["quorum"], found["approvals"]) == (hold["action_digest"], 1, [])
    assert [(one["verb"], one["allowed"]) for one in found["can"]] == [
        ("approve", True),
        ("edit", True),
        ("reject", True),
    ]
    urgent = shown["items"][0]
    assert (urgent["title"], urgent["risk"], urgent["on_expiry"]) == ("Publish (medium)?", "medium", "expire")
    assert [one["option_id"] for one in urgent["options"]] == ["yes", "no"]
    review = shown["items"][-1]
    assert (review["title"], review["confidence"], review["kind"]) == ("Guess", 0.1, "review")
    assert "10%" in review["why"]
    viewer = _key(server, "viewer")
    for item in ask_as(server, viewer)["items"]:
        assert all(not one["allowed"] and one["why"] for one in item["can"]), item["kind"]
    assert [one["kind"] for one in ask(server, "/v1/waiting", kind="gate")["items"]] == ["gate"]
    assert len(ask(server, "/v1/waiting", limit=2)["items"]) == 2
    body = {"agent_id": "ada", "message_id": held["message_id"], "digest": found["action_digest"]}
    assert door.post(f"/v1/sessions/{session}/approve", json=body).status_code == 200
    assert ask(server, "/v1/waiting")["counts"]["gates"] == 0


def _key(server: Tenant, role: str) -> str:
    admin = server.http("admin")
    user = admin.post("/v1/users", json={"name": f"a-{role}", "role": role}).json()
    key: str = admin.post("/v1/keys", json={"role": role, "user_id": user["user_id"]}).json()["key"]
    return key


def ask_as(server: Server, key: str, path: str = "/v1/waiting") -> Json:
    answer = server.http("nobody").get(path, headers={"authorization": f"Bearer {key}"})
    assert answer.status_code == 200, answer.text
    found: Json = answer.json()
    return found


def test_what_waits_is_told_live(either_tenant: Tenant) -> None:
    """S310: counts and items come and go within a second or two; what one may do is not everybody's."""
    server, session = either_tenant, str(uuid.uuid4())
    with following(server, "waiting") as reader:
        reader.until(lambda: reader.of("waiting", "counts"))
        assert reader.of("waiting", "counts")["counts"]["total"] == 0
        held = send(server, step(session, "one", agent="ada", control={"hitl_required": True}))
        reader.until(lambda: reader.of("waiting", "item"))
        (item,) = reader.of("waiting", "item").values()
        assert item["id"] == f"gate:{held['message_id']}" and "can" not in item["item"]
        assert reader.of("waiting", "counts")["counts"]["gates"] == 1
        (shown,) = ask(server, "/v1/waiting")["items"]
        assert item["item"] == {name: value for name, value in shown.items() if name != "can"}
        body = {"agent_id": "ada", "message_id": held["message_id"]}
        rejected = server.http("operator").post(f"/v1/sessions/{session}/reject", json=body)
        assert rejected.status_code == 200
        reader.until(lambda: not reader.of("waiting", "item"))
        assert reader.of("waiting", "counts")["counts"]["total"] == 0


def test_the_tray_lists_what_alarmed_somebody_newest_first(either_tenant: Tenant) -> None:
    """S311: before it is folded and after; open and closed ones; each in one sentence, with a way there."""
    server, door = either_tenant, either_tenant.http("operator")
    for _ in range(5):
        did(server, "looper", session="ses-loop", intent="Find it", status="failure", tool="serp_search")
    broken(server, "sloppy")
    assert door.put("/v1/budgets", json={"scope": "agent", "target": "rich", "soft": 1, "hard": 2}).is_success
    for cost in (1.5, 5.0):
        server.send(work("rich", session="ses-rich", delta={"cumulative_session_cost": cost}))
    words = {"severity": "critical", "title": "Disk full", "summary": "nothing can be written"}
    assert server.send(acceptable(server, "status_alert", payload=words)).status_code == 202
    assert door.post("/v1/agents/looper/evict", json={}).status_code == 200

    def tray(**query: Any) -> list[Json]:
        return list(ask(server, "/v1/alerts", **query)["items"])

    at_once = {one["kind"] for one in tray()}
    settled(server)
    shown = tray()
    kinds = {"entropy", "violation", "budget_warning", "budget_exceeded", "status_alert", "eviction"}
    assert at_once - {"loop"} == kinds == {one["kind"] for one in shown} - {"loop"}
    numbers = [one["sequence_number"] for one in shown]
    assert numbers == sorted(numbers, reverse=True) and len(set(numbers)) == len(numbers)
    found = {one["kind"]: one for one in shown}
    loop = found["entropy"]
    assert loop["text"] == "looper is looping: same failing `serp_search` 5 times"
    assert (loop["severity"], loop["open"], loop["link"]) == ("critical", True, "/sessions/ses-loop")
    assert "sloppy" in found["violation"]["text"] and found["violation"]["link"] == "/fleet?peek=agent:sloppy"
    assert "soft cap of 1" in found["budget_warning"]["text"] and "costs" in found["budget_exceeded"]["text"]
    assert (found["status_alert"]["text"], found["status_alert"]["severity"]) == (
        "Disk full: nothing can be written",
        "critical",
    )
    assert found["eviction"]["open"] and found["eviction"]["until"] is None
    for number in range(5):
        did(server, "looper", session="ses-loop", intent=f"Try {number}", tool=f"tool-{number}")
    settled(server)
    closed = {one["kind"]: one for one in tray()}
    assert not closed["entropy"]["open"] and closed["entropy"]["until"] > closed["entropy"]["at"]
    assert not closed["eviction"]["open"] and closed["eviction"]["until"], "its next message brought it back"
    # An alarm of the second detector goes on record by itself, a moment after its steps were folded.
    whole = [one["sequence_number"] for one in tray()]
    paged: list[int] = []
    cursor = None
    while True:
        page = ask(server, "/v1/alerts", limit=2, **({} if cursor is None else {"cursor": cursor}))
        paged += [one["sequence_number"] for one in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert [number for number in paged if number <= whole[0]] == whole
    assert {one["kind"] for one in tray(kind="violation")} == {"violation"}


def test_a_person_is_shown_the_one_tenant_they_may_enter(
    either_server: Server, either_tenant: Tenant
) -> None:
    """S312: the home tenant's admin sees that there are others, and enters none of them."""
    key = _key(either_tenant, "viewer")
    (mine,) = ask_as(either_tenant, key, "/v1/tenants")["items"]
    assert (mine["tenant_id"], mine["current"], mine["may_enter"]) == (either_tenant.tenant_id, True, True)
    me = ask_as(either_tenant, key, "/v1/whoami")
    assert (me["tenant_name"], me["user_name"], me["permissions"]) == ("Of one test", "a-viewer", ["read"])
    narrow = {"role": "operator", "scopes": ["read", "approve"]}
    scoped = either_tenant.http("admin").post("/v1/keys", json=narrow).json()["key"]
    assert ask_as(either_tenant, scoped, "/v1/whoami")["permissions"] == ["approve", "read"]
    home = {one["tenant_id"]: one for one in ask(either_server, "/v1/tenants", "admin")["items"]}
    assert {name for name, one in home.items() if one["may_enter"] or one["current"]} == {"tnt_default"}
    assert either_tenant.tenant_id in home
    (seen,) = ask(either_server, "/v1/tenants", "operator")["items"]
    assert seen["tenant_id"] == "tnt_default"
