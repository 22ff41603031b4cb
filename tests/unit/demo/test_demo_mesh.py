"""The simulated mesh "Atlas": who plays, what is said for a seed, when somebody may speak, who is refused."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import psutil
import pytest

from observatory.demo import crowd
from observatory.demo.agents import StoryAgents
from observatory.demo.cast import CLUSTERS, DIRECTOR, KINDS, NAMED, cast
from observatory.demo.director import INCIDENTS
from observatory.demo.incidents import without_intent
from observatory.demo.mesh import main
from observatory.demo.pacer import Pacer
from observatory.demo.part import StoryPart, ruled
from observatory.demo.report import report
from observatory.sdk import Outbox, Prompt
from tests.unit.sdk.sdk_control_gateway import ControlGateway
from tests.unit.sdk.sdk_gateway import KEY, PATIENCE_S, QUICK, FakeGateway, running
from tests.waiting import until


@pytest.fixture
def gateway() -> Iterator[FakeGateway]:
    with running() as one:
        yield one


class PostOffice(ControlGateway):
    """It also carries what is addressed, as the real one does; a person may change it or reject it."""

    def __init__(self) -> None:
        super().__init__()
        self.edited: dict[str, str] = {}
        self.rejected: set[str] = set()

    def _answer(self, line: bytes) -> bytes:
        answer, log = super()._answer(line), json.loads(line)
        recipient = log["identity"].get("recipient")
        if recipient in self.rejected:
            body = {"step_id": log["meta"]["step_id"], "verdict": "rejected", "note": "not this way"}
            self.deliver("verdict", body, log["meta"]["session_id"])
            return json.dumps(json.loads(answer) | {"state": "held"}).encode()
        if recipient is not None:
            log["cognition"]["intent"] = self.edited.get(recipient, log["cognition"]["intent"])
            sender = {"entity_id": "agt_1", "entity_type": "agent", "agent_id": log["identity"]["agent_id"]}
            self.deliver("message", {}, log["meta"]["session_id"], message=log, sender=sender)
        return answer


@pytest.fixture
def post_office() -> Iterator[PostOffice]:
    office = PostOffice()
    office.start()
    yield office
    office.let_go()
    office.stop()


def at_desk(
    office: PostOffice, data: Path, act: Any, agents: int = 40, seed: int = 7
) -> list[dict[str, Any]]:
    """What is said while `act(desk)` runs."""
    before = len(office.logs)

    async def play() -> None:
        outbox = Outbox("demo", office.credentials(data), QUICK)
        story_agents = StoryAgents(cast(agents), outbox, 1e4, seed, 1.0, 60.0)
        for name in story_agents.roles:
            story_agents.listen(name)
        pacing = asyncio.create_task(story_agents.pacer.run())
        await act(story_agents)
        pacing.cancel()
        await asyncio.to_thread(outbox.close)

    asyncio.run(asyncio.wait_for(play(), PATIENCE_S))
    return office.logs[before:]


def content(logs: list[dict[str, Any]]) -> list[str]:
    """Without ids, times and order: the gateway may hear two branches either way round."""
    received = []
    for log in logs:
        log["state_delta"].pop("cumulative_session_cost", None)
        agent = log["identity"]["agent_id"]
        received.append(
            json.dumps([agent, log["cognition"], log["action"], log["state_delta"]], sort_keys=True)
        )
    return sorted(received)


# --- who plays


def test_sixty_agents_of_eight_types_stand_in_five_clusters() -> None:
    roles = cast(60)
    assert len(roles) == NAMED and all(role.is_named for role in roles)
    assert Counter(role.cluster for role in roles) == dict.fromkeys(CLUSTERS, 12)
    assert {role.kind for role in roles} == set(KINDS) and len(KINDS) == 8


def test_every_incident_finds_its_actors_among_the_sixty() -> None:
    names = {role.agent_id for role in cast(60)}
    assert {"researcher-beta-3", "researcher-gamma-2", DIRECTOR} <= names
    assert {need for one in INCIDENTS.values() for need in one.needs} <= names


def test_a_thousand_agents_have_names_of_their_own_and_a_smaller_cast_is_a_prefix() -> None:
    roles = cast(1000)
    assert len({role.agent_id for role in roles}) == 1000
    assert roles[:60] == cast(60) and not any(role.is_named for role in roles[60:])


# --- what is said


def test_a_report_depends_on_the_seed_alone(post_office: PostOffice, tmp_path: Path) -> None:
    first, second = (
        content(at_desk(post_office, tmp_path, lambda story_agents: report(story_agents, 3)))
        for _ in range(2)
    )
    other = content(at_desk(post_office, tmp_path, lambda story_agents: report(story_agents, 3), seed=8))
    assert first == second != other


def test_a_report_forks_joins_spends_addresses_and_ends(post_office: PostOffice, tmp_path: Path) -> None:
    async def three(story_agents: StoryAgents) -> None:
        await asyncio.gather(*(report(story_agents, number) for number in range(1, 8)))

    logs = at_desk(post_office, tmp_path, three)
    ids = {log["meta"]["step_id"] for log in logs}
    children = Counter(log["meta"]["parent_step_id"] for log in logs)
    joins = [log for log in logs if len(log["meta"].get("parent_step_ids", ())) >= 2]
    assert max(children[i] for i in ids) >= 3 and joins
    assert all(set(log["meta"]["parent_step_ids"]) <= ids for log in joins)
    sizes = Counter(log["meta"]["session_id"] for log in logs)
    ended = {log["meta"]["session_id"] for log in logs if log["control"]["is_terminal"]}
    assert ended == set(sizes) and 5 <= min(sizes.values()) < 12 and 20 < max(sizes.values()) <= 60
    spent: dict[tuple[str, str], float] = {}
    for log in logs:
        key, received = (log["identity"]["agent_id"], log["meta"]["session_id"]), log["state_delta"]
        assert received["cumulative_session_cost"] >= spent.get(key, 0.0)
        spent[key] = received["cumulative_session_cost"]
    assert sum("recipient" in log["identity"] for log in logs) > len(logs) / 4
    assert post_office.refused == 0


async def pass_on(story_agents: StoryAgents) -> None:
    part = StoryPart.opening(story_agents, "analyst-alpha-1", Random(1))
    await part.say("Begin")
    other = await part.hand("writer-alpha-1", "Write about figs")
    await other.say(f"Wrote: {other.brief}", terminal=True)


def test_who_is_handed_something_builds_on_what_arrived_not_on_what_was_sent(
    post_office: PostOffice, tmp_path: Path
) -> None:
    post_office.edited["writer-alpha-1"] = "Write about dates"
    last = at_desk(post_office, tmp_path, pass_on)[-1]
    assert last["cognition"]["intent"] == "Wrote: Write about dates"
    assert last["cognition"]["reasoning_chain"] == ["analyst-alpha-1 hands over: “Write about dates”"]


def test_what_was_rejected_is_not_built_upon_and_its_sender_says_so(
    post_office: PostOffice, tmp_path: Path
) -> None:
    post_office.rejected.add("writer-alpha-1")

    async def refused(story_agents: StoryAgents) -> None:
        with pytest.raises(Exception, match="not this way"):
            await pass_on(story_agents)

    begin, sent, instead = at_desk(post_office, tmp_path, refused)
    assert instead["identity"]["agent_id"] == "analyst-alpha-1"
    assert instead["meta"]["parent_step_id"] == begin["meta"]["step_id"] != sent["meta"]["step_id"]
    assert "not this way" in instead["cognition"]["reasoning_chain"][0]


def test_an_injected_prompt_is_in_the_reasoning_of_the_next_step(
    post_office: PostOffice, tmp_path: Path
) -> None:
    async def received(story_agents: StoryAgents) -> None:
        part = StoryPart.opening(story_agents, "analyst-alpha-1", Random(1))
        await part.say("Begin")
        post_office.deliver("inject", {"prompt": "Use euro", "by": "usr_1"}, part.session_id)
        loop = asyncio.get_running_loop()

        def is_told() -> bool:
            return asyncio.run_coroutine_threadsafe(part.has_prompts(), loop).result()

        await asyncio.to_thread(until, is_told)
        await part.say("Go on")

    last = at_desk(post_office, tmp_path, received, agents=15)[-1]
    assert "Use euro" in last["cognition"]["reasoning_chain"][0]


def test_a_ruling_on_a_disagreement_becomes_what_the_agent_states() -> None:
    words = (
        "Ruling by an operator: the true value is 48.2 million. You stated another value of the subject "
        'that is named below. …\n\nWhat follows is a quotation …: "helvar share count"'
    )
    assert ruled(Prompt(words)) == ["helvar share count is 48.2 million"]
    assert ruled(Prompt("Use euro")) == []


def test_the_bad_deploy_is_refused_for_its_missing_intent(gateway: FakeGateway, tmp_path: Path) -> None:
    outbox = Outbox("demo", gateway.credentials(tmp_path), QUICK)
    story_agents = StoryAgents(cast(60), outbox, 10, 7, 1.0, 60.0)
    story_agents.agents["code-runner-delta-1"].queue_raw(
        line := without_intent(story_agents, "code-runner-delta-1")
    )
    assert outbox.flush(PATIENCE_S)
    outbox.close()
    log = json.loads(line)
    assert gateway.refused == 1 and "intent" not in log["cognition"]
    assert log["identity"]["capability_version"] == "v3.0.0"


# --- the crowd and the clock


def test_the_crowd_says_the_same_for_the_same_seed_and_is_never_refused(
    gateway: FakeGateway, tmp_path: Path
) -> None:
    def some(seed: int) -> list[str]:
        outbox = Outbox("crowd", gateway.credentials(tmp_path), QUICK)
        before = len(gateway.logs)
        (team,) = crowd.gather(cast(72)[60:], outbox)
        play = crowd.work(team, team, Random(seed))
        for _ in range(150):
            next(play)
        assert outbox.flush(PATIENCE_S)
        outbox.close()
        return content(gateway.logs[before:])

    first, second, other = some(1), some(1), some(2)
    assert first == second != other
    assert gateway.refused == 0


def test_turns_come_in_order_and_no_faster_than_the_rate() -> None:
    async def play() -> tuple[list[int], float]:
        pacer, order = Pacer(200), []
        clock = asyncio.get_running_loop().time

        async def speak(number: int) -> None:
            await pacer.turn()
            order.append(number)

        speakers = [asyncio.create_task(speak(n)) for n in range(20)]
        pacing, began = asyncio.create_task(pacer.run()), clock()
        await asyncio.gather(*speakers)
        pacing.cancel()
        return order, clock() - began

    order, took = asyncio.run(play())
    assert order == list(range(20))
    assert took >= 19 / 200 - 0.01


# --- the process


def test_a_signal_stops_the_mesh_cleanly(post_office: PostOffice, tmp_path: Path) -> None:
    environment = os.environ | {"OBSERVATORY_URL": post_office.url, "OBSERVATORY_KEY": KEY}
    environment |= {"OBSERVATORY_DATA": str(tmp_path)}
    command = [sys.executable, "-m", "observatory.demo.mesh", "--agents", "84", "--rate", "100"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as mesh:
        post_office.wait_for(lambda: len({log["identity"]["agent_type"] for log in post_office.logs}) >= 6)
        assert KEY not in " ".join(psutil.Process(mesh.pid).cmdline())
        mesh.send_signal(signal.SIGTERM)
        assert mesh.wait(PATIENCE_S) == 0
    assert not list(tmp_path.glob("spool/*"))


@pytest.mark.parametrize("argv", [["--agents", "0"], ["--rate", "0"], ["--incident", "earthquake"]])
def test_impossible_arguments_are_refused_with_a_sentence(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(argv)
    assert "error:" in capsys.readouterr().err
