"""Search through the public doors, on both databases: words, meaning, filters, pages, groups, saved views."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tests.flows.graphs import Json, ask, new, send, send_all, step
from tests.flows.insight import settled
from tests.flows.server import Server, observatory


def thought(session: str, name: str, intent: str, agent: str = "ada", **action: Any) -> Json:
    return step(
        session,
        name,
        agent=agent,
        cognition={"intent": intent, "reasoning_chain": []},
        action={"tool_output_summary": None, "tool_input": None} | action,
        state_delta=None,
    )


def find(server: Server, q: str, **query: Any) -> Json:
    return ask(server, "/v1/search", role=query.pop("role", "operator"), q=q, **query)


def terminal(server: Server, *words: str) -> Any:
    return observatory(*words, "--data", str(server.folder))


def steps(answer: Json) -> list[str]:
    return [item["step_id"] for item in answer["items"]]


@pytest.mark.req(221, 241, 247)
def test_words_meaning_and_filters_find_what_was_archived_s270(either_tenant: Server) -> None:
    """S270–S275: a hit says where it is, why it was found and quotes it; likeness needs no shared word."""
    session = new()
    send_all(
        either_tenant,
        [
            thought(
                session,
                "refund",
                "Buyer asks for a refund of the damaged phone",
                status="failure",
                tool_call="crm",
            ),
            thought(session, "ship", "The ship leaves the harbour at dawn", "bob", tool_call="port"),
            thought(session, "pod", "Kubernetes pod restarted after running out of memory", "bob"),
        ],
    )
    either_tenant.http("viewer")  # its key is an event too
    settled(either_tenant)
    exact = find(either_tenant, '"damaged phone"', role="viewer")
    (item,) = [one for one in exact["items"] if one["why"]["words"]]
    assert (item["step_id"], item["session_id"], item["agent_id"]) == ("refund", session, "ada")
    assert (item["status"], item["tool"], item["state"]) == ("failure", "crm", "forwarded")
    quote = item["snippet"]
    assert [quote["text"][a:b] for a, b in quote["matches"]] == ["damaged phone"] and quote[
        "part"
    ] == "intent"
    assert exact["semantic"] == "used" and exact["behind"] == 0
    like = find(either_tenant, '~"customer wants his money back"')
    assert steps(like)[0] == "refund" and like["items"][0]["why"]["text_rank"] is None
    assert steps(find(either_tenant, "customer wants his money back", mode="text")) == []
    assert steps(find(either_tenant, "vessel departs from the port early", mode="semantic"))[0] == "ship"
    assert steps(find(either_tenant, "agent:bob")) == ["pod", "ship"]
    assert steps(find(either_tenant, "agent:bob -tool:port")) == ["pod"]
    assert steps(find(either_tenant, f"status:failure session:{session} since:1h")) == ["refund"]
    assert steps(find(either_tenant, "agent:bob -memory")) == ["ship"]
    assert steps(find(either_tenant, "since:1h until:30min")) == []
    assert steps(find(either_tenant, "confidence:<0.1")) == []
    assert set(steps(find(either_tenant, ""))) == {"refund", "ship", "pod"}
    received = {
        name: {one["value"]: one["count"] for one in found}
        for name, found in exact_facets(either_tenant).items()
    }
    assert received["agent"] == {"ada": 1, "bob": 2} and received["session"] == {session: 3}
    assert (
        received["type"] == {"decision_log": 3}
        and received["status"]["failure"] == 1
        and received["tool"]["crm"] == 1
    )


def exact_facets(server: Server) -> Json:
    found: Json = find(server, "type:decision_log")["facets"]
    return found


@pytest.mark.req(221)
def test_all_agents_that_discussed_project_x_s279_s661(either_tenant: Server) -> None:
    """S279, S661: each once, with how often, from when to when and its best quote, nobody else."""
    session = new()
    talk = [
        ("a1", "ada", "Plan the launch of Project X for spring"),
        ("a2", "ada", "Ask finance about project-x budget"),
        ("b1", "bob", "Told the vendor that PROJECT X is late"),
        ("c1", "cyd", "Project Y has nothing to do with it, x"),
        ("d1", "dan", "X marks the project of the neighbours"),
    ]
    send_all(either_tenant, [thought(session, name, text, agent) for name, agent, text in talk])
    settled(either_tenant)
    found = find(either_tenant, '"Project X"', group="agent")["items"]
    assert [(one["agent_id"], one["count"]) for one in found] == [("ada", 2), ("bob", 1)]
    ada = found[0]
    assert ada["first_at"] <= ada["last_at"] and ada["best"]["step_id"] in ("a1", "a2")
    assert ada["best"]["snippet"]["matches"]
    when_it_was_said(either_tenant)
    shown = terminal(either_tenant, "search", '"Project X"', "--agents")
    assert shown.returncode == 0 and "ada" in shown.stdout and "cyd" not in shown.stdout


def when_it_was_said(server: Server) -> None:
    """S661: bins without a gap that add up to the hits, by words, by meaning, by filters and of all."""
    for q in ('"Project X"', "agent:ada", "~launch", "", "project", "-finance"):
        found, listed = find(server, q, group="time"), find(server, q, limit=1000)
        bins = found["items"]
        assert sum(one["count"] for one in bins) == listed["hits"] == len(listed["items"]), q
        assert all(one["to"] == other["from"] for one, other in pairwise(bins)), q
        assert 0 < len(bins) <= 200 and not found["capped"], q
        assert listed["items"][0]["at"] >= bins[0]["from"] and listed["items"][0]["at"] < bins[-1]["to"]
    ranged = find(server, "since:2h until:1h", group="time")
    assert ranged["items"] == [] and find(server, "zebrafinch", group="time")["items"] == []
    (problem,) = find(server, "ada cost:dear")["problems"]
    assert (problem["start"], problem["end"]) == (4, 13) and "write cost:<0.5" in problem["sentence"]


def test_pages_stay_as_they_were_while_messages_come_s278(either_tenant: Server) -> None:
    """S278: no hit twice, none left out, whatever is archived in between; a strange cursor is refused."""
    session = new()
    for part in range(3):
        send_all(
            either_tenant,
            [thought(session, f"w{part}-{n}", f"walrus number {n} " + "x " * n) for n in range(8)],
        )
    settled(either_tenant)
    for q in ("walrus", "agent:ada"):
        before = steps(find(either_tenant, q, limit=1000))
        assert len(before) == len(set(before)) >= 24
        seen: list[str] = []
        cursor = None
        while True:
            page = find(either_tenant, q, limit=7, **({"cursor": cursor} if cursor else {}))
            seen += steps(page)
            assert (page["facets"] is None) == (cursor is not None)
            assert page["hits"] == len(before), "later pages tell what the first one counted"
            cursor = page["next_cursor"]
            if cursor is None:
                break
            send(either_tenant, thought(session, new(), "walrus walrus walrus comes late"))
            settled(either_tenant)
        assert seen == before, q
        refused = either_tenant.http("viewer").get(
            "/v1/search", params={"q": "other", "cursor": page_cursor(either_tenant, q)}
        )
        assert refused.status_code == 400 and refused.json()["reason"] == "bad_cursor"
        break_off = either_tenant.http("viewer").get("/v1/search", params={"q": q, "cursor": "W10"})
        assert break_off.status_code == 400


def page_cursor(server: Server, q: str) -> str:
    found: str = find(server, q, limit=1)["next_cursor"]
    return found


@pytest.mark.parametrize(
    "q",
    [
        "'; DROP TABLE insight_documents; --", '" OR 1=1 --', "a NEAR(b, 5) ^c {x}: y*", "🙂", "\\", "%",
        "(" * 500, 'agent:"\' OR 1=1" tool:%', "session:../../etc", "cost:>1e308 tokens:>1e30", "x" * 10_000,
        "-nothing",
        "~🙂 since:never", "type:text type:decision_log", "until:9999-12-31 since:0001-01-01",
    ],
)  # fmt: skip
def test_whatever_is_typed_is_answered_s272(either_server: Server, q: str) -> None:
    """S272: in every mode, with what could not be read told."""
    for mode in ("hybrid", "text", "semantic"):
        answer = find(either_server, q, mode=mode)
        assert isinstance(answer["items"], list) and isinstance(answer["warnings"], list)
    find(either_server, q, group="agent")


def test_a_tenant_finds_nothing_of_another_s276(either_server: Server, either_tenant: Server) -> None:
    """S276: nor by words, nor by meaning, nor by the names of agents and sessions."""
    session = new()
    send(either_tenant, thought(session, "mine", "The ocelot hides in the greenhouse", "ocelot-keeper"))
    settled(either_tenant)
    assert steps(find(either_tenant, "ocelot")) == ["mine"]
    for q in ("ocelot", '~"ocelot hides in greenhouse"', "agent:ocelot-keeper", f"session:{session}"):
        assert "mine" not in steps(find(either_server, q)), q


def test_a_message_that_waits_is_found_by_its_state_s273(either_tenant: Server) -> None:
    """S273: held, and once it went on, forwarded."""
    session = new()
    message = thought(session, "gate", "The yak asks for leave")
    message["control"] = {"hitl_required": True}
    send(either_tenant, message)
    settled(either_tenant)
    assert steps(find(either_tenant, "yak state:held")) == ["gate"]
    assert steps(find(either_tenant, "yak state:forwarded")) == []
    body = {"agent_id": "ada", "message_id": "gate"}
    done = either_tenant.http("operator").post(f"/v1/sessions/{session}/approve", json=body)
    assert done.status_code in (200, 202), done.text
    settled(either_tenant)
    assert steps(find(either_tenant, "yak state:forwarded")) == ["gate"]


def test_views_are_saved_shared_and_removed_s280(either_tenant: Server) -> None:
    """S280, S281: one's own and shared ones; a name once an owner; audited by hash."""
    viewer, operator = either_tenant.http("viewer"), either_tenant.http("operator")
    secret = '"the secret plan" agent:ada'
    mine = viewer.post("/v1/views", json={"name": "Mine", "query": secret})
    assert mine.status_code == 201 and mine.json()["query"] == secret, mine.text
    assert viewer.post("/v1/views", json={"name": "Mine", "query": "x"}).status_code == 409
    assert viewer.post("/v1/views", json={"name": "Ours", "query": "x", "shared": True}).status_code == 403
    ours = operator.post("/v1/views", json={"name": "Ours", "query": "status:failure", "shared": True})
    theirs = operator.post("/v1/views", json={"name": "Mine", "query": "y"})
    assert (ours.status_code, theirs.status_code) == (201, 201)
    names = [(item["name"], item["mine"]) for item in ask(either_tenant, "/v1/views", role="viewer")["items"]]
    assert names == [("Ours", False), ("Mine", True)]
    first = ask(either_tenant, "/v1/views", limit=1)
    rest = ask(either_tenant, "/v1/views", cursor=first["next_cursor"])
    assert [item["name"] for item in (*first["items"], *rest["items"])] == ["Mine", "Ours"]
    assert viewer.delete(f"/v1/views/{theirs.json()['view_id']}").status_code == 404
    assert viewer.delete(f"/v1/views/{ours.json()['view_id']}").status_code == 403
    assert viewer.delete(f"/v1/views/{mine.json()['view_id']}").json()["removed"] is True
    assert viewer.delete(f"/v1/views/{mine.json()['view_id']}").status_code == 404
    assert viewer.post("/v1/views", json={"name": "Mine", "query": "z"}).status_code == 201
    for bad in (
        {"name": "", "query": "x"},
        {"name": " ", "query": "x"},
        {"name": "n"},
        {"name": "n", "query": "\0"},
    ):
        assert viewer.post("/v1/views", json=bad).status_code in (400, 422), bad
    events = ask(either_tenant, "/v1/audit/tenant", limit=1000)["items"]
    kinds = [event["body"]["event_type"] for event in events]
    assert kinds.count("view_saved") == 4 and kinds.count("view_removed") == 1
    assert "secret plan" not in str(events)


