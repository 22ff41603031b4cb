"""The names others use: each read or counted, whatever they hold, the same way every time."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from observatory.features.otlp import conventions
from observatory.features.otlp.conventions import READ
from observatory.features.otlp.span_events import steps_of_logs
from observatory.features.otlp.span_names import KEPT, WIDEST, _kept, build_names, names_of
from observatory.features.otlp.span_values import one_line, shortened
from observatory.pipeline.interceptor import MessageLimits, intercept
from observatory.protocol.message import Message
from tests.unit.protocol.telling import CLAUDE, Json, bodies, log, span, steps_of

LIMITS = MessageLimits(message_bytes=1 << 20)


def test_what_no_step_holds_is_counted_by_name_s807() -> None:
    """S807: indexes are one name; what was cut is counted too."""
    said = {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.1.message.role": "user",
        "customer.tier": "gold",
        "output.value": "x" * 100_000,
    }
    _, tally = steps_of([span(attributes=said)])
    assert tally.unmapped == {"llm.input_messages.N.message.role": 2, "customer.tier": 1}
    assert tally.cut == 1
    asked = {"gen_ai.operation.name": "retrieval", "gen_ai.data_source.id": "handbook"}
    assert steps_of([span("retrieval", attributes=asked)])[1].unmapped == {}
    assert bodies(span("retrieval", attributes=asked))[0]["action"]["tool_call"] == "handbook"


def test_of_many_unread_names_only_so_many_are_counted_apart_s807() -> None:
    """S807: names are the sender's; what they may take of memory is not."""
    said = {"gen_ai.operation.name": "chat"} | {f"made.up{n}x": n for n in range(3_000)}
    _, tally = steps_of([span("chat", attributes=said)])
    assert len(tally.unmapped) == 1_000


TEXT = st.text(st.characters(codec="utf-8"), max_size=400)
LEAF = (
    TEXT
    | st.integers()
    | st.booleans()
    | st.none()
    | st.floats()
    | st.sampled_from(["[", "{", '[{"role":3}]'])
)
VALUE = st.recursive(
    LEAF, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=6
)
NAMES = sorted(READ)
SAID = st.dictionaries(st.sampled_from(NAMES) | TEXT, VALUE, max_size=12)
KINDS = st.sampled_from(
    [
        {"gen_ai.operation.name": "chat"},
        {"gen_ai.operation.name": "execute_tool"},
        {"openinference.span.kind": "AGENT"},
        {"traceloop.span.kind": "tool"},
    ]
)


@settings(max_examples=150, deadline=None)
@example({}, {"gen_ai.operation.name": "chat"}, {}, "x", "", 2**64 - 1, -1)
@example({"input.value": "a\0b"}, {"gen_ai.operation.name": "chat"}, {}, "x", "", 1, 2)
@given(SAID, KINDS, SAID, TEXT, TEXT, st.integers(-(2**64), 2**64), st.integers(-(2**64), 2**64))
def test_whatever_a_span_says_the_step_is_one_the_gateway_takes_s808(
    said: Json, kind: Json, resource: Json, name: str, trouble_: str, start: int, end: int
) -> None:
    """S808: hostile or senseless, it becomes a valid DecisionLog, and twice the same one."""
    one = span(
        name,
        attributes=said | kind,
        resource=resource,
        trouble=trouble_,
        failed=bool(trouble_),
        start_ns=start,
        end_ns=end,
    )
    (step,) = steps_of([one])[0]
    assert step is not None
    found = intercept(step.body, LIMITS)
    assert isinstance(found, Message), found
    assert steps_of([one])[0] == [step]
    event = log("tool_result", said | CLAUDE, resource=resource | {"service.name": "claude-code"})
    event.at_ns = start
    (step,) = steps_of_logs([event], None)[0]
    assert step is not None
    assert isinstance(intercept(step.body, LIMITS), Message)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(NAMES) | TEXT, max_size=80, unique=True))
def test_a_wording_says_what_looking_for_every_name_would_s801(names: list[str]) -> None:
    """S801, S807: worked out once or every time, the best name is the same and no name is lost."""
    said = dict.fromkeys(names, "told")
    for found in (names_of(said), names_of(said), build_names(names)):
        for kept, wanted in (
            (found.session, conventions.SESSION),
            (found.model, conventions.MODEL),
            (found.answer, conventions.ANSWER),
            (found.cost, conventions.COST),
            (found.tokens_all, conventions.TOKENS_ALL),
        ):
            assert list(kept) == [name for name in wanted if name in said]
        assert len(found.unmapped) == sum(name not in READ for name in names)
        received = {name for part in found.token_parts for name in part}
        asked = (conventions.TOKENS_IN, conventions.TOKENS_OUT, conventions.TOKENS_CACHED)
        assert received == {name for part in asked for name in part} & set(names)


def test_what_senders_name_is_kept_only_so_far_s816() -> None:
    """S816: names are the sender's, memory is ours."""
    for number in range(KEPT + 10):
        names_of({f"made.up.x{number}": 1})
    wide, long = {f"wide.x{n}": 1 for n in range(WIDEST + 1)}, {"l" * 5_000: 1}
    assert names_of(wide) is not names_of(wide)
    assert names_of(long) is not names_of(long)
    assert 0 < len(_kept) <= KEPT


@settings(max_examples=100, deadline=None)
@example("x" * 299 + " " * 3_000 + "y z")
@example(" \n" * 4_000 + "late")
@given(st.text(max_size=40).map(lambda text: text * 90))
def test_the_beginning_of_a_long_text_is_that_of_all_of_it_s805(text: str) -> None:
    """S805: only as much is cleaned as an intent can show."""
    whole = " ".join(one_line(text).split())
    found = shortened(text, 300)
    assert found[:300] == whole[:300] and (len(found) > 300) == (len(whole) > 300)
