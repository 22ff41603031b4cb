"""What the generated tuning trajectories talk about: lines of work with tools, items, errors and wordings.

The words are data, in `subjects.json`.
"""

from __future__ import annotations

import msgspec

from bench.trajectories.format import HERE


class Subject(msgspec.Struct, frozen=True):
    """One line of work. `{i}` in a template is the item, `{q}` the question; `says` word one intent."""

    agent: str
    read: tuple[str, str]  # tool and input template
    write: tuple[str, str]
    look: tuple[str, str]  # a search by words
    items: tuple[str, ...]
    says: tuple[str, ...]
    whys: tuple[str, ...]
    errors: tuple[str, ...]
    nothing: tuple[str, ...]
    asks: tuple[str, ...]  # one question in other words
    finds: tuple[str, ...]  # what reading an item may bring


class _Words(msgspec.Struct, frozen=True):
    subjects: tuple[Subject, ...]
    worries: tuple[tuple[str, ...], ...]  # thoughts that go round: one worry in other words
    plans: tuple[tuple[str, ...], ...]  # thinking that gets somewhere: each line another step


_words = msgspec.json.decode((HERE / "subjects.json").read_bytes(), type=_Words)
SUBJECTS, WORRIES, PLANS = _words.subjects, _words.worries, _words.plans
