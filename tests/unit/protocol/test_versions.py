"""Versions compare as semver does; N and N-1 are accepted, retired ones are not."""

import itertools
import json

import msgspec
import pytest

from observatory.protocol.decision_log import DecisionLog
from observatory.protocol.versions import (
    Judgement,
    VersionEntry,
    fields_not_accepted,
    judge_version,
    parse_semver,
    set_fields,
)
from tests.samples import decision_log, full_decision_log

# Semantic Versioning 2.0.0, section 11.4.4, with neighbours.
ORDER = [
    "0.9.9",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.beta",
    "1.0.0-beta",
    "1.0.0-beta.2",
    "1.0.0-beta.11",
    "1.0.0-rc.1",
    "1.0.0",
    "1.0.1",
    "1.2.0",
    "1.10.0",
    "v2.1.0-stable",
    "2.1.0",
]


@pytest.mark.parametrize(("lower", "higher"), list(itertools.combinations(ORDER, 2)))
def test_versions_order_as_semver_says(lower: str, higher: str) -> None:
    assert parse_semver(lower) < parse_semver(higher)


@pytest.mark.parametrize("text", ["1.0.0", "v1.0.0", "1.0.0+build.5", "v1.0.0+x"])
def test_a_leading_v_and_build_metadata_do_not_count(text: str) -> None:
    assert parse_semver(text) == parse_semver("1.0.0")


@pytest.mark.parametrize(
    "text", ["", "1", "1.0", "1.0.0.0", "01.0.0", "1.0.0-", "1.0.0-01", "V1.0.0", "1.0.0\n", "vv1.0.0"]
)
def test_what_is_no_semver_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        parse_semver(text)


ENTRIES = {
    "2.1.0": VersionEntry(agent_type="a", version="2.1.0", status="current"),
    "v2.0.0": VersionEntry(agent_type="a", version="v2.0.0", status="previous"),
    "1.0.0": VersionEntry(agent_type="a", version="1.0.0", status="retired"),
}


@pytest.mark.parametrize(
    ("version", "judgement"),
    [
        ("2.1.0", "accepted"),
        ("v2.1.0", "accepted"),
        ("2.1.0+build", "accepted"),
        ("2.0.0", "accepted"),
        ("v1.0.0", "retired"),
        ("2.1.0-stable", "unknown"),
        ("3.0.0", "unknown"),
    ],
)
def test_a_version_is_judged_by_its_entry(version: str, judgement: Judgement) -> None:
    assert judge_version(ENTRIES, version) == judgement


def _log(sample: dict[str, object]) -> DecisionLog:
    return msgspec.json.decode(json.dumps(sample), type=DecisionLog)


def test_only_fields_in_use_count_as_set() -> None:
    names = set_fields(_log(decision_log()))
    assert "meta.trace_id" in names
    assert "cognition.intent" in names
    assert not {"meta.step_id", "control.hitl_required", "identity.model"} & set(names)


def test_fields_beyond_the_accepted_set_are_named_and_required_ones_never() -> None:
    log = _log(full_decision_log())
    assert fields_not_accepted(log, None) == []
    assert fields_not_accepted(
        log, ["meta", "identity", "cognition", "action", "state_delta.tokens_consumed"]
    ) == [
        "state_delta.added_to_memory",
        "state_delta.cumulative_session_cost",
        "state_delta.read_from_memory",
        "state_delta.cost",
    ]
    assert not {"meta.trace_id", "action.status"} & set(fields_not_accepted(log, []))
