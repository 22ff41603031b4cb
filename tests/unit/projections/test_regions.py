"""Where clusters stand: found in their names, never guessed."""

from __future__ import annotations

import pytest

from observatory.features.fleet.regions import (
    REGIONS,
    ClusterPlace,
    cluster_region,
    find_region,
    place_problem,
    region_of,
)
from observatory.features.fleet.types_regions import read_back
from observatory.pipeline.tenant_settings import plain


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        ("aws-eu-central-1-mesh-04", "aws:eu-central-1"),
        ("AWS-US-EAST-1", "aws:us-east-1"),
        ("eu-west-2b", "aws:eu-west-2"),
        ("prod/aws/ap-southeast-2/blue", "aws:ap-southeast-2"),
        ("gcp-asia-southeast1", "gcp:asia-southeast1"),
        ("europe-west10-a", "gcp:europe-west10"),
        ("azure-westeurope", "azure:westeurope"),
        ("azure_eastus2_green", "azure:eastus2"),
        ("us-gov-west-1", "aws:us-gov-west-1"),
        ("onprem-zrh", None),
        ("gcp-us-east-1", None),  # that is a name of another provider
        ("aws-westeurope", None),
        ("aws-gcp-us-east-1", None),
        ("us-east-1-to-eu-west-1", None),  # two
        ("europe-west1x", None),
        ("myeastus", None),
        ("eastus22", None),
        ("", None),
    ],
)
def test_a_cluster_is_placed_by_the_one_region_its_name_tells_of(cluster: str, expected: str | None) -> None:
    """S230"""
    found = region_of(cluster)
    assert (None if found is None else found.region) == expected


def test_every_region_is_found_by_its_own_name_and_lies_on_the_globe() -> None:
    """S230: and no two providers share a name."""
    assert len(REGIONS) > 100
    for key, region in REGIONS.items():
        provider, _, code = key.partition(":")
        assert region_of(f"{provider}-{code}-mesh-1") == find_region(code) == region, key
        assert -90 <= region.lat <= 90 and -180 <= region.lon <= 180 and region.name
    continents = {"eu": (34, 72, -25, 40), "us": (24, 50, -125, -66), "ap": (-48, 46, 68, 155)}
    for key, region in REGIONS.items():
        box = continents.get(key.partition(":")[2].split("-")[0])
        if box is not None:
            assert box[0] < region.lat < box[1] and box[2] < region.lon < box[3], key


def test_an_operators_word_goes_before_the_name() -> None:
    """S230"""
    said = {
        "onprem-zrh": ClusterPlace(name="Zürich, own hall", lat=47.4, lon=8.5),
        "aws-eu-central-1-*": ClusterPlace(region="eu-west-1"),
        "aws-eu-central-1-mesh-*": ClusterPlace(region="aws:eu-north-1"),
        "lab": ClusterPlace(),
    }
    zurich = cluster_region("onprem-zrh", said)
    assert zurich is not None and (zurich.name, zurich.lat) == ("Zürich, own hall", 47.4)
    wide, longest = (
        cluster_region("aws-eu-central-1-x", said),
        cluster_region("aws-eu-central-1-mesh-04", said),
    )
    assert wide is not None and wide.region == "aws:eu-west-1"
    assert longest is not None and longest.region == "aws:eu-north-1"
    assert (
        cluster_region("lab", said) is None
        and cluster_region(None, said) is None
        and cluster_region("elsewhere", said) is None
    )


@pytest.mark.parametrize(
    ("cluster", "place", "word"),
    [
        ("x", ClusterPlace(region="mars-north-1"), "unknown region"),
        ("x", ClusterPlace(region="eu-west-1", lat=1, lon=1), "not both"),
        ("x", ClusterPlace(lat=1), "both lat and lon"),
        ("*", ClusterPlace(region="eu-west-1"), "names a cluster"),
        ("a*b", ClusterPlace(region="eu-west-1"), "only at its end"),
    ],
)
def test_what_cannot_be_meant_is_told_in_a_sentence(cluster: str, place: ClusterPlace, word: str) -> None:
    """S230"""
    problem = place_problem(cluster, place)
    assert problem is not None and word in problem


def test_what_can_be_meant_has_no_fault() -> None:
    """S230"""
    assert place_problem("a-*", ClusterPlace(region="eu-west-1")) is None
    assert (
        place_problem("a", ClusterPlace(lat=1, lon=2)) is None and place_problem("a", ClusterPlace()) is None
    )


def test_what_the_trail_says_of_a_place_can_be_read_back() -> None:
    """S230: an import makes the same setting of it."""
    place = {"name": "Zürich", "lat": 47.4, "lon": -8.25}
    received = plain(place)
    assert received == {"name": "Zürich", "lat": "47.4", "lon": "-8.25"}
    assert read_back(received) == place and read_back({"region": "eu-west-1"}) == {"region": "eu-west-1"}
