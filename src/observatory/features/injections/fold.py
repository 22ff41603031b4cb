"""The injections fold: known prompt injections in tool outputs, memory and messages addressed to agents.

Law: it blocks nothing and stores no text: a finding has the patterns, the members of the message they occur
in, and its number. For one agent in one session each pattern is reported once an hour; what is remembered of
that is bounded, and lost with the process, after which it is reported once more. Refused messages reached no
agent and are skipped. Rules S1282 to S1284.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, Final

from observatory.derived.reads import DerivedReads
from observatory.derived.seen import Batch, DerivedWrite, Finding, Fold, FoldMessage
from observatory.features.injections.detector import patterns_in
from observatory.pipeline.ports import RecordReads
from observatory.protocol.tenant_config import Injection
from observatory.runtime.fold_settings import DetectorSettingsCache

WINDOW_NS: Final = 3_600 * 1_000_000_000
KNOWN: Final = 50_000  # patterns of agents in sessions, about 200 bytes each
# What an agent reads in addition to what is addressed to it.
READ: Final = (
    ("action", "tool_output_summary"),
    ("state_delta", "added_to_memory"),
    ("state_delta", "read_from_memory"),
)
SECTIONS: Final = ("cognition", "action", "state_delta")

Key = tuple[str, str, str, str]  # tenant, session, agent, pattern


class InjectionFold:
    name = "injections"

    def __init__(self, past: RecordReads) -> None:
        self._rules = DetectorSettingsCache(past)
        self._found: OrderedDict[Key, int] = OrderedDict()  # when each was last reported

    def forget(self) -> None:
        self._found.clear()

    async def fold(self, batch: Batch) -> tuple[list[DerivedWrite], list[Finding]]:
        rules = (await self._rules.current(batch.tenant_id)).injections
        if not rules.on:
            return [], []
        found = []
        for seen in batch.messages:
            if seen.state == "refused" or not seen.session_id:
                continue
            members = {path: patterns_in(text) - set(rules.off) for path, text in members_of(seen) if text}
            patterns: set[Injection] = set().union(*members.values())
            new = [one for one in sorted(patterns) if self._is_new(batch.tenant_id, seen, one)]
            if new:
                places = sorted(path for path, some in members.items() if not some.isdisjoint(new))
                found.append(_finding(seen, new, places))
        return [], found

    def _is_new(self, tenant_id: str, seen: FoldMessage, pattern: str) -> bool:
        key = (tenant_id, seen.session_id, seen.agent_id, pattern)
        before = self._found.get(key)
        if before is not None and seen.at_ns - before < WINDOW_NS:
            return False
        self._found[key] = seen.at_ns
        self._found.move_to_end(key)
        if len(self._found) > KNOWN:
            self._found.popitem(last=False)
        return True


def _finding(seen: FoldMessage, patterns: list[Injection], places: list[str]) -> Finding:
    body = {"patterns": patterns, "members": places}
    return Finding(
        kind="injection",
        seq=seen.seq,
        session_id=seen.session_id,
        agent_id=seen.agent_id,
        at_ns=seen.at_ns,
        body=body,
    )


def members_of(seen: FoldMessage) -> Iterator[tuple[str, str]]:
    """(path, text) of what an agent may read; a path has names of the schema, never keys that were sent."""
    if seen.log is not None:
        is_addressed = seen.log.identity.recipient is not None
        for section in SECTIONS:
            part = getattr(seen.log, section)
            for field in part.__struct_fields__ if part is not None else ():
                if is_addressed or (section, field) in READ:
                    yield f"{section}.{field}", "\n".join(_strings(getattr(part, field)))
    elif seen.envelope is not None:
        payload = seen.envelope.payload
        for field in payload.__struct_fields__:
            yield f"payload.{field}", "\n".join(_strings(getattr(payload, field)))
        yield "metadata", "\n".join(_strings(seen.envelope.metadata))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)
    elif fields := getattr(value, "__struct_fields__", ()):
        for field in fields:
            yield from _strings(getattr(value, field))


def folds(derived: DerivedReads, past: RecordReads) -> list[Fold]:
    return [InjectionFold(past)]
