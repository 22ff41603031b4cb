"""What is looked for among many rows is found as when each is compared with each."""

from __future__ import annotations

from observatory.features.cascade.root_cause import Ancestry
from observatory.features.cascade.routes import _next_after
from observatory.features.cascade.types_rows import StepSigns
from observatory.features.facts.claims import key_of, normalise
from observatory.features.facts.routes_memory import _repeated_falsehoods
from observatory.features.facts.types import FactRow, UseRow
from observatory.features.relay.types import quoted

FALSE = "NVDA fiscal year ends Jan 28"


def fact(seq: int, text: str, session: int = 1, agent: int = 1, cluster: str | None = None) -> FactRow:
    key = key_of(normalise(text))
    return FactRow(seq << 18, seq, session, agent, cluster, seq, key, None, None, None, text)


def test_facts_that_say_what_was_marked_false_are_found_s254() -> None:
    """S254: copies anywhere, the same words where they were within reach, near ones in the same session."""
    wrong = [fact(1, "Something else altogether is false"), fact(2, FALSE, cluster="c")]
    rows = [
        fact(10, FALSE),
        fact(11, FALSE, session=2, agent=2),  # nobody there could know
        fact(12, FALSE, session=2, agent=2, cluster="c"),
        fact(13, FALSE, session=2, agent=1),
        fact(14, "NVDA's fiscal year ends on January 28", agent=3),
        fact(15, "NVDA's fiscal year ends on January 28", session=2, agent=3),
        fact(16, "NVDA fiscal year ends Jan 31"),
        fact(17, "whatever", session=9, agent=9),
    ]
    copied = UseRow(2 << 18, 17, "near", 0.9, 9, 9, 17 << 18)
    found = _repeated_falsehoods(rows, wrong, [copied])
    assert {number >> 18: other >> 18 for number, other in found.items()} == dict.fromkeys(
        (10, 12, 13, 14, 17), 2
    )
    # The first of them.
    assert _repeated_falsehoods(rows, [wrong[1], fact(3, FALSE)], [])[10 << 18] == 2 << 18


def test_the_first_step_after_each_prompt_is_found_among_very_many() -> None:
    """S268: in that session, of that agent, whatever the number of prompts."""
    found = Ancestry(50_000, 1)
    for seq in range(1, 50_001):
        found.steps[seq] = StepSigns(
            seq, seq, -seq, 1, seq % 2, 0, "forwarded", None, None, 0.0, None, None, seq, None, None
        )
        found.distance[seq] = 50_000 - seq
    prompts = [
        {"session_no": session, "agent_no": 1, "sequence_number": number}
        for session in (1, 2)
        for number in range(1, 50_010, 10)
    ]
    assert _next_after(found, prompts) == {number + 2 for number in range(1, 49_998, 10)}
    assert _next_after(found, []) == set()


def test_a_quotation_is_one_line_whatever_is_in_it() -> None:
    text = 'a "b"\r\n\u2028\u202e\x00\u0085\U000e0041 grün'
    assert quoted(text) == '"a \\"b\\"\\r\\n\\u2028\\u202e\\u0000\\u0085\\udb40\\udc41 grün"'
    assert quoted("\n" * 1_000) == '"' + "\\n" * 300 + '"'
