"""JMESPath over the body of an inbound webhook, with a bound on the work.

Law: an expression may be hostile, and so may the body. `[@,@] | [@,@] | …` doubles at every step, and a word
of a thousand letters can be joined a million times. So every step is charged before it is done: each visit of
a node, each element put into a list, and for functions that read a value to its depths everything in it,
shared or not. After `STEPS` the evaluation ends with `TooExpensive`. Bounded by counts, never by a clock:
the same expression over the same body always ends the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from jmespath import exceptions
from jmespath.functions import Functions
from jmespath.parser import Parser
from jmespath.visitor import TreeInterpreter

STEPS: Final = 100_000
HEAVIEST: Final = 200_000  # of the result: it will be encoded
DEEPEST: Final = 64  # levels of an expression
CHARACTERS: Final = 64  # this many are one step
_FUNCTIONS: Final = frozenset(Functions.FUNCTION_TABLE)
_BUILDS: Final = frozenset({"projection", "value_projection", "filter_projection", "flatten", "slice"})
# These look at their arguments only, not into them.
_SHALLOW: Final = frozenset({"length", "keys", "values", "type", "not_null", "to_array", "merge", "reverse"})
_BY_ELEMENT: Final = frozenset({"map", "sort_by", "max_by", "min_by"})


class TooExpensive(Exception):
    """The work would exceed the bound."""


class BadExpression(ValueError):
    """Not JMESPath, or nested too deeply."""


class EvaluationFailed(Exception):
    """The expression cannot be evaluated over this body."""


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
            raise BadExpression("names an unknown function")
        level = [child for node in level for child in node.get("children", ()) if isinstance(child, dict)]
        if not level:
            return tree
    raise BadExpression(f"is nested deeper than {DEEPEST} levels")


def search(text: str, body: Any) -> Any:
    """The expression's result; raises BadExpression, TooExpensive or Unfit."""
    tree = compiled(text)
    meter = _Meter()
    try:
        found = meter.visit(tree, body)
        if meter.weight(found) > HEAVIEST:
            raise TooExpensive
        return found
    except exceptions.UnknownFunctionError as error:
        raise EvaluationFailed("names an unknown function") from error
    except (exceptions.JMESPathError, ValueError, TypeError, ArithmeticError) as error:
        # The library's own message would quote the body.
        raise EvaluationFailed("passes a function an argument of the wrong type") from error
    except RecursionError as error:
        raise TooExpensive from error


class _Meter(TreeInterpreter):  # type: ignore[misc]
    """The library's interpreter, charging each step."""

    def __init__(self) -> None:
        super().__init__()
        self._budget = STEPS
        # Keeping the object with its weight prevents its id from being reused.
        self._weights: dict[int, tuple[int, Any]] = {}

    def _charge(self, steps: int) -> None:
        self._budget -= steps
        if self._budget < 0:
            raise TooExpensive

    def visit(self, node: dict[str, Any], value: Any) -> Any:
        self._charge(1)
        found = super().visit(node, value)
        if node["type"] in _BUILDS and isinstance(found, list):
            self._charge(len(found))
        return found

    def visit_flatten(self, node: dict[str, Any], value: Any) -> Any:
        base = self.visit(node["children"][0], value)
        if not isinstance(base, list):
            return None
        self._charge(sum(len(one) if isinstance(one, list) else 1 for one in base))
        return [each for one in base for each in (one if isinstance(one, list) else (one,))]

    def visit_comparator(self, node: dict[str, Any], value: Any) -> Any:
        left, right = (self.visit(child, value) for child in node["children"])
        if isinstance(left, dict | list) and isinstance(right, dict | list):
            self._charge(self.weight(left) + self.weight(right))
        elif isinstance(left, str) and isinstance(right, str):
            self._charge(min(len(left), len(right)) // CHARACTERS)
        arguments = [{"type": "literal", "value": one} for one in (left, right)]
        return super().visit_comparator({"value": node["value"], "children": arguments}, value)

    def visit_function_expression(self, node: dict[str, Any], value: Any) -> Any:
        arguments = [self.visit(child, value) for child in node["children"]]
        self._charge(self._price(node["value"], arguments))
        return self._functions.call_function(node["value"], arguments)

    def _price(self, name: str, arguments: Sequence[Any]) -> int:
        if name in _BY_ELEMENT:  # each element pays for its own visit
            return sum(len(one) for one in arguments if isinstance(one, list))
        if name in _SHALLOW:
            return sum(_breadth(one) for one in arguments)
        price = sum(self.weight(one) for one in arguments)
        if (
            name == "join"
            and len(arguments) == 2
            and isinstance(arguments[0], str)
            and isinstance(arguments[1], list)
        ):
            price += len(arguments[0]) * len(arguments[1]) // CHARACTERS
        return price

    def weight(self, value: Any) -> int:
        """The size of everything in it, counted as often as it would be read."""
        if isinstance(value, str):
            return 1 + len(value) // CHARACTERS
        if not isinstance(value, dict | list):
            return 1
        known = self._weights.get(id(value))
        if known is not None:
            return known[0]
        self._charge(1)  # for the counting itself
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
