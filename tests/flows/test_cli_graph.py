"""The causal graph at the terminal: `observatory dag`, `compare` and `annotate`."""

from __future__ import annotations

from tests.flows.graphs import ask, new, send_all, step
from tests.flows.hand import answer, done, refused
from tests.flows.server import Server


def test_a_session_is_drawn_compared_and_annotated_at_the_terminal_s224(server: Server) -> None:
    """S224: steps under their first parents, what differs, and a note; --json is the gateway's answer."""
    session, other = new(), new()
    for one in (session, other):
        logs = [step(one, "root"), step(one, "left", "root", agent="bob"), step(one, "right", "root")]
        send_all(server, [*logs, step(one, "under-left", "left", cognition={"confidence_score": 0.2})])
    send_all(server, [step(other, "more", "right")])
    lines = [line.split("\t") for line in done(server, "dag", session).splitlines()]
    assert [line[0] for line in lines if line[0] != "STEP"] == [
        "root", "· left", "· · under-left", "· right",
    ]  # fmt: skip
    assert any("0.20!" in line for line in lines)
    assert answer(server, "dag", session)["summary"]["steps"] == 4
    shown = done(server, "compare", session, other).splitlines()
    assert [line[0] for line in shown if line[0] in "=~<>"] == ["=", "=", "=", "=", ">"]
    assert "added note ann_" in done(
        server, "annotate", session, "left", "a note", "--category", "off_course"
    )
    noted = ask(server, f"/v1/sessions/{session}/annotations")["items"]
    assert [item["text"] for item in noted] == ["a note"]
    assert "category: one of" in refused(server, "annotate", session, "left", "x", "--category", "none")
    assert "no session" in refused(server, "dag", new())
