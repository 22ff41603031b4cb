"""How OTLP is answered: how many were not taken and why, or what went wrong, in the sender's own form."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from observatory.features.exporters.otlp import varint
from observatory.features.otlp.records import Form

# google.rpc.Code, by what HTTP says of the same.
CODES: Final = {400: 3, 401: 16, 403: 7, 409: 6, 413: 8, 415: 3, 429: 8, 503: 14}
_REJECTED: Final = {"traces": "rejectedSpans", "logs": "rejectedLogRecords"}


def reply(signal: Literal["traces", "logs"], form: Form, rejected: int, told: str) -> bytes:
    """An Export…ServiceResponse; without `partial_success` when all was taken and nothing is to be said."""
    if form == "json":
        if not rejected and not told:
            return b"{}"
        return msgspec.json.encode(
            {"partialSuccess": {_REJECTED[signal]: str(rejected), "errorMessage": told}}
        )
    if not rejected and not told:
        return b""
    text = told.encode()
    inner = (b"\x08" + varint(rejected) if rejected else b"") + b"\x12" + varint(len(text)) + text
    return b"\x0a" + varint(len(inner)) + inner


def trouble(form: Form | None, code: int, reason: str, told: str) -> bytes:
    """A google.rpc.Status: code = 1, message = 2; as JSON also what our every refusal says."""
    if form != "protobuf":
        refused = {"status": "refused", "reason": reason, "detail": told}
        return msgspec.json.encode({"code": CODES.get(code, 13), "message": told, **refused})
    text = told.encode()
    return b"\x08" + varint(CODES.get(code, 13)) + b"\x12" + varint(len(text)) + text
