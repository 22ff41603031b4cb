"""The four types of thought and what each must hold."""

from __future__ import annotations

from typing import Any

import pytest

from observatory.ledger import thoughts as ledger
from observatory.protocol.thoughts import MEMBERS, TYPES, faults_of

GOOD: dict[str, dict[str, Any]] = {kind: dict.fromkeys(names, "x") for kind, names in MEMBERS.items()}


def test_there_are_four_and_the_ledger_knows_the_same_s320() -> None:
    assert set(TYPES) == set(MEMBERS) == ledger.TYPES == {"plan", "analysis", "decision", "reflection"}


@pytest.mark.parametrize("kind", TYPES)
def test_each_holds_what_the_seed_says_and_may_hold_more_s320(kind: str) -> None:
    assert faults_of(kind, GOOD[kind] | {"more": 7}) == []
    assert faults_of(kind, {name: ["a", "b"] for name in MEMBERS[kind]}) == []
    for member in MEMBERS[kind]:
        nothings: tuple[Any, ...] = (None, "", "  ", [], {}, 7, True)
        for nothing in nothings:
            (fault,) = faults_of(kind, GOOD[kind] | {member: nothing})
            assert fault.startswith(f"content.{member}: ")
    assert len(faults_of(kind, {})) == len(MEMBERS[kind]), "every fault, not the first"


@pytest.mark.parametrize("kind", ["informational", "", "Plan", "thought"])
def test_anything_else_is_a_fault_that_names_the_four_s320(kind: str) -> None:
    (fault,) = faults_of(kind, GOOD["plan"])
    assert all(one in fault for one in TYPES) and (not kind or f" {kind};" not in fault)
