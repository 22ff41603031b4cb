"""The folds, in the order they are run. Each is handed committed messages and returns rows.

Law: a fold keeps only what it can read again, in bounded memory, and `forget` drops all of it: after a
failure, and when another analyst has moved a cursor. What it reads of the derived store is as of the batch's
`after`.
"""

from __future__ import annotations

from observatory.daemons.folds.alerts import Alerts
from observatory.daemons.folds.causes import Causes
from observatory.daemons.folds.facts import Facts
from observatory.daemons.folds.injections import Injections
from observatory.daemons.folds.loops import Loops
from observatory.daemons.folds.search import Documents
from observatory.daemons.folds.session_lines import SessionLines
from observatory.daemons.folds.steps import Steps
from observatory.daemons.folds.traffic import Traffic
from observatory.insight.loops import Past
from observatory.insight.seen import Fold
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
