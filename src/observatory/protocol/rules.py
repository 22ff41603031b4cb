"""The scalar types of the protocol, each with its validation rule.

Law: a rule is defined once. Its `pattern` or range is what the decoder enforces and what the published
JSON Schema shows; `extra["expects"]` is the text of the fault when it is broken. Two rules no pattern can
express (a real date, a UUID in any spelling) are named in `extra["rule"]`, shown in the schema as a pattern
of the same shape, and enforced by the decoding code.
"""

import re
from typing import Annotated, Final

from msgspec import Meta

from observatory.protocol import clock

# `$(?!\n)`: Python's `$` also matches before a final newline, ECMAScript's does not; so both agree.
END: Final = r"$(?!\n)"
MAX_SAFE: Final = 2**53 - 1
_VISIBLE: Final = rf"^[^\x00-\x1f\x7f-\x9f]+{END}"
_UUID: Final = (
    rf"^(?![0-]+{END})([0-9a-fA-F]{{32}}|"
    rf"[0-9a-fA-F]{{8}}-[0-9a-fA-F]{{4}}-[0-9a-fA-F]{{4}}-[0-9a-fA-F]{{4}}-[0-9a-fA-F]{{12}}){END}"
)
# The rule of `Name`, for text in a free-form object.
NAME: Final = re.compile(rf"^[^\x00-\x1f\x7f-\x9f]{{1,256}}{END}")
_NUMBER: Final = "(0|[1-9][0-9]*)"
_PART: Final = "(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
SEMVER: Final = (
    rf"^v?{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PART}(\.{_PART})*)?"
    rf"(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?{END}"
)


# A name given by a person: one line, not blank.
Title = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=100,
        pattern=rf"^[^\x00-\x1f\x7f]*[^\x00-\x20\x7f][^\x00-\x1f\x7f]*{END}",
        extra={"expects": "1 to 100 characters in one line, not all blanks"},
    ),
]


def _prefixed(prefix: str, what: str) -> Meta:
    return Meta(
        pattern=rf"^{prefix}[A-Za-z0-9_-]{{1,128}}{END}",
        description=f"{what}: `{prefix}` and 1 to 128 of A-Z a-z 0-9 _ -",
        extra={"expects": f"{prefix} and then 1 to 128 characters of A-Z a-z 0-9 _ -"},
    )


_NAME: Final = Meta(
    min_length=1,
    max_length=256,
    pattern=_VISIBLE,
    extra={"expects": "1 to 256 characters without control characters"},
)

Name = Annotated[str, _NAME]
SessionId = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=256,
        pattern=rf"^[^/\x00-\x1f\x7f-\x9f]*{END}",
        description="Any text without a slash, which divides session and step in a step's name",
        extra={"expects": "1 to 256 characters without a slash or control characters"},
    ),
]
OptionalRef = Annotated[
    str,
    Meta(
        max_length=600,
        pattern=rf"^[^\x00-\x1f\x7f-\x9f]*{END}",
        description="A step's name: its UUID, or `<session_id>/<step_id>`; empty is null",
        extra={"expects": "at most 600 characters without control characters"},
    ),
]
Timestamp = Annotated[
    str,
    Meta(
        description="RFC 3339 with a zone, at most nine fraction digits",
        extra_json_schema={"format": "date-time", "pattern": clock.PATTERN},
        extra={"rule": "time", "expects": clock.EXPECTED},
    ),
]
TraceUuid = Annotated[
    str,
    Meta(
        description="A UUID in any spelling, or 32 hex digits; not all zero",
        extra_json_schema={"pattern": _UUID},
        extra={"rule": "uuid", "expects": "a UUID or 32 hex digits, not all zero"},
    ),
]
TraceHex = Annotated[
    str,
    Meta(
        pattern=rf"^(?!0+{END})[0-9a-fA-F]{{32}}{END}",
        extra={"expects": "32 hex digits, not all zero"},
    ),
]
SpanHex = Annotated[
    str,
    Meta(
        pattern=rf"^(?!0+{END})[0-9a-fA-F]{{16}}{END}",
        extra={"expects": "16 hex digits, not all zero"},
    ),
]
SemVer = Annotated[
    str,
    Meta(
        max_length=128,
        pattern=SEMVER,
        description="Semantic version, a leading v is allowed",
        extra={"expects": "a semantic version of at most 128 characters, such as v2.1.0-stable"},
    ),
]
EnvelopeVersion = Annotated[
    str,
    Meta(
        max_length=32,
        pattern=rf"^1(\.[0-9]+){{1,2}}{END}",
        description="Version of the envelope; any 1.x is accepted",
        extra={"expects": "a version 1.x, such as 1.0.0"},
    ),
]
Sha256 = Annotated[
    str,
    Meta(
        pattern=rf"^(sha256:)?[0-9a-fA-F]{{64}}{END}",
        extra={"expects": "64 hex digits, a leading sha256: is allowed"},
    ),
]

Score = Annotated[float, Meta(ge=0.0, le=1.0)]
Count = Annotated[int, Meta(ge=0, le=MAX_SAFE)]
Percent = Annotated[float, Meta(ge=0.0, le=100.0)]
InlineContent = Annotated[str, Meta(max_length=65536)]
Label = Annotated[str, Meta(max_length=256)]

EntityId = Annotated[
    str,
    Meta(
        pattern=rf"^[a-z]{{2,8}}_[A-Za-z0-9_.:@-]{{1,248}}{END}",
        description="A prefixed id, such as agt_…, usr_…",
        extra={"expects": "a prefixed id, such as agt_ and then 1 to 248 of A-Z a-z 0-9 _ . : @ -"},
    ),
]
MessageId = Annotated[str, _prefixed("msg_", "Id of a message")]
DecisionId = Annotated[str, _prefixed("dec_", "Id of a decision")]
AlertId = Annotated[str, _prefixed("alt_", "Id of an alert")]
ActionId = Annotated[str, _prefixed("act_", "Id of an action")]
TaskId = Annotated[str, _prefixed("tsk_", "Id of a task")]
ArtifactId = Annotated[str, _prefixed("art_", "Id of an artifact")]
EventId = Annotated[str, _prefixed("evt_", "Id of an event")]
