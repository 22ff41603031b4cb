"""The store reads that only the folded live topics need."""

from __future__ import annotations

from observatory.derived.live_rows import LiveRowReads
from observatory.http.app_state import AppState


def touches(app: AppState) -> LiveRowReads:
    store = app.store
    assert isinstance(store, LiveRowReads)  # a promise of every store
    return store
