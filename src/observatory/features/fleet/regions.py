"""Where clusters are: regions of the usual clouds with coordinates, found in a cluster's name (S230).

Law: no wrong place. A cluster is placed when its name contains exactly one known region as whole words,
of the provider it names if it names one; an operator's setting takes precedence. Everything else is listed as
unplaced. Coordinates are those of the city or area a provider has published for a region, to a tenth of a
degree.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Final, NamedTuple

from msgspec import Meta as Rule
from msgspec import Struct

from observatory.protocol.rules import Name

AWS = """
us-east-1 38.9 -77.4 N. Virginia|us-east-2 40.0 -83.0 Ohio|us-west-1 37.4 -121.9 N. California
us-west-2 45.8 -119.7 Oregon|us-gov-west-1 45.8 -119.7 GovCloud West|us-gov-east-1 40.0 -83.0 GovCloud East
ca-central-1 45.5 -73.6 Montréal|ca-west-1 51.0 -114.1 Calgary|mx-central-1 20.6 -100.4 Querétaro
sa-east-1 -23.5 -46.6 São Paulo|eu-west-1 53.3 -6.3 Ireland|eu-west-2 51.5 -0.1 London
eu-west-3 48.9 2.4 Paris|eu-central-1 50.1 8.7 Frankfurt|eu-central-2 47.4 8.5 Zurich
eu-north-1 59.3 18.1 Stockholm|eu-south-1 45.5 9.2 Milan|eu-south-2 41.6 -0.9 Spain
af-south-1 -33.9 18.4 Cape Town|me-south-1 26.1 50.6 Bahrain|me-central-1 24.5 54.4 UAE
il-central-1 32.1 34.8 Tel Aviv|ap-south-1 19.1 72.9 Mumbai|ap-south-2 17.4 78.5 Hyderabad
ap-southeast-1 1.4 103.8 Singapore|ap-southeast-2 -33.9 151.2 Sydney|ap-southeast-3 -6.2 106.8 Jakarta
ap-southeast-4 -37.8 145.0 Melbourne|ap-southeast-5 3.1 101.7 Malaysia|ap-southeast-7 13.8 100.5 Thailand
ap-northeast-1 35.7 139.7 Tokyo|ap-northeast-2 37.6 127.0 Seoul|ap-northeast-3 34.7 135.5 Osaka
ap-east-1 22.3 114.2 Hong Kong|cn-north-1 39.9 116.4 Beijing|cn-northwest-1 37.5 105.2 Ningxia
"""
GCP = """
us-central1 41.3 -95.9 Iowa|us-east1 33.2 -80.0 South Carolina|us-east4 39.0 -77.5 N. Virginia
us-east5 40.0 -83.0 Columbus|us-south1 32.8 -96.8 Dallas|us-west1 45.6 -121.2 Oregon
us-west2 34.1 -118.2 Los Angeles|us-west3 40.8 -111.9 Salt Lake City|us-west4 36.2 -115.1 Las Vegas
northamerica-northeast1 45.5 -73.6 Montréal|northamerica-northeast2 43.7 -79.4 Toronto
northamerica-south1 20.6 -100.4 Querétaro|southamerica-east1 -23.5 -46.6 São Paulo
southamerica-west1 -33.4 -70.7 Santiago|europe-west1 50.5 3.8 Belgium|europe-west2 51.5 -0.1 London
europe-west3 50.1 8.7 Frankfurt|europe-west4 53.4 6.8 Netherlands|europe-west6 47.4 8.5 Zurich
europe-west8 45.5 9.2 Milan|europe-west9 48.9 2.4 Paris|europe-west10 52.5 13.4 Berlin
europe-west12 45.1 7.7 Turin|europe-central2 52.2 21.0 Warsaw|europe-north1 60.6 27.2 Finland
europe-north2 59.3 18.1 Stockholm|europe-southwest1 40.4 -3.7 Madrid|africa-south1 -26.2 28.0 Johannesburg
me-west1 32.1 34.8 Tel Aviv|me-central1 25.3 51.5 Doha|me-central2 26.4 50.1 Dammam
asia-east1 24.1 120.5 Taiwan|asia-east2 22.3 114.2 Hong Kong|asia-northeast1 35.7 139.7 Tokyo
asia-northeast2 34.7 135.5 Osaka|asia-northeast3 37.6 127.0 Seoul|asia-south1 19.1 72.9 Mumbai
asia-south2 28.6 77.2 Delhi|asia-southeast1 1.3 103.7 Singapore|asia-southeast2 -6.2 106.8 Jakarta
australia-southeast1 -33.9 151.2 Sydney|australia-southeast2 -37.8 145.0 Melbourne
"""
AZURE = """
eastus 37.4 -79.8 Virginia|eastus2 36.7 -78.4 Virginia|centralus 41.6 -93.6 Iowa
northcentralus 41.9 -87.6 Illinois|southcentralus 29.4 -98.5 Texas|westcentralus 40.9 -110.2 Wyoming
westus 37.8 -122.4 California|westus2 47.2 -119.9 Washington|westus3 33.4 -112.1 Phoenix
canadacentral 43.7 -79.4 Toronto|canadaeast 46.8 -71.2 Québec|mexicocentral 20.6 -100.4 Querétaro
brazilsouth -23.5 -46.6 São Paulo|northeurope 53.3 -6.3 Ireland|westeurope 52.4 4.9 Netherlands
uksouth 51.5 -0.1 London|ukwest 51.5 -3.2 Cardiff|francecentral 48.9 2.4 Paris
germanywestcentral 50.1 8.7 Frankfurt|switzerlandnorth 47.4 8.5 Zurich|switzerlandwest 46.2 6.1 Geneva
norwayeast 59.9 10.8 Oslo|swedencentral 60.7 17.1 Gävle|polandcentral 52.2 21.0 Warsaw
italynorth 45.5 9.2 Milan|spaincentral 40.4 -3.7 Madrid|southafricanorth -26.2 28.0 Johannesburg
uaenorth 25.3 55.3 Dubai|qatarcentral 25.3 51.5 Doha|israelcentral 32.1 34.8 Tel Aviv
centralindia 18.5 73.9 Pune|southindia 13.1 80.3 Chennai|westindia 19.1 72.9 Mumbai
eastasia 22.3 114.2 Hong Kong|southeastasia 1.3 103.8 Singapore|japaneast 35.7 139.7 Tokyo
japanwest 34.7 135.5 Osaka|koreacentral 37.6 127.0 Seoul|koreasouth 35.2 129.1 Busan
australiaeast -33.9 151.2 Sydney|australiasoutheast -37.8 145.0 Melbourne
australiacentral -35.3 149.1 Canberra
"""
PROVIDERS: Final = {
    "aws": "aws", "amazon": "aws", "gcp": "gcp", "gce": "gcp", "google": "gcp", "azure": "azure",
    "microsoft": "azure",
}  # fmt: skip
_WORDS: Final = re.compile(r"[^a-z0-9]+")


class Region(NamedTuple):
    region: str  # `aws:eu-central-1`; the name, for an operator's own place
    name: str
    lat: float
    lon: float


class ClusterPlace(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Where an operator places a cluster: a known region, or coordinates with a name."""

    region: Name | None = None
    name: Name | None = None
    lat: Annotated[float, Rule(ge=-90, le=90)] | None = None
    lon: Annotated[float, Rule(ge=-180, le=180)] | None = None


