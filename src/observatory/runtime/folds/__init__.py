"""The folds, in the order they are run. Each is handed committed messages and returns rows.

Law: a fold keeps only what it can read again, in bounded memory, and `forget` drops all of it: after a
failure, and when another analyst has moved a cursor. What it reads of the derived store is as of the batch's
`after`.
"""

from __future__ import annotations

from observatory.features.alerting.fold import Alerts
from observatory.features.facts.fold import Facts
from observatory.features.fleet.fold import Traffic
from observatory.features.graph.fold import Steps
from observatory.features.graph.fold_causes import Causes
from observatory.features.injections.fold import Injections
from observatory.features.loops.fold import Loops
from observatory.features.loops.types import Past
from observatory.features.search.fold import Documents
from observatory.features.sessions.fold_lines import SessionLines
from observatory.runtime.seen import Fold
from observatory.store.derived import DerivedReads


def all_folds(derived: DerivedReads, past: Past) -> list[Fold]:
    return [
        Steps(derived),
        Traffic(derived),
        SessionLines(derived),
        Alerts(),
        Loops(derived, past),
        Causes(derived, past),
        Facts(derived),
        Documents(),
        Injections(past),
    ]
