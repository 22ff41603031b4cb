"""The TypeScript SDK in Node against a real gateway: what the Python SDK promises, it promises too."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.flows.node_agent import NodeAgent, Thrown
from tests.flows.sdk_harness import PATIENCE_S, Json, SdkHarness, until
from tests.flows.server import Server

SETTLED = "{timeout_s: 30}"
Start = Callable[..., NodeAgent]


@pytest.fixture
def harness(server: Server, tmp_path: Path) -> SdkHarness:
    return SdkHarness(server, tmp_path / "home")


@pytest.fixture
def node(harness: SdkHarness) -> Iterator[Start]:
    """A Node process with an agent that listens."""
    with ExitStack() as ending:

        def start(name: str | None = None, **options: Any) -> NodeAgent:
            made = ending.enter_context(
                NodeAgent(harness.server, name or harness.name, harness.home, **options)
            )
            assert made.run(f"return await agent.listen({SETTLED})")
            return made

        yield start


@pytest.mark.req(50, 107)
def test_steps_are_archived_with_their_parents_and_valid_by_the_schema_s910(
    harness: SdkHarness, node: Start
) -> None:
    """S910: said without awaiting, in order; forks, a join, a tool, a handoff, an ambient session."""
    agent = node(model="m-1")
    received = agent.run(f"""
        const asked = {{tool_call: "search", tool_input: {{q: "x"}}}};
        agent.step("Look it up", {{...asked, cost: 0.1, reasoning_chain: "one"}});
        agent.step("Write it down", {{status: "pending", cost: 0.2}});
        const s = agent.session();
        s.step("Plan");
        const [left, right] = [s.fork(), s.fork()];
        left.step("Figures"); right.step("Quotes");
        s.join(left, right).step("Merge");
        await s.tool("sum", [1, 2], (call) => {{ call.output = "3"; return 3; }});
        await s.tool("fail", null, () => {{ throw new Error("no luck"); }}).catch(() => {{}});
        await s.run(async () => {{ await null; agent.step("Inside"); }});
        agent.session({{continues: JSON.parse(JSON.stringify(s.handoff()))}}).step("Elsewhere");
        here.s = s.session_id;
        return [await agent.flush({SETTLED}), s.session_id];
    """)
    items = {item["message"]["cognition"]["intent"]: item for item in harness.archived()}
    assert received[0] and list(items) == [
        *("Look it up", "Write it down", "Plan", "Figures", "Quotes", "Merge", "Call sum", "Call fail"),
        *("Inside", "Elsewhere"),
    ]
    schema = harness.server.http("nobody").get("/schemas/decision_log.json").json()
    for item in items.values():
        jsonschema.validate(item["message"], schema, jsonschema.Draft202012Validator)
    step = {intent: item["step_id"] for intent, item in items.items()}
    parents = {intent: item["parents"] for intent, item in items.items()}
    assert parents["Look it up"] == [] == parents["Plan"]
    assert parents["Write it down"] == [step["Look it up"]]
    assert parents["Figures"] == [step["Plan"]] == parents["Quotes"]
    assert parents["Merge"] == [step["Figures"], step["Quotes"]]
    assert parents["Inside"] == [step["Call fail"]] and parents["Elsewhere"] == [step["Inside"]]
    assert {items[name]["session_id"] for name in ("Plan", "Merge", "Inside", "Elsewhere")} == {received[1]}
    first, second = (items[name]["message"] for name in ("Look it up", "Write it down"))
    assert first["action"]["tool_input"] == '{"q":"x"}' and first["cognition"]["reasoning_chain"] == ["one"]
    assert second["state_delta"]["cumulative_session_cost"] == 0.3
    assert items["Call sum"]["message"]["action"]["tool_output_summary"] == "3"
    failed = items["Call fail"]["message"]["action"]
    assert failed["status"] == "failure" and "no luck" in failed["tool_output_summary"]


@pytest.mark.req(99, 133, 186, 187, 188, 195)
def test_a_paused_agent_waits_at_its_next_step_and_goes_on_in_order_s911(
    harness: SdkHarness, node: Start
) -> None:
    """S911: also one that starts while it is paused; other sessions go on; so does its event loop."""
    agent = node()
    session_id = agent.run(
        f"const s = await agent.step('step 0'); await s.answer({SETTLED}); return s.session_id"
    )
    held = f"return agent.orders.isHeld('{session_id}')"
    harness.do("pause", session_id)
    until(lambda: agent.run(held))
    until(lambda: not harness.inbox())  # acknowledged
    blocked = agent.aside(f"""
        const steps = await Promise.all(Array.from({{length: 19}}, (_, n) => agent.step(`step ${{n + 1}}`)));
        const answers = await Promise.all(steps.map((step) => step.answer({SETTLED})));
        return [...new Set(answers.map((answer) => answer.state))];
    """)
    elsewhere = f"return (await (await agent.session().step('another session')).answer({SETTLED})).state"
    assert agent.run(elsewhere) == "forwarded"
    late = node(heartbeat_s=None)
    there = f"agent.session({{session_id: '{session_id}'}})"
    started = late.aside(f"const s = await {there}.step('late'); await s.answer({SETTLED})")
    assert late.run(held)
    assert not blocked.done() and not started.done()
    assert harness.intents() == ["step 0", "another session"]
    harness.do("unpause", session_id)
    assert blocked.result(PATIENCE_S) == ["forwarded"]
    started.result(PATIENCE_S)
    assert [intent for intent in harness.intents() if intent != "late"] == [
        *("step 0", "another session"),
        *(f"step {n}" for n in range(1, 20)),
    ]


def test_the_kill_switch_stops_an_agent_and_releases_it_s911(harness: SdkHarness, node: Start) -> None:
    """S911: in every session, until it is released."""
    kind, admin = f"kind-{uuid.uuid4().hex[:8]}", harness.server.http("admin")
    agent = node(agent_type=kind)
    agent.run(f"await (await agent.step('works')).answer({SETTLED})")
    armed = admin.post("/v1/kill-switch", json={"scope": "class", "target": kind, "reason": "a drill"}).json()
    path, token = f"/v1/kill-switch/{armed['kill_id']}", armed["token"]
    token = admin.post(f"{path}/confirm", json={"token": token}).json()["token"]
    assert admin.post(f"{path}/confirm", json={"token": token}).json()["state"] == "engaged"
    until(lambda: agent.run("return agent.orders.isHeld('any')"))
    blocked = agent.aside(f"return (await (await agent.session().step('goes on')).answer({SETTLED})).state")
    assert agent.run("return agent.orders.isHeld('any')") and not blocked.done()
    assert admin.post(f"{path}/release", json={"reason": "over"}).status_code == 202
    assert blocked.result(PATIENCE_S) == "forwarded"


ASK = "return await agent.session().ask('Deploy', {tool_call: 'deploy', tool_input: {to: 'production'}})"


@pytest.mark.req(99, 155, 180, 181, 182, 183)
def test_asking_gives_what_was_approved_and_a_no_is_thrown_s912(harness: SdkHarness, node: Start) -> None:
    """S912: approved, edited, rejected, expired, refused by a rule, out of patience, aborted."""
    agent = node()

    def answered(command: str, **body: Any) -> Any:
        asked = agent.aside(ASK)
        held = harness.held()
        assert not asked.done()
        if "new_content" in body:
            content = next(i["message"] for i in harness.archived() if i["message_id"] == held["message_id"])
            content["action"]["tool_input"] = body["new_content"]
            body["new_content"] = content
        harness.do(command, held["session_id"], message_id=held["message_id"], **body)
        until(lambda: not harness.holds())
        return asked.result(PATIENCE_S)

    approved = answered("approve", note="go ahead")
    assert (approved["verdict"], approved["note"], approved["edited"]) == ("approved", "go ahead", False)
    assert (approved["tool_call"], approved["tool_input"]) == ("deploy", {"to": "production"})
    edited = answered("edit", new_content='"only me"')
    assert (edited["verdict"], edited["tool_input"], edited["edited"]) == ("edited", "only me", True)
    with pytest.raises(Thrown, match="not on a Friday") as no:
        answered("reject", note="not on a Friday")
    assert (no.value.name, no.value.reason) == ("Denied", "rejected")

    hurried = "{hitl_required: true, timeout_s: 0.2}"
    with pytest.raises(Thrown) as no:
        agent.run(f"await agent.session().step('No time', {hurried})")
    assert (no.value.name, no.value.reason) == ("Denied", "no_verdict")
    with pytest.raises(Thrown) as no:
        agent.run("await agent.session().ask('Never mind', {signal: AbortSignal.timeout(100)})")
    assert no.value.name == "TimeoutError"

    admin, mine = harness.server.http("admin"), {"sender": [harness.name]}
    expiring = {"effect": "hold", "match": mine | {"tool": ["burn"]}, "deadline_s": 1}
    denying = {"effect": "deny", "match": mine | {"tool": ["shred"]}}
    for rule in (expiring, denying):
        assert admin.post("/v1/policies", json=rule).status_code < 300
    late = agent.aside("return await agent.session().permit('Burn', {tool_call: 'burn'})")
    for said in ("ask('Shred', {tool_call: 'shred'})", "permit('Shred', {tool_call: 'shred', timeout_s: 0})"):
        with pytest.raises(Thrown) as no:
            agent.run(f"return await agent.session().{said}")
        assert no.value.reason == "policy_denied" and "rule pol_" in (no.value.note or ""), said
    with pytest.raises(Thrown) as no:
        late.result(PATIENCE_S)
    assert no.value.reason == "expired"


def test_a_permission_is_asked_of_the_rules_and_a_no_is_thrown_s913(harness: SdkHarness, node: Start) -> None:
    """S913: at once when nothing holds it; by a person's word, and as edited, when a rule does."""
    agent = node()
    free = agent.run("return await agent.permit('Read', {tool_call: 'read', tool_input: {page: 1}})")
    assert (free["verdict"], free["tool_input"]) == ("not_required", {"page": 1})
    rule = {"effect": "hold", "match": {"sender": [harness.name], "tool": ["pay"]}}
    assert harness.server.http("admin").post("/v1/policies", json=rule).status_code < 300
    asked = agent.aside("return await agent.permit('Pay', {tool_call: 'pay', tool_input: {amount: 98000}})")
    held = harness.held()
    content = next(i["message"] for i in harness.archived() if i["message_id"] == held["message_id"])
    content["action"]["tool_input"] = '{"amount":9800}'
    harness.do("edit", held["session_id"], message_id=held["message_id"], new_content=content)
    assert asked.result(PATIENCE_S)["tool_input"] == {"amount": 9800}
    needed = agent.aside("return await agent.permit('Tell all', {tool_call: 'tell', needs_approval: true})")
    held = harness.held()
    harness.do("reject", held["session_id"], message_id=held["message_id"])
    with pytest.raises(Thrown, match="denied: rejected"):
        needed.result(PATIENCE_S)
    shut_out = NodeAgent(harness.server, harness.name, harness.home, key="obs_wrong", control=False)
    with shut_out, pytest.raises(Thrown) as no:
        shut_out.run("return await agent.permit('Read', {tool_call: 'read'})")
    assert (no.value.name, no.value.reason) == ("Denied", "not_admitted")


