"""Every broken promise has one root here.

Bad input is a value (faults with paths), never an exception. What is raised is listed below, is
mapped to an answer in one place (`http/app.py` for HTTP, `cli/` for the terminal) and carries a
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


class NeedsLock(ObservatoryError):
    """This batch must know what can be known only under the tenant's lock; it is run again there."""


class QueueFull(ObservatoryError):
    """The bounded queue is full: answered 429 with `Retry-After`."""

    reason = "queue_full"

    def __init__(
        self, retry_after_s: int = 1, detail: str = "the gateway's queue is full; send again later"
    ) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s


class OnlyViolations(QueueFull):
    """The last lines of this key were all violations: nothing of it is read for a while (S1162)."""

    reason = "only_violations"


class GatewayStopped(ObservatoryError):
    """The gateway is stopping and takes nothing more: answered 503."""
