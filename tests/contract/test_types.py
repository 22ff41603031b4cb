"""Code that makes or reads a DecisionLog is type-checked: a wrong field is an error before it runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from mypy import api

HEAD = """
from observatory.protocol.decision_log import DecisionLog
def cost(log: DecisionLog) -> float | None:
    return {expression}
"""


@pytest.mark.req(43)
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("expression", "fault"),
    [
        ("log.state_delta.cumulative_session_cost if log.state_delta else None", None),
        ("log.state_delta.cumulative_session_cost", "union-attr"),
        ("log.state_delta.total_cost if log.state_delta else None", "attr-defined"),
        ("log.cognition.intent if log.cognition else None", "return-value"),
    ],
)
def test_a_misused_field_is_found_by_the_type_checker(
    expression: str, fault: str | None, tmp_path: Path
) -> None:
    code = tmp_path / "derivation.py"
    code.write_text(HEAD.format(expression=expression))
    output, _, status = api.run(["--strict", "--no-error-summary", str(code)])
    assert status == (1 if fault else 0), output
    assert (f"[{fault}]" in output) if fault else output == ""
