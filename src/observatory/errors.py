"""Every broken promise has one root here.

Bad input is a value (faults with paths), never an exception. What is raised is listed below, is
mapped to an answer in one place (`api/app.py` for HTTP, `cli/` for the terminal) and carries a
sentence a person can act on. No secret and no payload text ever goes into a message.
"""


class ObservatoryError(Exception):
    """Root of all errors of this system."""


class StartupError(ObservatoryError):
    """The process cannot start; the sentence says what to do."""


class StoreError(ObservatoryError):
    """The store could not keep a promise."""


class NotDurable(StoreError):
    """Nothing can be made durable now (disk full, database away): answered 503, never acknowledged."""


class StatementFailed(StoreError):
    """One statement of a batch was refused by the database; the batch is run again in halves."""


class QueueFull(ObservatoryError):
    """The bounded queue is full: answered 429 with `Retry-After`."""

    def __init__(self, retry_after_s: int = 1) -> None:
        super().__init__("the gateway's queue is full; send again later")
        self.retry_after_s = retry_after_s


class GatewayStopped(ObservatoryError):
    """The gateway is stopping and takes nothing more: answered 503."""