def test_the_terminal_finds_and_quotes_s282(either_tenant: Server) -> None:
    """S282: hits with the matching words marked, `--json` the whole answer; a warning on stderr."""
    session = new()
    send(either_tenant, thought(session, "one", "A capybara in the pool", status="failure"))
    settled(either_tenant)
    shown = terminal(either_tenant, "search", "capybara status:success colour:red")
    assert shown.returncode == 0 and shown.stdout == ""
    assert "no messages found" in shown.stderr and "colour: is not a filter" in shown.stderr
    shown = terminal(either_tenant, "search", "capybara status:failure")
    assert "»capybara«" in shown.stdout and session in shown.stdout
    assert '"sequence_number"' in terminal(either_tenant, "search", "capybara", "--json").stdout


def test_a_page_quotes_its_first_hundred_and_a_question_has_so_many_words_s278(either_tenant: Server) -> None:
    """S273, S278: both are bounded and told of."""
    session = new()
    send_all(either_tenant, [thought(session, f"q{number}", "An okapi again") for number in range(103)])
    settled(either_tenant)
    items = find(either_tenant, "okapi", mode="text", limit=1000)["items"]
    assert [item["snippet"] is None for item in items] == [False] * 100 + [True] * 3
    asked = find(either_tenant, " OR ".join(f"w{number}" for number in range(40)), mode="text")
    assert sum(map(len, asked["query"]["words"])) == 32
    assert "only the first 32 words were searched" in asked["warnings"]


