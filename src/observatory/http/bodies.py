"""Validation of operators' request bodies, in one place before any handler sees them (S1240, S1241).

A body is checked against the struct its route takes, as a message is against its schema: every fault is named
with its path and what was expected there, and neither a value nor the name of an unknown member is repeated.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from litestar.exceptions import ValidationException
from litestar.handlers import HTTPRouteHandler

from observatory.http.answers import InvalidRequest, Refusal
from observatory.http.app_state import Call
from observatory.pipeline.validation import ROOT, expected, faults_of
from observatory.protocol.document import parse
from observatory.protocol.responses import Fault

EMPTY = Fault(ROOT, "is missing: send a JSON object")
UNFIT = "is not what this route takes; see /docs"
INJECTED = ("request", "app", "data")
UNREADABLE = "the body is not JSON that every parser reads alike; see /docs"


def shape_of(handler: HTTPRouteHandler) -> Any:
    """The type of a route's body; None where a route reads no JSON body."""
    field = handler.parsed_fn_signature.parameters.get("data")
    return None if field is None else field.annotation


def _handler(request: Call) -> HTTPRouteHandler:
    handler = request.scope["route_handler"]
    assert isinstance(handler, HTTPRouteHandler)
    return handler


async def validate_body(request: Call) -> None:
    """Raise unless a command's body is declared as JSON, holds no key twice, and is what its route takes."""
    if request.method not in ("POST", "PUT", "PATCH"):
        return
    shape, body = shape_of(_handler(request)), await request.body()
    if not body:
        if shape is not None:
            raise InvalidRequest(422, (EMPTY,))
        return
    if request.content_type[0] not in ("application/json", ""):
        raise Refusal(415, "unsupported_media_type", "send Content-Type application/json")
    document = parse(body)
    if document is None:
        raise Refusal(400, "bad_request", UNREADABLE)
    faults = () if shape is None else faults_of(shape, document.value)
    if not document.clean:
        raise InvalidRequest(400, faults) if faults else Refusal(400, "bad_request", UNREADABLE)
    if faults:
        raise InvalidRequest(422, faults)


def invalid_parameters(request: Call, error: ValidationException) -> InvalidRequest:
    """The error for unreadable parameters. The framework may quote the input: only names are used."""
    extras = [extra for extra in error.extra or [] if isinstance(extra, dict)]
    handler = _handler(request)
    # Such a body passed `judge_body`, which is too lenient here.
    if any(extra.get("source") == "body" for extra in extras):
        return InvalidRequest(422, (Fault(ROOT, UNFIT),))
    named = [str(extra["key"]) for extra in extras if extra.get("key")]
    faults = [_unfit(handler, name) for name in named] or list(_missing(request, handler))
    return InvalidRequest(400, tuple(faults) or (Fault(ROOT, UNFIT),))


def _parameters(handler: HTTPRouteHandler) -> dict[str, msgspec.structs.FieldInfo]:
    """Parameters by the names they have in a query or a path."""
    given = handler.parsed_fn_signature.parameters
    fields = {field.name: field for field in msgspec.structs.fields(handler.signature_model)}
    return {
        getattr(given[name].kwarg_definition, "name", None) or name: field
        for name, field in fields.items()
        if name in given and name not in INJECTED
    }


def _unfit(handler: HTTPRouteHandler, name: str) -> Fault:
    for public, field in _parameters(handler).items():
        if name in (public, field.name):
            return Fault(public, expected(field.type))
    return Fault(ROOT, UNFIT)


def _missing(request: Call, handler: HTTPRouteHandler) -> Iterator[Fault]:
    present = {*request.query_params, *request.path_params}
    for name, field in _parameters(handler).items():
        if field.required and name not in present:
            yield Fault(name, "is missing: this parameter is required")
