"""What the analyst folds for the session table."""

from __future__ import annotations

from observatory.derived.reads import DerivedReads
from observatory.derived.seen import Fold
from observatory.features.sessions.fold_lines import SessionLines
from observatory.features.sessions.types_lines import SessionLineReads, Spots
from observatory.pipeline.ports import RecordReads


def folds(derived: DerivedReads, past: RecordReads) -> list[Fold]:
    return [SessionLines(derived.queries(SessionLineReads), derived.queries(Spots))]