@pytest.mark.req(99)
def test_cancel_wakes_and_throws_and_the_last_word_passes_s914(harness: SdkHarness, node: Start) -> None:
    """S914: a promise nobody listens to does not end the process."""
    agent = node()
    session_id = agent.run(
        f"const s = await agent.step('works'); await s.answer({SETTLED}); return s.session_id"
    )
    harness.do("pause", session_id)
    until(lambda: agent.run(f"return agent.orders.isHeld('{session_id}')"))
    blocked = agent.aside("agent.step('unheard'); await agent.step('goes on')")
    harness.do("cancel", session_id, note="wrong client")
    with pytest.raises(Thrown, match="wrong client") as ended:
        blocked.result(PATIENCE_S)
    assert ended.value.name == "Cancelled"
    with pytest.raises(Thrown, match="Cancelled"):
        agent.run("await agent.step('goes on all the same')")
    harness.do("unpause", session_id)
    until(lambda: not agent.run(f"return agent.orders.isInForce('{session_id}')"))
    agent.run(f"await (await agent.step('last word', {{terminal: true}})).answer({SETTLED})")
    assert harness.intents() == ["works", "last word"]


@pytest.mark.req(99, 133, 191, 192, 504)
def test_what_an_agent_had_not_dealt_with_when_it_was_killed_comes_again_s915(
    harness: SdkHarness, node: Start
) -> None:
    """S915: prompts and messages; a reply has the message that triggered it as parent, and its trace."""
    planner = node(f"planner-{uuid.uuid4().hex[:8]}")
    killed = NodeAgent(harness.server, harness.name, harness.home)
    session_id = killed.run(
        f"const s = await agent.step('works'); await s.answer({SETTLED}); return s.session_id"
    )
    sent = planner.run(f"""
        const s = await agent.session().step("Check this", {{recipient: "{harness.name}"}});
        await s.answer({SETTLED});
        return [s.step_id, s.session_id];
    """)
    taken = f"here.all = agent.incoming({SETTLED}); return (await here.all.next()).value.text"
    assert killed.run(taken) == "Check this"
    harness.do("inject", session_id, prompt="Use euros")
    until(lambda: killed.run("return agent.orders.hasPrompts"))
    killed.kill()
    assert {item["kind"] for item in harness.inbox()} == {"message", "inject"}

    heir = node()
    reply = heir.run(f"""
        for await (const message of agent.incoming({SETTLED})) {{
          const recipient = message.sender.agent_id;
          const step = await agent.session({{continues: message}}).step("Checked", {{recipient}});
          await step.answer({SETTLED});
          return message.traceparent;
        }}
    """)
    until(lambda: heir.run("return agent.orders.hasPrompts"))
    in_session = f"agent.session({{session_id: '{session_id}'}})"
    assert heir.run(f"return {in_session}.context([])") == [{"role": "user", "content": "Use euros"}]
    until(lambda: not harness.inbox())
    assert heir.run(f"return {in_session}.prompts()") == []
    (answer,) = planner.run(f"return await agent.messages({SETTLED})")
    assert answer["session_id"] == sent[1] and answer["traceparent"].split("-")[1] == reply.split("-")[1]
    assert next(i["parents"] for i in harness.archived() if i["session_id"] == sent[1]) == [sent[0]]


