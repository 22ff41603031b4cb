"""Whole sessions as columns: what the spread of a fact and the blast of a step are worked out from.

A hundred thousand rows as objects cost more to make, and to let go of, than all that is asked of them. So
each kind of row is a few columns, and the same place in each is the same row. Kinds are small numbers, the
places of their words in the tuples below, and so are states.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.object_]

DECLARED, INFERRED, SPAN = range(3)
LINK_KINDS: Final = ("declared", "inferred", "span")
FORWARDED, HELD, REJECTED, REFUSED = range(4)
STATES: Final = ("forwarded", "held", "rejected", "refused")
READ, EXACT, NEAR = range(3)
USE_KINDS: Final[tuple[Literal["declared", "exact", "near"], ...]] = ("declared", "exact", "near")


class Columns:
    """Rows of one kind; the first column says how many."""

    __slots__: ClassVar[tuple[str, ...]] = ()
    types: ClassVar[dict[str, Any]] = {}  # of columns that hold no whole numbers

    def __init__(self, *columns: Any) -> None: ...  # as the dataclasses below have it

    def __len__(self) -> int:
        return len(getattr(self, self.__slots__[0]))

    def taken(self, places: Any) -> Self:
        """Of these places, or where a mask is true."""
        return type(self)(*(getattr(self, name)[places] for name in self.__slots__))

    def rows(self) -> Iterator[tuple[Any, ...]]:
        return zip(*(getattr(self, name).tolist() for name in self.__slots__), strict=True)

    @classmethod
    def of(cls, rows: Iterable[Sequence[Any]]) -> Self:
        """Out of rows, whose members stand in the order of the columns."""
        columns = list(zip(*rows, strict=True)) or [()] * len(cls.__slots__)
        named = zip(cls.__slots__, columns, strict=True)
        return cls(*(np.array(column, cls.types.get(name, np.int64)) for name, column in named))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        if len(parts) == 1:
            return parts[0]
        return cls(*(np.concatenate([getattr(one, name) for one in parts]) for name in cls.__slots__))


@dataclass(frozen=True, slots=True, eq=False)
class Steps(Columns):
    """In order of their numbers. State, status and tool only where they are asked for: else 0 and None."""

    types: ClassVar[dict[str, Any]] = {"cost": np.float64, "status": object, "tool": object}
    seq: Ints
    name_key: Ints
    span_key: Ints
    session_no: Ints
    agent_no: Ints
    recipient_no: Ints
    cost: Floats
    at_ns: Ints
    state: Ints
    status: Words
    tool: Words


@dataclass(frozen=True, slots=True, eq=False)
class Links(Columns):
    """Of these steps to the names or spans of their parents, by number, then by key."""

    seq: Ints
    parent_key: Ints
    session_no: Ints
    kind: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Facts(Columns):
    fact_id: Ints
    session_no: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Uses(Columns):
    """Of facts of these sessions, wherever they were used. `copy_id`: the fact made of it, or 0."""

    types: ClassVar[dict[str, Any]] = {"weight": np.float64}
    kind: Ints
    from_no: Ints  # the session of the fact
    fact_id: Ints
    seq: Ints
    weight: Floats
    session_no: Ints
    copy_id: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Crossings(Columns):
    """Links of steps of other sessions, which may be among these too, to steps of these."""

    from_no: Ints
    session_no: Ints
    parent_key: Ints
    seq: Ints
    kind: Ints


class Spread(NamedTuple):
    """Everything of some sessions past a number; `cut` when there was more than the bound."""

    steps: Steps
    links: Links
    facts: Facts
    uses: Uses
    abroad: Crossings
    cut: bool = False


class Step(NamedTuple):
    """One of them as it is shown."""

    seq: int
    session_no: int
    agent_no: int
    recipient_no: int
    cost: float
    at_ns: int
    state: int
    status: str | None
    tool: str | None


class SpreadReads(Protocol):
    async def spread(self, tenant_id: str, sessions: Collection[int], after: int, limit: int) -> Spread:
        """Numbers from `after` on, the earliest `limit` steps; without state, status and tool."""

    async def downstream(self, tenant_id: str, sessions: Collection[int], after: int, limit: int) -> Spread:
        """The same with them."""

    async def led_to(
        self, tenant_id: str, sessions: Collection[int], after: int, most: int
    ) -> dict[int, int]:
        """Sessions that links past a number, and uses of facts, lead to from these, and from those, and so
        on, the nearest first, at most 500; and how many steps from that number on each has."""
