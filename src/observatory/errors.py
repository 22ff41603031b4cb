"""The exceptions of the gateway, all under one root class.

Bad input is a value (faults with paths), never an exception. Each error below is mapped to a
response in one place (`http/app.py` for HTTP, `cli/` for the terminal) and its message says what
to do. No message contains a secret or payload text.
"""


class ObservatoryError(Exception):
    """Root of all errors of this project."""


class StartupError(ObservatoryError):
    """The process cannot start; the message says what to do."""


class StoreError(ObservatoryError):
    """The store cannot do what its port promises."""


class NotDurable(StoreError):
    """Nothing can be stored durably now (disk full, database unreachable): 503, never acknowledged."""


class StatementFailed(StoreError):
    """The database refused one statement of a batch; the batch is run again in halves."""


class NeedsLock(ObservatoryError):
    """This batch needs data that can only be read under the tenant's lock; it is run again there."""


class QueueFull(ObservatoryError):
    """The bounded queue is full: answered 429 with `Retry-After`."""

    reason = "queue_full"

    def __init__(
        self, retry_after_s: int = 1, detail: str = "the gateway's queue is full; retry later"
    ) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s


class OnlyViolations(QueueFull):
    """The key's most recent lines were all violations: its input is not read for a while (S1162)."""

    reason = "only_violations"


class GatewayStopped(ObservatoryError):
    """The gateway is stopping and accepts nothing more: answered 503."""
