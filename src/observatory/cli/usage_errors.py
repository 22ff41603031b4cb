"""Messages for invalid command lines: what is missing, and the usage."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, Literal, get_args, get_origin, get_type_hints

from cyclopts import CycloptsError, MissingArgumentError


def usage_error_text(error: CycloptsError) -> str:
    """One sentence: for a missing argument its name and the usage, else the parser's message."""
    command, argument = error.target, error.argument
    # An option without its value is a different error.
    is_left_out = isinstance(error, MissingArgumentError) and error.keyword is None
    if is_left_out and command is not None and argument is not None and argument.required:
        field = argument.field_info
        name = f"--{field.name}" if field.is_keyword_only else _name(str(field.name))
        words = ["observatory", *(error.command_chain or ()), *_usage(command)]
        return f"{name} is missing: {' '.join(words)}"
    message = " ".join(str(error).split())
    return f"{message} See `observatory --help`."


def _usage(command: Callable[..., Any]) -> Iterator[str]:
    """The arguments in order, then the options that must be given."""
    hints = get_type_hints(command)
    for one in inspect.signature(command).parameters.values():
        choices = get_args(hints[one.name]) if get_origin(hints[one.name]) is Literal else ()
        name = "|".join(choices) or _name(one.name)
        if one.kind is one.VAR_POSITIONAL:
            yield f"{name}…"
        elif one.kind is one.KEYWORD_ONLY:
            if one.default is one.empty:
                yield f"--{one.name.strip('_').replace('_', '-')} {name}"
        else:
            yield name if one.default is one.empty else f"[{name}]"


def _name(parameter: str) -> str:
    return parameter.strip("_").upper()