def _read(provider: str, text: str) -> dict[str, Region]:
    found = {}
    for entry in text.strip().replace("\n", "|").split("|"):
        code, lat, lon, name = entry.split(" ", 3)
        found[f"{provider}:{code}"] = Region(f"{provider}:{code}", name, float(lat), float(lon))
    return found


REGIONS: Final[dict[str, Region]] = _read("aws", AWS) | _read("gcp", GCP) | _read("azure", AZURE)
# A zone letter may follow: eu-central-1a, europe-west4-b.
_PATTERNS: Final = {
    key: re.compile(rf"(?:^|[^a-z0-9]){re.escape(key.partition(':')[2])}[a-f]?(?:$|[^a-z0-9])")
    for key in REGIONS
}


@lru_cache(maxsize=10_000)
def region_of(cluster_id: str) -> Region | None:
    """The only region in its name; None when there is none, or more than one."""
    name = cluster_id.lower()
    named = {PROVIDERS[word] for word in _WORDS.split(name) if word in PROVIDERS}
    if len(named) > 1:
        return None
    matches = [
        key
        for key, pattern in _PATTERNS.items()
        if (not named or key.partition(":")[0] in named) and pattern.search(name)
    ]
    return REGIONS[matches[0]] if len(matches) == 1 else None


def cluster_region(cluster_id: str | None, overrides: Mapping[str, ClusterPlace]) -> Region | None:
    """By an operator's setting, for this cluster or the longest matching prefix `…*`; else by its name."""
    if not cluster_id:
        return None
    place = overrides.get(cluster_id)
    if place is None:
        prefixes = [word for word in overrides if word.endswith("*") and cluster_id.startswith(word[:-1])]
        place = overrides[max(prefixes, key=len)] if prefixes else None
    return region_of(cluster_id) if place is None else region_of_place(place)


def region_of_place(place: ClusterPlace) -> Region | None:
    """None where an operator keeps a cluster off the map."""
    if place.region is not None:
        return find_region(place.region)
    if place.lat is None or place.lon is None:
        return None
    name = place.name or f"{place.lat}, {place.lon}"
    return Region(name, name, place.lat, place.lon)


def find_region(region: str) -> Region | None:
    """By `aws:eu-central-1`, or by `eu-central-1` alone: no two providers share a name."""
    word = region.strip().lower()
    if word in REGIONS:
        return REGIONS[word]
    matches = [key for key in REGIONS if key.partition(":")[2] == word]
    return REGIONS[matches[0]] if len(matches) == 1 else None


def place_problem(cluster_id: str, place: ClusterPlace) -> str | None:
    """What is wrong with an operator's setting, in a sentence."""
    if not cluster_id.strip("*") or "*" in cluster_id[:-1]:
        return "names a cluster; * is allowed only at its end"
    if place.region is not None:
        if place.lat is not None or place.lon is not None:
            return "either a region or coordinates (lat and lon), not both"
        if find_region(place.region) is None:
            return "unknown region; give lat and lon instead"
    elif (place.lat is None) != (place.lon is None):
        return "coordinates need both lat and lon"
    return None
