"""`/v1/compare`: two sessions side by side (rules S216–S218), read from the archive and aligned in a
thread."""

from __future__ import annotations

import asyncio
from typing import Annotated

import msgspec
from litestar import Response, Router, get
from litestar.enums import MediaType
from litestar.params import QueryParameter

from observatory.features.compare.compare import compare as compared
from observatory.features.graph.queries_session import LoadedSession, load, session_row
from observatory.http.answers import Refusal
from observatory.http.app_state import Call, Here
from observatory.http.permissions import require_permission


@get("/compare", summary="Compare two sessions step by step", operation_id="compare_sessions")
async def compare_sessions(
    request: Call,
    app: Here,
    left: Annotated[str | None, QueryParameter(description="A session id: before.")] = None,
    right: Annotated[str | None, QueryParameter(description="A session id: after.")] = None,
) -> Response[bytes]:
    """Deltas are right minus left. `alignment.exact` is false when only a band of pairs was compared."""
    who = await require_permission(request, app, "read")
    if not left or not right:
        raise Refusal(400, "bad_request", "name two sessions: ?left=<session id>&right=<session id>")
    rows = [await session_row(app, who.tenant_id, name) for name in (left, right)]
    sides = [await load(app, who.tenant_id, row) for row in rows]
    body = await asyncio.to_thread(_encoded, sides[0], sides[1])
    return Response(body, media_type=MediaType.JSON)


def _encoded(left: LoadedSession, right: LoadedSession) -> bytes:
    answer = compared(left.graph.steps(), right.graph.steps())
    for name, side in (("left", left), ("right", right)):
        answer[name] |= {"session_id": side.session["session_id"], "truncated": side.truncated}
    return msgspec.json.encode(answer)


compare = Router(path="/v1", route_handlers=[compare_sessions], tags=["Session Cluster Manager"])
