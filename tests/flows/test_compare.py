"""Two sessions step by step, through the door, on both databases."""

from __future__ import annotations

from tests.flows.graphs import Json, ask, new, send_all, step
from tests.flows.server import Server


def story(session: str, *words: str, **last: Json) -> list[Json]:
    """A chain of steps, one for each word; the last one takes more sections."""
    made = []
    for number, word in enumerate(words):
        sections: Json = {
            "cognition": {"intent": f"Work on {word}"},
            "action": {"tool_call": f"do_{word}", "tool_input": f'{{"on": "{word}"}}', "duration_ms": 100},
            "state_delta": {"added_to_memory": [f"{word} is done"], "cumulative_session_cost": number + 1.0},
        }
        if number == len(words) - 1:
            sections = {name: body | last.get(name, {}) for name, body in sections.items()} | {
                "control": last.get("control", {"is_terminal": True})
            }
        parents = [f"s{number - 1}"] if number else []
        made.append(step(session, f"s{number}", *parents, **sections))
    return made


def test_a_comparison_names_the_first_divergence_and_every_delta_s216_s217(either_server: Server) -> None:
    """S216, S217: aligned by role, tool and words; what changed, is missing or new; right minus left."""
    left, right = new(), new()
    send_all(either_server, story(left, "plan", "search", "read", "write"))
    failed: dict[str, Json] = {
        "action": {"status": "failure", "duration_ms": 300},
        "state_delta": {"cumulative_session_cost": 9.0},
    }
    send_all(either_server, story(right, "plan", "search", "ask", "read", "write", **failed))
    received = ask(either_server, "/v1/compare", left=left, right=right)
    assert [one["change"] for one in received["steps"]] == ["same", "same", "right_only", "same", "changed"]
    assert received["first_divergence"]["index"] == 2
    assert received["first_divergence"]["right"]["tool"] == "do_ask"
    assert received["steps"][-1]["differs"] == ["status"]
    assert received["steps"][-1]["duration_delta_ms"] == 200
    assert received["counts"] == {"same": 3, "changed": 1, "left_only": 0, "right_only": 1}
    delta = received["delta"]
    assert (delta["steps"], delta["cost"], delta["failures"]) == (1, 5.0, 1)
    assert delta["outcome"] == ["ended:success", "ended:failure"]
    memory = received["memory"]
    assert (memory["both"], memory["left_only"], memory["right_only"]) == (4, [], ["ask is done"])
    assert received["alignment"] == {"exact": True, "band": None}


def test_a_session_compared_with_itself_differs_in_nothing_s216(either_server: Server) -> None:
    """S216: every step is the same, and there is no divergence."""
    session = new()
    send_all(either_server, story(session, "plan", "write"))
    received = ask(either_server, "/v1/compare", left=session, right=session)
    assert received["first_divergence"] is None and received["counts"]["same"] == 2


def test_what_cannot_be_compared_is_refused_s217(either_server: Server) -> None:
    """S217: an unknown session is 404, a missing name 400."""
    session = new()
    send_all(either_server, story(session, "plan"))
    http = either_server.http("operator")
    assert http.get("/v1/compare", params={"left": session, "right": new()}).status_code == 404
    assert http.get("/v1/compare", params={"left": session}).status_code == 400
