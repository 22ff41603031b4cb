"""A command that ends with whoever started it: `python -m observatory.cli.child_of_stdin serve …`.

Its starter holds the other end of stdin. When that is let go, be it by `kill -9`, which lets nobody say
goodbye, this process stops as it does on SIGTERM: nothing is left behind that holds a port and a folder.
"""

from __future__ import annotations

import os
import signal
import threading

from observatory.cli import main


def _until_let_go() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=_until_let_go, daemon=True).start()
    main()
