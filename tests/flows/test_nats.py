"""NATS as bus and transport, with a real server: what comes by it walks the corridor that HTTP walks."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from observatory import Agent
from observatory.features.nats.ingest import MAX_PENDING
from observatory.protocol import nats
from observatory.protocol.credentials import public_id
from observatory.sdk import Cancelled, nats_connection
from observatory.sdk.delivery import Delivery
from tests.flows.databases import ALONE
from tests.flows.letters import Pen, answer_to, by_hand
from tests.flows.nats_harness import NatsHarness, bus_of, metric, of_agent
from tests.flows.sdk_harness import PATIENCE_S, aside, until
from tests.flows.server import Server, clean_environment
from tests.nats_server import Nats
from tests.samples import decision_log

if TYPE_CHECKING:
    from nats.aio.client import Client

Json = dict[str, Any]


# As docs/guides/nats.md says: an agent speaks on the subject of its own key and hears below its own inbox.
PERMISSIONS = """authorization { users = [
    { user: gateway, password: "hush-hush", permissions: {
        publish: ["observatory.>", "_INBOX.>", "$JS.API.>", "$JS.ACK.>"],
        subscribe: ["observatory.>", "_INBOX.>"] } }
    { user: courier, password: "hush-hush", permissions: {
        publish: [
          "observatory.ingest.KEY", "observatory.request", "observatory.channel", "observatory.pipe.>"],
        subscribe: ["_INBOX.KEY.>"] } }
    { user: mute, password: "hush-hush", permissions: { publish: ["nothing"], subscribe: ["_INBOX.>"] } }
] }"""


@pytest.fixture(scope="module")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nats]:
    """Started by the gateway's fixture: only then is it known which key its permissions are for."""
    server = Nats(tmp_path_factory.mktemp("nats"))
    yield server
    server.kill()


@pytest.fixture(scope="module")
def nats_url(nats_server: Nats) -> str:
    return nats_server.url.replace("nats://", "nats://gateway:hush-hush@")


