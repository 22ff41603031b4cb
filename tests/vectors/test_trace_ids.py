"""Golden values of the seed's trace id derivation (seed 004, trace context mapping; ruling 6)."""

import json
import uuid
from pathlib import Path

import pytest

from observatory.protocol import otel
from observatory.protocol.identity import NAMESPACE

GOLDEN: dict[str, str] = json.loads(
    (Path(__file__).parent / "golden" / "conversation_trace_ids.json").read_text(encoding="utf-8")
)


@pytest.mark.req(355)
@pytest.mark.req(360)
@pytest.mark.req(362)
@pytest.mark.parametrize(("conversation_id", "trace_id"), GOLDEN.items())
def test_a_conversation_has_the_golden_trace_id(conversation_id: str, trace_id: str) -> None:
    assert otel.conversation_to_trace_id(conversation_id) == trace_id


@pytest.mark.req(359)
@pytest.mark.parametrize("conversation_id", GOLDEN)
def test_the_same_conversation_always_has_the_same_trace_id(conversation_id: str) -> None:
    first = otel.conversation_to_trace_id(conversation_id)
    assert all(otel.conversation_to_trace_id(conversation_id) == first for _ in range(10))


@pytest.mark.req(361)
def test_the_namespace_is_the_seeds() -> None:
    assert uuid.UUID("a1b2c3d4-e5f6-7890-abcd-ef1234567890") == NAMESPACE


@pytest.mark.req(356)
@pytest.mark.req(363)
def test_span_ids_are_random_sixteen_digit_hex_and_never_all_zero() -> None:
    spans = [otel.generate_span_id() for _ in range(10_000)]
    assert len(set(spans)) == len(spans)
    assert all(len(span) == 16 and int(span, 16) > 0 for span in spans)
