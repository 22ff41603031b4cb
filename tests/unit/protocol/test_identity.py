"""Ids: one spelling of a UUID, minted ids that carry their row's number."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from observatory.protocol import identity

NOW = 1_771_252_320_123_456_789


@given(st.uuids())
def test_a_uuid_in_any_spelling_has_one_canonical_text(value: uuid.UUID) -> None:
    for text in (str(value), str(value).upper(), value.hex, value.hex.upper()):
        assert identity.canonical_uuid(text) == str(value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "0f8fad5b-d9cb-469f-a165-70867728950",
        "0f8fad5bd9cb-469f-a165-70867728950e",
        "{0f8fad5b-d9cb-469f-a165-70867728950e}",
        "urn:uuid:0f8fad5b-d9cb-469f-a165-70867728950e",
        "0f8fad5b-d9cb-469f-a165-70867728950e\n",
        "gf8fad5b-d9cb-469f-a165-70867728950e",
        "٠" * 32,
    ],
)
def test_other_text_is_no_uuid(text: str) -> None:
    assert identity.canonical_uuid(text) is None
    assert identity.canonical_id(text) == text


def test_an_agents_entity_id_depends_on_tenant_and_name_only() -> None:
    one = identity.agent_entity_id("tnt_default", "researcher-alpha-9")
    expected = uuid.uuid5(identity.NAMESPACE, "tnt_default/researcher-alpha-9")
    assert one == f"agt_{expected}"
    assert identity.agent_entity_id("tnt_other", "researcher-alpha-9") != one


def test_an_id_that_has_the_prefix_stays() -> None:
    assert identity.agent_entity_id("tnt_default", "agt_7f3a") == "agt_7f3a"


@given(st.integers(min_value=0, max_value=2**40 - 1), st.sampled_from(identity.PREFIXES))
def test_a_minted_id_is_a_version_7_uuid_that_carries_its_counter(counter: int, prefix: str) -> None:
    text = identity.mint(prefix, NOW, counter)
    value = uuid.UUID(text.removeprefix(prefix))
    assert text.startswith(prefix)
    assert (value.version, value.variant) == (7, uuid.RFC_4122)
    assert value.int >> 80 == NOW // 1_000_000
    assert identity.counter_of(text) == counter


def test_ids_without_a_counter_differ_and_sort_by_time() -> None:
    ids = [identity.mint("msg_", NOW + i * 1_000_000) for i in range(1000)]
    assert len(set(ids)) == 1000
    assert ids == sorted(ids)


@pytest.mark.parametrize("counter", [-1, 2**40])
def test_a_counter_beyond_forty_bits_is_refused(counter: int) -> None:
    with pytest.raises(ValueError):
        identity.mint("evt_", NOW, counter)


@pytest.mark.parametrize(
    "text", ["", "evt_", "evt_uuid", "evt_272c90c4-26eb-489d-a894-a7788b87e480", "tnt_default"]
)
def test_an_id_not_of_our_minting_has_no_counter(text: str) -> None:
    assert identity.counter_of(text) is None
