"""The brief's ten decision records exist, ADR-013 to ADR-022, each with its title and what a reader needs."""

import re
from pathlib import Path

import pytest

DECISIONS = Path(__file__).parents[2] / "docs/decisions"
TITLES = {
    13: "Hypervisor Platform Scope",
    14: "DecisionLog Universal Message Envelope",
    15: "Gateway Schema Interceptor",
    16: "Canvas-Based Topology Map Renderer",
    17: "Causal DAG via parent_step_id",
    18: "Entropy Score as Loop Detection Primitive",
    19: "Heartbeat and Leader Election for Gateway",
    20: "Webhook Reliability: Retry + DLQ",
    21: "HITL Manual Intervention API",
    22: "Six-View UI Information Architecture",
}
HEAD = {
    "Status": r"accepted, built( by issues? [2-9]( (to|and) [2-9])?)?",
    "Date": r"\d{4}-\d\d-\d\d",
    "Built by": r"issue [2-9].*",
    "Requirements": r"R\d+.*",
    "Related": r"ADR-\d{3}.*",
}
# What each record decides, in a word that only that record could not do without.
SUBJECT = {
    13: "gateway is not a proxy",
    14: "exactly `meta`, `identity`, `cognition`, `action`, `state_delta`, `control`",
    15: "`raw_payload_hash`",
    16: "<canvas>",
    17: "`parent_step_id`",
    18: "unique / n",
    19: "UNIQUE(job, scheduled_for)",
    20: "dead letter queue",
    21: "`rewrite`",
    22: "Forensic Inspector",
}


def text_of(number: int) -> str:
    (path,) = DECISIONS.glob(f"ADR-{number:03}-*.md")
    return path.read_text("utf-8")


@pytest.mark.req(*range(251, 261))
@pytest.mark.parametrize("number", TITLES)
def test_each_record_of_the_brief_exists_under_its_title_and_decides_its_subject(number: int) -> None:
    text = text_of(number)
    assert text.splitlines()[0] == f"# ADR-{number:03} {TITLES[number]}"
    decision = text.partition("\n## Decision\n")[2].partition("\n## Consequences\n")[0]
    assert SUBJECT[number] in decision
    assert f"R{238 + number}" in expanded(text), "a record names the requirement that asks for it"


@pytest.mark.req(*range(251, 261))
@pytest.mark.parametrize("number", TITLES)
def test_each_record_has_its_head_and_its_three_sections(number: int) -> None:
    text = text_of(number)
    for name, form in HEAD.items():
        assert re.search(rf"^- {name}: {form}$", text, re.MULTILINE), f"{name} is missing or not of its form"
    sections = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert sections == ["Context", "Decision", "Consequences"]
    for section in re.split(r"^## .+$", text, flags=re.MULTILINE)[1:]:
        assert len(section.split()) > 30, "a section of a few words decides nothing"


def test_records_refer_only_to_records_that_exist_and_the_index_lists_them_all() -> None:
    records = {path.name[:7]: path for path in DECISIONS.glob("ADR-*.md")}
    index = (DECISIONS / "README.md").read_text("utf-8")
    assert set(re.findall(r"\]\((ADR-\d{3}[^)]*)\)", index)) == {path.name for path in records.values()}
    for name, path in records.items():
        assert path.read_text("utf-8").startswith(f"# {name} ")
        assert set(re.findall(r"ADR-\d{3}", path.read_text("utf-8"))) <= records.keys()


def expanded(text: str) -> set[str]:
    """Every requirement named in the head, ranges spelt out."""
    head = text.partition("\n## ")[0]
    return {
        f"R{number}"
        for first, last in re.findall(r"R(\d+)(?:–R(\d+))?", head)
        for number in range(int(first), int(last or first) + 1)
    }
