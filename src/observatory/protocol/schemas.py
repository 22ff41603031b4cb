"""The published contracts: JSON Schema 2020-12, generated from the structs.

Law: nothing is defined twice; a schema is what the decoder enforces, so an agent in any language can
validate before sending. Unknown fields are allowed, as on the wire. Rules a schema cannot express (duplicate
keys, real dates) are in `docs/spec/messages.md`.
"""

from typing import Any, Final

import msgspec

from observatory.protocol import commands, envelope, events, identity, versions
from observatory.protocol import responses as answers
from observatory.protocol.decision_log import DecisionLog

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_BASE: Final = "urn:observatory:schema:"

_CONTENTS: Final[dict[str, tuple[str, tuple[Any, ...]]]] = {
    "decision_log": ("A step of an agent", (DecisionLog,)),
    "envelope": (
        "The transport envelope and its eight payloads",
        (envelope.AnyEnvelope,),
    ),
    "audit_event": ("An audit event as served", (events.AuditEvent,)),
    "answers": (
        "The gateway's responses to a message",
        (answers.Accepted, answers.Rejected, answers.Refused),
    ),
    "commands": ("Commands of an operator", (commands.OperatorCommand,)),
    "events": (
        "Events of the gateway",
        (
            events.SchemaViolationEvent,
            events.EntropyAlertEvent,
            events.HITLInterventionEvent,
        ),
    ),
    "identity": ("An entity", (identity.Entity,)),
    "version_entry": ("A registered capability version", (versions.VersionEntry,)),
}


def documents() -> dict[str, dict[str, Any]]:
    """Every schema by name, each a complete document."""
    return {name: _document(name, title, types) for name, (title, types) in _CONTENTS.items()}


def _document(name: str, title: str, types: tuple[Any, ...]) -> dict[str, Any]:
    roots, components = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    root = roots[0] if len(roots) == 1 else {"anyOf": list(roots)}
    return {
        "$schema": DIALECT,
        "$id": f"{_BASE}{name}",
        "title": title,
        **root,
        "$defs": components,
    }
