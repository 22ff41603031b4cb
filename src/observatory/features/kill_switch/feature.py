"""What kill switch registers with the gateway."""

from __future__ import annotations

from functools import partial

from observatory.features.kill_switch import worker as stager
from observatory.features.kill_switch.enforcement import KillSwitchStatus, stopped
from observatory.features.kill_switch.routes import (
    ArmedKillSwitch,
    ConfirmedKillSwitch,
    KillSwitchList,
    ReleasedKillSwitch,
    kill_switch,
)
from observatory.http.app_state import AppState
from observatory.http.feature import Feature
from observatory.runtime.worker_context import PeriodicTask, TenantWatch


async def start(app: AppState) -> None:
    app.due.append(
        PeriodicTask("kill-switch stages", 0.5, partial(stager.release_stage, app, TenantWatch(app.store)))
    )


FEATURE = Feature(
    start=start,
    routes=(
        kill_switch,
        stopped,
    ),
    answers={
        "list_kill_switches": KillSwitchList,
        "get_kill_switch": KillSwitchStatus,
        "arm_kill_switch": ArmedKillSwitch,
        "confirm_kill_switch": ConfirmedKillSwitch,
        "release_kill_switch": ReleasedKillSwitch,
    },
)
