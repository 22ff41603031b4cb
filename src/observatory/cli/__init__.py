"""The `observatory` command: everything an operator does from a terminal.

This file imports next to nothing: a verifying worker process starts here too and must be ready at once.
A failure is one sentence on stderr with exit code 1; a traceback is a defect.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from observatory.errors import ObservatoryError

if TYPE_CHECKING:
    from observatory.cli.commands import app

__all__ = ["app", "main"]


def __getattr__(name: str) -> Any:
    if name == "app":
        from observatory.cli import commands

        return commands.app
    raise AttributeError(f"module 'observatory.cli' has no attribute {name!r}")


def main() -> None:
    if sys.argv[1:2] == ["hook"] and not {"--help", "-h"} & {*sys.argv}:
        # A process for every hook of Claude Code: it has no time for the parser of all other commands.
        from observatory.sdk.integrations import claude_code

        sys.exit(claude_code.main(sys.argv[2:]))
    from cyclopts import CycloptsError

    from observatory.cli.commands import CONTROL, app

    os.umask(0o077)  # exports and data folders are readable by their owner only
    try:
        app(exit_on_error=False, print_error=False)
    except CycloptsError as error:
        from observatory.cli.usage_errors import usage_error_text

        print(f"observatory: {usage_error_text(error)}", file=sys.stderr)
        # Elsewhere 2 has another meaning: `verify` returns it for a broken trail.
        sys.exit(2 if CONTROL.keys() & sys.argv[1:2] else 1)
    except ObservatoryError as error:
        from observatory.protocol.visible import visible

        print(visible(f"observatory: {error}"), file=sys.stderr)
        sys.exit(getattr(error, "exit_code", 1))
    except ModuleNotFoundError as error:
        if error.name != "asyncpg":
            raise
        from observatory.store.migrations.migrate import NO_DRIVER

        print(f"observatory: {NO_DRIVER}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # the reader closed the pipe; Python would complain again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:  # a file or folder that cannot be used, or a disk that is full
        from observatory.protocol.visible import visible

        place = f"{error.filename}: " if error.filename else ""
        print(visible(f"observatory: {place}{error.strerror or type(error).__name__}"), file=sys.stderr)
        sys.exit(1)