ODD = """
    const circle = {name: "a"}; circle.self = circle;
    let deep = {}; for (let n = 0; n < 50000; n++) deep = {deep};
    const throwing = {get bad() { throw new Error("no"); }, toJSON() { throw new Error("no"); }};
    const hostile = new Proxy({}, {ownKeys() { throw new Error("no"); }});
    const inputs = [1n, 2n ** 80n, circle, deep, throwing, new Map([["k", 1]]), new Set([1]),
      new Uint8Array(3), Symbol("s"), () => 1, Number.NaN, new Date(NaN), hostile, undefined];
    for (const tool_input of inputs) agent.step("Odd", {tool_call: "odd", tool_input, tokens_consumed: 5n});
"""


def test_a_step_never_throws_for_what_it_was_told_and_a_refusal_names_every_fault_s918(
    harness: SdkHarness, node: Start
) -> None:
    """S918: big integers, circles, throwing getters, lone surrogates, names that are not ours."""
    agent = node()
    received = agent.run(
        f"{ODD} return [inputs.length, await agent.flush({SETTLED}), agent.rejections.map(String)]"
    )
    assert received[1:] == [True, []]
    written = [item["message"]["action"].get("tool_input") for item in harness.archived()]
    assert len(written) == received[0] and written[:3] == [
        "1",
        '"1208925819614629174706176"',
        '{"name":"a","self":"[circular]"}',
    ]
    assert written[4] == '{"bad":"[unreadable]"}'
    assert written[5:8] == ['{"k":1}', "[1]", '"[3 bytes]"'] and written[-1] is None
    assert {item["message"]["state_delta"]["tokens_consumed"] for item in harness.archived()} == {5}

    with pytest.raises(Thrown, match=r"422.*cognition\.confidence_score") as refused:
        agent.run(f"""
            const bad = await agent.step("Too sure", {{confidence_score: 7, hint: "none"}});
            const odd = await agent.step("lone \\ud800");
            await (await agent.step("Sure", {{confidence_score: 0.7}})).answer({SETTLED});
            here.odd = await odd.answer({SETTLED}).catch(String);
            await bad.answer({SETTLED});
        """)
    assert [fault["path"] for fault in refused.value.faults] == ["cognition.confidence_score"]
    assert "was refused with 4" in agent.run("return here.odd")
    assert len(agent.run("return agent.rejections.map(String)")) == 2
    assert any("does not know hint" in text for _, text in agent.run("return logged"))
    assert harness.intents()[-1] == "Sure"


