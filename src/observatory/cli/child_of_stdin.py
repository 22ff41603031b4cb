"""A command that ends with the process that started it: `python -m observatory.cli.child_of_stdin serve …`.

The parent holds the other end of stdin. When it is closed, even by `kill -9` of the parent, this process
stops as it does on SIGTERM: nothing is left behind that holds a port and a folder.
"""

from __future__ import annotations

import os
import signal
import threading

from observatory.cli import main


def _stop_when_stdin_ends() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=_stop_when_stdin_ends, daemon=True).start()
    main()
