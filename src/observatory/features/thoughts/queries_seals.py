"""Which sessions of the mesh have sealed thoughts."""

from __future__ import annotations

from typing import Any

from observatory.features.thoughts.types_rows import Thoughts
from observatory.http.app_state import AppState


async def sealed_of(app: AppState, tenant_id: str, rows: list[dict[str, Any]]) -> set[str]:
    store = app.store
    assert isinstance(store, Thoughts)  # every store implements it
    return await store.sealed_among(tenant_id, [row["session_id"] for row in rows])


async def is_sealed(app: AppState, tenant_id: str, session_id: str, number: int) -> bool:
    """Whether a step came before its session's thoughts were closed and sealed; later ones do not count."""
    store = app.store
    assert isinstance(store, Thoughts)  # every store implements it
    before = await store.sealed_before(tenant_id, session_id)
    return before is not None and number < before