def test_a_decision_thoughts_instructions_and_a_pulse_reach_the_other_side_s921(
    harness: SdkHarness, node: Start
) -> None:
    """S921: decide and confirm, think and proof, register, heartbeat, instructions, remind."""
    admin, kind = harness.server.http("admin"), f"kind-{uuid.uuid4().hex[:8]}"
    user = admin.post("/v1/users", json={"name": f"owner-{uuid.uuid4().hex}", "role": "approver"}).json()
    key = admin.post("/v1/keys", json={"role": "approver", "user_id": user["user_id"]}).json()["key"]
    agent = node(agent_type=kind)
    registered = agent.run(
        f"return await agent.register({{owner: '{user['user_id']}', capabilities: ['ship']}})"
    )
    assert "ship" in registered["capabilities"] and registered["entity_id"].startswith("agt_")
    asked = agent.aside("""
        const wait = {option_id: "wait", label: "Wait", risk_level: "low"};
        here.choice = await agent.decide("Ship?", ["ship", wait], {deadline: 600, default: "wait"});
        return here.choice;
    """)

    def pending() -> list[Json]:
        return list(admin.get("/v1/decisions/pending", params={"user_id": user["user_id"]}).json()["items"])

    decision_id = until(pending)[0]["decision_id"]
    answer = admin.post(
        f"/v1/decisions/{decision_id}/respond",
        json={"selected_option_id": "ship", "respondent_note": "fine"},
        headers={"authorization": f"Bearer {key}"},
    )
    assert answer.status_code == 200, answer.text
    choice = asked.result(PATIENCE_S)
    assert (choice["option_id"], choice["decision_id"], choice["note"]) == ("ship", decision_id, "fine")
    confirmed = (
        f"return (await (await agent.confirm(here.choice, 'success', 'shipped')).answer({SETTLED})).warnings"
    )
    assert agent.run(confirmed) == []
    assert admin.get(f"/v1/decisions/{decision_id}").json()["state"] == "succeeded"

    proved = agent.run("""
        const proof = await agent.proof("Deploy v2", async (p) => {
          const plan = await p.think("plan", "look, decide, tell");
          const chosen = {choice: "ship", alternatives: ["wait"], why: "green"};
          await p.think("decision", chosen, {references: [plan.record_id]});
          p.conclude({happened: "shipped", proved: "3/3", uncertain: "load"});
        });
        return [proof.session_id, proof.root];
    """)
    seen = harness.server.http("viewer").get(f"/v1/sessions/{proved[0]}/thoughts").json()
    assert [item["type"] for item in seen["items"]] == ["plan", "decision", "reflection"]
    assert proved[1].startswith("sha256:")
    with pytest.raises(Thrown, match=r"Rejected.*schema_violation"):
        agent.run("await agent.think('decision', {choice: 'a'})")

    assert admin.put(f"/v1/instructions/{kind}", json={"text": "Be kind"}).status_code == 201
    until(lambda: agent.run("return agent.instructions") == "Be kind")
    agent.run("agent.heartbeat('busy', {task: 'Reading', progress: 40})")

    def known() -> Json:
        return dict(admin.get(f"/v1/agents/{harness.name}").json())

    until(lambda: known()["status"] == "busy")
    assert known()["task"]["progress_pct"] == 40
    reminded = agent.run(f"""
        const step = await agent.remind({{in_s: 0}}, {{check: "deploy"}});
        await step.answer({SETTLED});
        const [message] = await agent.messages({SETTLED});
        return [message.is_reminder, message.payload, message.session_id === step.session_id];
    """)
    assert reminded == [True, {"check": "deploy"}, True]


def test_without_websockets_the_inbox_is_polled_s915(harness: SdkHarness, node: Start) -> None:
    """S915: the same orders by the other way."""
    with NodeAgent(harness.server, harness.name, harness.home) as agent:
        agent.run("delete globalThis.WebSocket")
        session_id = agent.run(
            f"const s = await agent.step('works'); await s.answer({SETTLED}); return s.session_id"
        )
        assert agent.run(f"return await agent.listen({SETTLED})")
        harness.do("pause", session_id)
        until(lambda: agent.run(f"return agent.orders.isHeld('{session_id}')"))
        blocked = agent.aside(f"return (await (await agent.step('done')).answer({SETTLED})).state")
        harness.do("unpause", session_id)
        assert blocked.result(PATIENCE_S) == "forwarded"
        until(lambda: not harness.inbox())
        assert agent.run("return await agent.close()")
