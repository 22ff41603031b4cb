"""Applies a hook's mapping: turns the body of a call into a message (rule S524).

Pure. Results are checked like any external input: names by the rules of names, the payload by the rules of
every document and by its size. A fault names the member of the mapping, never the body.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple

import msgspec

from observatory.features.hooks.types_mapping import Destination, Expression, HookMapping
from observatory.protocol.document import parse
from observatory.protocol.responses import Fault
from observatory.protocol.rules import NAME

MAX_PAYLOAD: Final = 512 << 10
LARGEST: Final = 10**256  # of a number used as a name: no name is longer
LEVELS: Final = 48  # of a payload: the message around it has levels too
Kind = Literal["agent", "capability", "cluster"]
KINDS: Final[tuple[Kind, ...]] = ("agent", "capability", "cluster")
# For schemes that do not name the delivery, senders name it in the body under these keys.
DELIVERY_IDS: Final = {"stripe": "id", "slack": "event_id"}


class MappedMessage(NamedTuple):
    intent: str
    kind: Kind
    name: str
    payload: dict[str, Any]
    session: str | None
    delivery_id: str | None


class IgnoredCall(NamedTuple):
    """`when` does not match this body."""


def check(mapping: HookMapping) -> list[Fault]:
    """Faults of a mapping that can be found without a body."""
    from observatory.features.hooks.expressions import BadExpression, compiled

    faults = []
    if sum(getattr(mapping.target, kind) is not None for kind in KINDS) != 1:
        faults.append(Fault("target", "names exactly one of agent, capability and cluster"))
    for path, text in _expressions(mapping):
        try:
            compiled(text)
        except BadExpression as error:
            faults.append(Fault(path, str(error)))
    return faults


def _expressions(mapping: HookMapping) -> Iterator[tuple[str, str]]:
    if isinstance(mapping.intent, Expression):
        yield "intent", mapping.intent.expression
    for kind in KINDS:
        found = getattr(mapping.target, kind)
        if isinstance(found, Expression):
            yield f"target.{kind}", found.expression
    for name in ("payload", "session", "when", "delivery_id"):
        text = getattr(mapping, name)
        if text is not None:
            yield name, text


class _Unmapped(Exception):
    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path)
        self.fault = Fault(path, problem)


def apply(mapping: HookMapping, body: Any, scheme: str) -> MappedMessage | IgnoredCall | Fault:
    """Never raises on input."""
    try:
        if mapping.when is not None and _is_false(_find("when", mapping.when, body)):
            return IgnoredCall()
        kind, name = _target(mapping.target, body)
        return MappedMessage(
            _name("intent", mapping.intent, body),
            kind,
            name,
            _payload(_find("payload", mapping.payload, body)),
            None if mapping.session is None else _key("session", mapping.session, body),
            delivery_id(mapping, body, scheme),
        )
    except _Unmapped as unmapped:
        return unmapped.fault


def delivery_id(mapping: HookMapping, body: Any, scheme: str) -> str | None:
    """The body's delivery id; by default from the member the scheme's senders use, if any."""
    if mapping.delivery_id is not None:
        return _key("delivery_id", mapping.delivery_id, body)
    found = body.get(DELIVERY_IDS.get(scheme, "")) if isinstance(body, dict) else None
    return found if isinstance(found, str) and NAME.match(found) else None


def _find(path: str, text: str, body: Any) -> Any:
    from observatory.features.hooks.expressions import BadExpression, EvaluationFailed, TooExpensive, search

    try:
        return search(text, body)
    except TooExpensive as error:
        raise _Unmapped(path, "needs too much work over this body") from error
    except (BadExpression, EvaluationFailed) as error:
        raise _Unmapped(path, str(error)) from error


def _is_false(found: Any) -> bool:
    """False as JMESPath defines it: 0 is true."""
    return found is None or found is False or (isinstance(found, str | list | dict) and not found)


def _target(target: Destination, body: Any) -> tuple[Kind, str]:
    for kind in KINDS:
        found = getattr(target, kind)
        if found is not None:
            return kind, _name(f"target.{kind}", found, body)
    raise _Unmapped("target", "names no target")


def _name(path: str, given: str | Expression, body: Any) -> str:
    found = given if isinstance(given, str) else _find(path, given.expression, body)
    if not isinstance(found, str) or not NAME.match(found):
        raise _Unmapped(path, "does not result in a text of 1 to 256 characters without control characters")
    return found


def _key(path: str, text: str, body: Any) -> str:
    found = _find(path, text, body)
    if isinstance(found, int) and not isinstance(found, bool) and abs(found) < LARGEST:
        found = str(found)
    if not isinstance(found, str) or not NAME.match(found):
        raise _Unmapped(path, "does not result in a number or a text of 1 to 256 characters")
    return found


def _payload(found: Any) -> dict[str, Any]:
    if found is None:
        raise _Unmapped("payload", "results in nothing")
    try:
        raw = msgspec.json.encode(found)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise _Unmapped("payload", "does not result in JSON") from error
    if len(raw) > MAX_PAYLOAD:
        raise _Unmapped("payload", f"exceeds {MAX_PAYLOAD} bytes")
    document = parse(raw)
    if document is None or not document.clean or not _is_shallow(document.value, 1):
        raise _Unmapped("payload", "is not allowed in a message: too deep, or a number too large")
    return document.value if isinstance(document.value, dict) else {"value": document.value}


def _is_shallow(value: Any, level: int) -> bool:
    if isinstance(value, dict):
        return level <= LEVELS and all(_is_shallow(one, level + 1) for one in value.values())
    if isinstance(value, list):
        return level <= LEVELS and all(_is_shallow(one, level + 1) for one in value)
    return True