@pytest.fixture(scope="module")
def gateway(nats_server: Nats, nats_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("on-nats") / "data"
    with Server(folder, environment=ALONE | {"OBSERVATORY_BUS": nats_url}) as server:
        nats_server.lines = [PERMISSIONS.replace("KEY", public_id(server.key("agent")) or "")]
        nats_server.start()
        until(lambda: bus_of(server)["connected"])
        yield server


@pytest.fixture
def harness(gateway: Server, nats_url: str, tmp_path: Path) -> Iterator[NatsHarness]:
    one = NatsHarness(gateway, tmp_path / "home", nats_url.replace("gateway:", "courier:"))
    yield one
    for agent in one.agents:
        agent.close()


# --- what an agent says ---


@pytest.mark.req(110, 230, 341)
def test_an_agent_on_nats_is_heard_answered_and_greeted_as_one_on_http_s827_s831(
    harness: NatsHarness,
) -> None:
    """S827, S831, S839: by NATS alone; the health names the address and no password, and so does the log."""
    agent = harness.agent()
    assert agent.register(capabilities=["sums"])["capabilities"][-1] == "sums"
    steps = [agent.step(f"step {n}", tool_call="add", tool_input={"n": n}) for n in range(250)]
    assert agent.flush(PATIENCE_S)
    answers = [step.answer(PATIENCE_S) for step in steps]
    assert {(one.code, one.state) for one in answers} == {(202, "forwarded")}
    assert harness.intents() == [f"step {n}" for n in range(250)]
    thought = agent.think("plan", "First the sums, then the rest.")
    assert thought.record_id
    shown = bus_of(harness.server)
    assert (shown["kind"], shown["connected"], shown["away_since"]) == ("nats", True, None)
    assert shown["address"].endswith("/observatory")
    assert "hush-hush" not in json.dumps(shown) + harness.server.log + repr(agent.outbox.credentials)


def test_what_is_refused_over_http_is_refused_over_nats_in_the_same_words_s827(
    gateway: Server, nats_url: str
) -> None:
    """S827: not JSON, a broken schema, a repeat, the same name with other content, a batch of lines."""
    pen = Pen(gateway.key("agent"))
    good = decision_log(identity={"agent_id": "twice"})
    good["meta"]["step_id"] = str(uuid.uuid4())
    other = good | {"action": good["action"] | {"status": "failure"}}
    ndjson = b"\n".join([json.dumps(good).encode(), b"{", b"[]"]) + b"\n"

    async def say(client: Client) -> list[tuple[int, Json, bool]]:
        letters = [pen.message(body) for body in (good, good, other, b"\xff{", {}, b"x" * 2_000)]
        return [await answer_to(client, pen, letter) for letter in letters]

    async def say_lines(client: Client) -> str:
        inbox = client.new_inbox()
        heard = await client.subscribe(inbox)
        letter = pen.message(ndjson, inbox, kind="application/x-ndjson")
        await client.publish(letter.subject, letter.body, headers=pen.headers(letter))
        return (await heard.next_msg(PATIENCE_S)).data.decode()

    found = by_hand(nats_url, say)
    assert [status for status, _, _ in found] == [202, 202, 409, 400, 422, 400]
    assert all(signed for _, _, signed in found)
    assert found[0][1] == found[1][1], "a repeat is answered as the first was"
    over_http = [gateway.send(body) for body in (good, other, b"\xff{", b"{}")]
    by_nats = [found[0], found[2], found[3], found[4]]
    assert [answer.json() for answer in over_http] == [body for _, body, _ in by_nats]
    codes = [json.loads(line)["code"] for line in by_hand(nats_url, say_lines).splitlines()]
    assert codes == [202, 400, 422]
    assert len(of_agent(gateway, "twice")) == 1


@pytest.mark.req(504, 511)
def test_a_trace_goes_on_from_an_agent_on_nats_to_one_on_http(harness: NatsHarness, tmp_path: Path) -> None:
    """S833: what one says to the other arrives with its trace, by whichever way each of them is reached."""
    sender = harness.agent()
    receiver = Agent(
        f"{harness.name}-http",
        url=harness.server.url,
        key=harness.server.key("agent"),
        data=tmp_path / "other",
    )
    harness.agents.append(receiver)
    assert receiver.listen(PATIENCE_S)
    said = sender.step("Over to you", recipient=receiver.agent_id)
    said.answer(PATIENCE_S)
    [got] = receiver.messages(PATIENCE_S)
    back = receiver.session(continues=got).step("And back", recipient=sender.agent_id)
    back.answer(PATIENCE_S)
    [returned] = sender.messages(PATIENCE_S)
    assert got.traceparent and returned.traceparent
    assert got.traceparent.split("-")[1] == returned.traceparent.split("-")[1]
    assert got.session_id == returned.session_id == said.session_id


# --- what a person orders ---


@pytest.mark.req(97, 99)
def test_pause_inject_approve_and_cancel_reach_an_agent_on_nats_s834(harness: NatsHarness) -> None:
    """S834: the four orders, end to end, none of it by HTTP on the agent's side."""
    agent = harness.agent()
    first = agent.step("step 0")
    first.answer(PATIENCE_S)
    harness.do("pause", first.session_id)
    until(lambda: agent.orders.is_held(first.session_id or ""))
    until(lambda: not harness.inbox())  # acknowledged by NATS
    blocked = aside(lambda: agent.step("step 1"))
    assert not blocked.done()
    harness.do("inject", first.session_id, prompt="Mind the gap.")
    harness.do("unpause", first.session_id)
    assert blocked.result(PATIENCE_S).answer(PATIENCE_S).state == "forwarded"
    until(lambda: agent.orders._prompts)
    assert [prompt.text for prompt in agent.prompts()] == ["Mind the gap."]
    asked = aside(lambda: agent.ask("Deploy", tool_call="deploy", tool_input={"to": "production"}))
    held = harness.held()
    harness.do("approve", held["session_id"], message_id=held["message_id"], note="go")
    assert asked.result(PATIENCE_S).tool_input == {"to": "production"}
    refused = aside(lambda: agent.ask("Erase", tool_call="erase", tool_input={}))
    held = harness.held()
    harness.do("reject", held["session_id"], message_id=held["message_id"], note="no")
    assert not refused.result(PATIENCE_S)
    harness.do("cancel", first.session_id, note="wrong client")
    until(lambda: agent.orders.is_cancelled(first.session_id or ""))
    with pytest.raises(Cancelled, match="wrong client"):
        agent.step("goes on all the same")


def test_the_channel_by_nats_is_told_of_and_its_end_too_s835(harness: NatsHarness) -> None:
    """S835: an agent that says goodbye is gone at once; the record names the way it came by."""
    agent = harness.agent()
    agent.close()

    def received() -> list[str]:
        items = harness.server.http().get("/v1/audit/tenant", params={"limit": 1000}).json()["items"]
        mine = [item for item in items if harness.name in json.dumps(item) and '"nats"' in json.dumps(item)]
        return [item["body"]["event_type"] for item in mine]

    until(lambda: {"agent_connected", "agent_disconnected"} <= set(received()))


def test_a_delivery_larger_than_a_nats_message_comes_whole_s837(harness: NatsHarness) -> None:
    """S837: cut on the way and put together again."""
    agent, other = harness.agent(), harness.agent(f"{harness.name}-big")
    noise = "".join(random.Random(7).choices("0123456789abcdef", k=1_040_000))  # gzip halves it
    other.step(
        "A long story", recipient=agent.agent_id, tool_call="tell", tool_input={"story": noise}
    ).answer(PATIENCE_S)
    [got] = agent.messages(PATIENCE_S)
    assert noise in json.dumps(got.message)


# --- what no agent would send ---


def test_a_letter_that_is_not_signed_by_a_good_key_is_let_go_and_changes_nothing_s825_s830(
    gateway: Server, nats_url: str
) -> None:
    """S825, S830, S832: a wrong signature, an unknown key, a changed time, another's subject: all 401."""
    key = gateway.key("agent")
    pen, stranger = Pen(key), Pen("obs_" + "0" * 50)
    stranger.public = "A" * 12
    log = decision_log(identity={"agent_id": "forger"})
    before = metric(gateway, 'observatory_nats_ingest_total{result="discarded"}')

    async def say(client: Client) -> list[tuple[int, Json, bool]]:
        return [
            await answer_to(client, pen, pen.message(log), {nats.SIGNATURE: "0" * 64}),
            await answer_to(client, stranger, stranger.message(log)),
            await answer_to(client, pen, pen.message(log), {nats.TIME: "1"}),
            await answer_to(client, pen, pen.message(log, subject=pen.address.ingest("B" * 12))),
        ]

    async def noise(client: Client) -> None:
        for subject in ("observatory.ingest.x", "observatory.request", "observatory.channel"):
            for body in (b"", b"\xff\x00", b"{" * 10_000, b"[]"):
                await client.publish(subject, body, client.new_inbox())
                await client.publish(subject, body, headers={nats.KEY: "x", "Status": "409"})
                letter = pen.message(
                    body, "observatory.notice", subject=subject
                )  # answers go to inboxes only
                await client.publish(subject, body, headers=pen.headers(letter))
        for body in (
            b"",
            b"\xff",
            b'{"house":1}',
            b'{"house":"x","gateway":"y","levels":{"tnt_default":99}}',
        ):
            await client.publish("observatory.notice", body)
            await client.publish("observatory.pipe.nobody", body)
        await client.flush()

    async def broken_head(client: Client) -> None:
        head = b"NATS/1.0 \xff\xff\xff\r\n\r\n"  # as no client would write it
        await client._send_command(b"HPUB observatory.ingest.x %d %d\r\n%s{}\r\n" % (16, 18, head))
        await client.flush()

    found = by_hand(nats_url, say)
    assert [(status, signed) for status, _, signed in found] == [(401, False)] * 4
    by_hand(nats_url, noise)
    by_hand(nats_url, broken_head)
    until(lambda: metric(gateway, 'observatory_nats_ingest_total{result="discarded"}') >= before + 4 + 12 + 1)
    assert of_agent(gateway, "forger") == []
    assert bus_of(gateway)["status"] == "ok"
    failures = [line for line in gateway.http().get("/metrics").text.splitlines() if "nats" in line]
    assert 'observatory_worker_failures_total{worker="nats requests"} 0' in failures


def test_a_revoked_key_sends_nothing_more_by_nats_s826(gateway: Server, nats_url: str) -> None:
    """S826: from the very next message."""
    made = gateway.http().post("/v1/keys", json={"role": "agent", "label": "short-lived"}).json()
    pen = Pen(made["key"])
    log = decision_log(identity={"agent_id": "revoked"})

    async def say(client: Client) -> int:
        return (await answer_to(client, pen, pen.message(log)))[0]

    assert by_hand(nats_url, say) == 202
    assert gateway.http().delete(f"/v1/keys/{made['key_id']}").status_code < 300
    assert by_hand(nats_url, say) == 401
    assert len(of_agent(gateway, "revoked")) == 1


def test_a_key_that_sends_nothing_but_violations_holds_up_no_other_by_nats_s1301(
    gateway: Server, nats_url: str
) -> None:
    """S1301: more of its letters than the stream keeps open at once are answered 429 and leave the stream."""
    made = gateway.http().post("/v1/keys", json={"role": "agent", "label": "broken"}).json()
    pen, other = Pen(made["key"]), Pen(gateway.key("agent"))

    headers = {"authorization": f"Bearer {made['key']}", "content-type": "application/x-ndjson"}
    assert gateway.http("nobody").post("/v1/messages", content=b"{}\n" * 1_000, headers=headers).is_success

    async def say(client: Client) -> tuple[int, int]:
        code = (await answer_to(client, pen, pen.message(b"{}")))[0]
        for _ in range(MAX_PENDING + 100):
            letter = pen.message(b"{}", reply=client.new_inbox())
            await client.publish(letter.subject, letter.body, headers=pen.headers(letter))
        await client.flush()
        good = other.message(decision_log(identity={"agent_id": "unhindered"}))
        return code, (await answer_to(client, other, good))[0]

    assert by_hand(nats_url, say) == (429, 202)


def test_a_channel_ends_with_its_key_s826(
    gateway: Server, harness: NatsHarness, nats_url: str, tmp_path: Path
) -> None:
    """S826: it hears nothing more, and is told why."""
    made = gateway.http().post("/v1/keys", json={"role": "agent", "label": "short-lived"}).json()
    agent = Agent("ends", url=nats_url, key=made["key"], data=tmp_path)
    harness.agents.append(agent)
    assert agent.listen(PATIENCE_S)
    assert gateway.http().delete(f"/v1/keys/{made['key_id']}").status_code < 300
    until(lambda: not agent.orders.connected)


def test_a_request_is_done_once_and_only_while_it_is_fresh_s831(gateway: Server, nats_url: str) -> None:
    """S831: what was overheard is worth nothing; whoever asks for what is no door of ours is told so."""
    pen = Pen(gateway.key("agent"))
    body = json.dumps({"agent_id": "once"}).encode()

    async def ask(client: Client) -> list[tuple[int, Json, bool]]:
        inbox = client.new_inbox()
        heard = await client.subscribe(inbox)
        letter = pen.request("POST /v1/agents", inbox, body)
        found = []
        for _ in range(2):
            await client.publish(letter.subject, letter.body, inbox, pen.headers(letter))
            message = await heard.next_msg(PATIENCE_S)
            received = message.headers or {}
            found.append((int(received[nats.STATUS]), json.loads(message.data), nats.SIGNATURE in received))
        old = pen.request("POST /v1/agents", "", body, time_ns=1)
        strange = pen.request("CONNECT /etc/passwd", "")
        operator = pen.request("GET /v1/holds", "")
        return found + [await answer_to(client, pen, one, native=True) for one in (old, strange, operator)]

    found = by_hand(nats_url, ask)
    assert [status for status, _, _ in found] == [201, 401, 401, 400, 403]
    assert [body.get("reason") for _, body, _ in found[1:3]] == ["repeated", "not_fresh"]


def test_an_agent_whose_clock_is_wrong_is_told_so_s831(
    harness: NatsHarness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """S831: not that its key is refused."""
    monkeypatch.setattr(nats_connection, "time", SimpleNamespace(time_ns=lambda: 10**18))
    caplog.set_level("INFO", "observatory.sdk")
    late = Agent("late", url=harness.url, key=harness.server.key("agent"), data=tmp_path)
    harness.agents.append(late)
    late.listen(0)
    until(lambda: "clock" in caplog.text)
    monkeypatch.undo()


def test_an_agent_that_nats_forbids_to_speak_is_told_which_permission_it_lacks_s839(
    gateway: Server, nats_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """S839: what it said is kept."""
    url = nats_url.replace("gateway:", "mute:")
    quick = Delivery(timeout_s=0.5, backoff_s=0.05)
    key = gateway.key("agent")
    agent = Agent("mute", url=url, key=key, data=tmp_path, delivery=quick, control=False)
    agent.step("unheard")
    until(lambda: "lacks a permission" in caplog.text)
    assert "observatory.ingest." in caplog.text and "hush-hush" not in caplog.text
    assert not agent.close(0.1)
    [kept] = (tmp_path / "spool").glob("*.jsonl")
    assert b"unheard" in kept.read_bytes()


@pytest.mark.req(50)
def test_the_example_runs_by_nats_alone(gateway: Server, harness: NatsHarness, tmp_path: Path) -> None:
    door = harness.credentials()
    environment = clean_environment(
        OBSERVATORY_URL=door["url"], OBSERVATORY_KEY=door["key"], OBSERVATORY_DATA=str(tmp_path)
    )
    command = [sys.executable, "examples/nats/agent.py", "3"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "4 steps" in done.stdout
    assert len(of_agent(gateway, "courier-1")) == 4


# --- how it is set up ---


def test_another_house_leaves_the_stream_alone_s824(
    gateway: Server, nats_url: str, tmp_path: Path, harness: NatsHarness
) -> None:
    """S824: it starts, says why it takes nothing, and names the way out; the first one goes on."""
    with Server(tmp_path / "other", environment=ALONE | {"OBSERVATORY_BUS": nats_url}) as other:
        until(lambda: bus_of(other)["status"] == "degraded")
        shown = bus_of(other)
        assert "belongs to another Observatory" in shown["text"] and "/other-prefix" in shown["text"]
        until(lambda: "belongs to another Observatory" in other.log)
        agent = harness.agent()
        assert agent.step("still here").answer(PATIENCE_S).code == 202
        assert of_agent(other, harness.name) == []


def test_a_stream_that_is_deleted_is_made_again_and_nothing_is_lost_s836(
    gateway: Server, nats_url: str, harness: NatsHarness
) -> None:
    """S836: agents find out by the missing verdict and send again."""
    agent = harness.agent()
    agent.step("before").answer(PATIENCE_S)

    async def delete(client: Client) -> None:
        await client.jetstream().delete_stream("OBSERVATORY_INGEST")

    by_hand(nats_url, delete)
    steps = [agent.step(f"after {n}") for n in range(20)]
    assert agent.flush(PATIENCE_S)
    assert {step.answer(PATIENCE_S).code for step in steps} == {202}
    assert harness.intents() == ["before", *(f"after {n}" for n in range(20))]