def narrowed(server: Server, role: str, *scopes: str) -> dict[str, str]:
    made = server.http("admin").post("/v1/keys", json={"role": role, "scopes": list(scopes)})
    assert made.status_code == 201, made.text
    return {"authorization": f"Bearer {made.json()['key']}"}


def test_a_narrowed_key_takes_nothing_of_others_away_s281(either_tenant: Server) -> None:
    """S58, S220, S281: what counts is what the key may do, not the role it is of."""
    session, operator = new(), either_tenant.http("operator")
    send(either_tenant, thought(session, "one", "Noted"))
    ours = operator.post("/v1/views", json={"name": "Narrow", "query": "x", "shared": True}).json()["view_id"]
    noted = operator.post(f"/v1/sessions/{session}/steps/one/annotations", json={"text": "n"}).json()
    reader, approver = (
        narrowed(either_tenant, "admin", "read"),
        narrowed(either_tenant, "admin", "read", "approve"),
    )
    nobody = either_tenant.http("nobody")
    view, annotation = f"/v1/views/{ours}", f"/v1/annotations/{noted['annotation_id']}"
    for name, headers in (("Mine", reader), ("Mine too", approver)):
        assert nobody.delete(view, headers=headers).json()["reason"] == "not_yours"
        shared = {"name": name, "query": "x", "shared": True}
        assert nobody.post("/v1/views", json=shared, headers=headers).status_code == 403
        own = nobody.post("/v1/views", json=shared | {"shared": False}, headers=headers)
        assert own.status_code == 201 and own.json()["mine"]
    assert nobody.delete(annotation, headers=reader).status_code == 403
    assert nobody.delete(annotation, headers=approver).json()["reason"] == "not_yours"
    operates = narrowed(either_tenant, "admin", "read", "approve", "operate")
    assert nobody.delete(view, headers=operates).json()["removed"] is True
    assert nobody.delete(annotation, headers=operates).json()["removed"] is True
