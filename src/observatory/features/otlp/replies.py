"""Encodes OTLP responses: rejected counts and reasons, or an error, in the sender's own encoding."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from observatory.features.otlp.records import Form
from observatory.protocol.protobuf import varint

# google.rpc.Code by the HTTP status of the same meaning.
CODES: Final = {400: 3, 401: 16, 403: 7, 409: 6, 413: 8, 415: 3, 429: 8, 503: 14}
_REJECTED: Final = {"traces": "rejectedSpans", "logs": "rejectedLogRecords"}


def reply(signal: Literal["traces", "logs"], form: Form, rejected: int, detail: str) -> bytes:
    """An Export…ServiceResponse; without `partial_success` when nothing was rejected."""
    if form == "json":
        if not rejected and not detail:
            return b"{}"
        return msgspec.json.encode(
            {"partialSuccess": {_REJECTED[signal]: str(rejected), "errorMessage": detail}}
        )
    if not rejected and not detail:
        return b""
    text = detail.encode()
    inner = (b"\x08" + varint(rejected) if rejected else b"") + b"\x12" + varint(len(text)) + text
    return b"\x0a" + varint(len(inner)) + inner


def error_reply(form: Form | None, code: int, reason: str, detail: str) -> bytes:
    """A google.rpc.Status: code = 1, message = 2; as JSON with the members of every refusal of this API."""
    if form != "protobuf":
        refused = {"status": "refused", "reason": reason, "detail": detail}
        return msgspec.json.encode({"code": CODES.get(code, 13), "message": detail, **refused})
    text = detail.encode()
    return b"\x08" + varint(CODES.get(code, 13)) + b"\x12" + varint(len(text)) + text
