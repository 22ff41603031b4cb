"""JMESPath over a body from outside, with a bound on the work.

Law: an expression may be hostile, and so may the body. `[@,@] | [@,@] | …` doubles at every step, and a word
of a thousand letters can be joined a million times. So every step is paid for before it is taken: each visit
of a node, each thing put into a list, and for what reads a value to its depths all that stands there, shared
or not. Who has spent `STEPS` ends with `TooDear`. Bounded by numbers, never by a clock: the same expression
over the same body always ends the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from jmespath import exceptions
from jmespath.functions import Functions
from jmespath.parser import Parser
from jmespath.visitor import TreeInterpreter

STEPS: Final = 100_000
HEAVIEST: Final = 200_000  # of what is found: it will be written down
DEEPEST: Final = 64  # levels of an expression
CHARACTERS: Final = 64  # so many are one step
_FUNCTIONS: Final = frozenset(Functions.FUNCTION_TABLE)
_BUILDS: Final = frozenset({"projection", "value_projection", "filter_projection", "flatten", "slice"})
# These look at their arguments and no deeper.
_SHALLOW: Final = frozenset({"length", "keys", "values", "type", "not_null", "to_array", "merge", "reverse"})
_BY_ELEMENT: Final = frozenset({"map", "sort_by", "max_by", "min_by"})


class TooDear(Exception):
    """The work would go beyond the bound."""


class BadExpression(ValueError):
    """It is no JMESPath, or deeper than anybody writes by hand."""


class Unfit(Exception):
    """It cannot be worked out over this body."""


def compiled(text: str) -> dict[str, Any]:
    """The expression as a tree; raises BadExpression."""
    try:
        tree: dict[str, Any] = Parser().parse(text).parsed
    except exceptions.ParseError as error:
        at = error.lex_position
        raise BadExpression(f"is not JMESPath, from character {at + 1} on") from error
    except (exceptions.JMESPathError, ValueError, RecursionError) as error:
        raise BadExpression("is not JMESPath") from error
    level = [tree]
    for _ in range(DEEPEST):
        if any(node["type"] == "function_expression" and node["value"] not in _FUNCTIONS for node in level):
            raise BadExpression("names a function there is not")
        level = [child for node in level for child in node.get("children", ()) if isinstance(child, dict)]
        if not level:
            return tree
    raise BadExpression(f"is nested deeper than {DEEPEST} levels")


def search(text: str, body: Any) -> Any:
    """What the expression finds; raises BadExpression, TooDear or Unfit."""
    tree = compiled(text)
    meter = _Meter()
    try:
        found = meter.visit(tree, body)
        if meter.weight(found) > HEAVIEST:
            raise TooDear
        return found
    except exceptions.UnknownFunctionError as error:
        raise Unfit("names a function there is not") from error
    except (exceptions.JMESPathError, ValueError, TypeError, ArithmeticError) as error:
        # Theirs would quote the body.
        raise Unfit("gives a function what it cannot take") from error
    except RecursionError as error:
        raise TooDear from error


class _Meter(TreeInterpreter):  # type: ignore[misc]
    """The library's interpreter, which pays for each step."""

    def __init__(self) -> None:
        super().__init__()
        self._left = STEPS
        # The object is kept with its weight: a number may be given to another once it is gone.
        self._weights: dict[int, tuple[int, Any]] = {}

    def _pay(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise TooDear

    def visit(self, node: dict[str, Any], value: Any) -> Any:
        self._pay(1)
        found = super().visit(node, value)
        if node["type"] in _BUILDS and isinstance(found, list):
            self._pay(len(found))
        return found

    def visit_flatten(self, node: dict[str, Any], value: Any) -> Any:
        base = self.visit(node["children"][0], value)
        if not isinstance(base, list):
            return None
        self._pay(sum(len(one) if isinstance(one, list) else 1 for one in base))
        return [each for one in base for each in (one if isinstance(one, list) else (one,))]

    def visit_comparator(self, node: dict[str, Any], value: Any) -> Any:
        left, right = (self.visit(child, value) for child in node["children"])
        if isinstance(left, dict | list) and isinstance(right, dict | list):
            self._pay(self.weight(left) + self.weight(right))
        elif isinstance(left, str) and isinstance(right, str):
            self._pay(min(len(left), len(right)) // CHARACTERS)
        given = [{"type": "literal", "value": one} for one in (left, right)]
        return super().visit_comparator({"value": node["value"], "children": given}, value)

    def visit_function_expression(self, node: dict[str, Any], value: Any) -> Any:
        given = [self.visit(child, value) for child in node["children"]]
        self._pay(self._price(node["value"], given))
        return self._functions.call_function(node["value"], given)

    def _price(self, name: str, given: Sequence[Any]) -> int:
        if name in _BY_ELEMENT:  # each element pays for its own visit
            return sum(len(one) for one in given if isinstance(one, list))
        if name in _SHALLOW:
            return sum(_breadth(one) for one in given)
        price = sum(self.weight(one) for one in given)
        if name == "join" and len(given) == 2 and isinstance(given[0], str) and isinstance(given[1], list):
            price += len(given[0]) * len(given[1]) // CHARACTERS
        return price

    def weight(self, value: Any) -> int:
        """All that stands there, counted as often as it would be read."""
        if isinstance(value, str):
            return 1 + len(value) // CHARACTERS
        if not isinstance(value, dict | list):
            return 1
        known = self._weights.get(id(value))
        if known is not None:
            return known[0]
        self._pay(1)  # for the counting itself
        inner = value.values() if isinstance(value, dict) else value
        weight = 1 + sum(self.weight(one) for one in inner)
        if isinstance(value, dict):
            weight += sum(1 + len(key) // CHARACTERS for key in value)
        self._weights[id(value)] = (weight, value)
        return weight


def _breadth(value: Any) -> int:
    if isinstance(value, str):
        return 1 + len(value) // CHARACTERS
    return len(value) if isinstance(value, dict | list) else 1
