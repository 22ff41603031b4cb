"""`observatory dag`, `compare` and `annotate`: a session's causal graph, two sessions compared, and notes."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from observatory.cli.gateway_client import ANY, GatewayOptions
from observatory.cli.prompts import File, Json, api_session, path_of, print_result, session_of, text_of, when
from observatory.cli.terminal import note, show_json, show_table
from observatory.plural import plural

MARGIN = 12  # deeper steps are indented no further
INTENT = 48


def dag(session: str, *, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """The causal graph of a session: steps under their parents, what each cost, which agents are waiting."""
    with api_session(gateway, json) as client:
        found = client.ask("GET", path_of("sessions", session_of(client, session), "dag"))
    if json:
        show_json(found)
        return
    rows = [_line(node) for node in _under_parents(found["nodes"])]
    show_table(
        ("STEP", "AGENT", "ACTION", "STATUS", "CONFIDENCE", "COST", "BRANCH", ""), rows, "no archived steps"
    )
    for agent in found["agents"]:
        note(f"{agent['agent_id']}: {agent['badge']} (rule {agent['badge_rule']})")
    counted = found["summary"]
    note(
        f"{plural(counted['steps'], 'step')}, {plural(counted['forks'], 'fork')}, "
        f"{plural(counted['orphans'], 'orphan')}, {plural(counted['cycles_refused'], 'cycle')} refused, "
        f"cost {counted['cost']:g}"
    )


def compare(left: str, right: str, *, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Compare two sessions step by step: where they diverge, and the effect on outcome and cost."""
    with api_session(gateway, json) as client:
        names = [session_of(client, one) for one in (left, right)]
        found = client.ask("GET", "/v1/compare", left=names[0], right=names[1])
    if json:
        show_json(found)
        return
    signs = {"same": "=", "changed": "~", "left_only": "<", "right_only": ">"}
    rows = [
        (
            signs[step["change"]],
            _side(step["left"]),
            _side(step["right"]),
            ", ".join(step["differs"]),
            f"{step['cost_delta']:+g}" if step["cost_delta"] else "",
        )
        for step in found["steps"]
    ]
    show_table(("", "LEFT", "RIGHT", "DIFFERS", "COST"), rows, "neither session has a step")
    delta = found["delta"]
    note(
        f"steps {delta['steps']:+g}, cost {delta['cost']:+g}, duration {delta['duration_ms']:+g} ms, "
        f"failures {delta['failures']:+g}"
    )


def annotate(
    session: str,
    step: str,
    text: str | None = None,
    *,
    label: Annotated[str | None, Parameter(help="A label of your own, to find the note by.")] = None,
    category: Annotated[
        str | None, Parameter(help="A failure category, one of those the gateway lists.")
    ] = None,
    file: File = None,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Add a note to a step: up to 4 KB; the record keeps its hash."""
    body: dict[str, Any] = {"text": text_of(text, file, "the note"), "label": label, "category": category}
    with api_session(gateway, json) as client:
        where = path_of("sessions", session_of(client, session), "steps", step, "annotations")
        answer = client.ask("POST", where, body)
    print_result(answer, json, f"added note {answer['annotation_id']}")


def _under_parents(nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each step after its first parent, children in order of arrival; commands last."""
    children: dict[str | None, list[dict[str, Any]]] = {}
    for node in nodes:
        children.setdefault(node.get("parent"), []).append(node)
    ordered: list[dict[str, Any]] = []
    left = children.get(None, [])[::-1]
    while left:
        node = left.pop()
        ordered.append(node)
        left += children.get(node["id"], [])[::-1]
    return ordered


def _line(node: dict[str, Any]) -> tuple[Any, ...]:
    if node["kind"] == "intervention":
        return (
            "◆",
            node["agent_id"],
            f"{node['command']} by {node['operator_id']}",
            "",
            "",
            "",
            "",
            when(node["at"]),
        )
    indent = "· " * min(node["depth"], MARGIN)
    confidence = (
        ""
        if node["confidence"] is None
        else f"{node['confidence']:.2f}{'!' if node['low_confidence'] else ''}"
    )
    action = node["tool"] or (node["intent"] or node["message_type"])[:INTENT]
    signs = [*node["flags"], *([] if node["state"] == "forwarded" else [node["state"]])]
    signs += ["terminal"] if node["is_terminal"] else []
    return (
        f"{indent}{node['step_id']}",
        node["agent_id"],
        action,
        node["status"],
        confidence,
        f"{node['cost']:g}",
        f"{node['branch_cost']:g}",
        ", ".join(signs),
    )


def _side(step: dict[str, Any] | None) -> str:
    if step is None:
        return ""
    return f"{step['tool'] or step['intent'][:INTENT]} ({step['agent_id']}): {step['status'] or '-'}"
