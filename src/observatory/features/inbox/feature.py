"""What inbox registers with the gateway."""

from __future__ import annotations

from typing import Any

from observatory.features.inbox import routes
from observatory.features.inbox.commands import AckResult
from observatory.features.inbox.routes import channel
from observatory.features.inbox.types import InboxAnswer
from observatory.features.inbox.worker import Dispatcher
from observatory.http.app_state import AppState
from observatory.http.feature import Endpoints, Feature, SocketEndpoint
from observatory.http.ingest import Ingest
from observatory.http.sockets import Socket


def endpoints(app: AppState, _: Any, __: Ingest) -> Endpoints:
    agents = routes.AgentChannel(app)

    async def call(socket: Socket, found: Any) -> None:
        await agents.socket(socket, found[1])

    template = "/v1/agents/{agent_id}/channel"
    return Endpoints(sockets=[SocketEndpoint(template=template, match=routes.PATH, call=call)])


async def start(app: AppState) -> None:
    committer = app.committer
    dispatcher = app.add(
        Dispatcher(app.store, app.bus, committer.submit, committer.enqueue, app.settings.redelivery_s)
    )
    app.workers["dispatcher"] = dispatcher.run
    app.measured.append(dispatcher)
    app.on_stop.append(dispatcher.close)  # polls and streams of agents would be waited for


FEATURE = Feature(
    endpoints=endpoints,
    start=start,
    routes=(channel,),
    answers={
        "read_inbox": InboxAnswer,
        "ack_inbox": AckResult,
    },
)
