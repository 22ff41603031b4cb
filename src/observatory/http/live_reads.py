"""What sources of folded topics ask of the store beside what every door asks."""

from __future__ import annotations

from observatory.http.app_state import House
from observatory.runtime.live_rows import Touches


def touches(house: House) -> Touches:
    store = house.store
    assert isinstance(store, Touches)  # a promise of every store
    return store
