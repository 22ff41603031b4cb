"""Fixtures of the browser tests: real Chromium, a real gateway, the demo's mesh.

One browser serves all tests of a worker; each test gets a context of its own, so nothing of a page outlives
it. Tests of what a live mesh looks like take `atlas`, one for all workers and begun last because it burns as
long as it lives; those that bring their own agents take `house`, those that kill their gateway `alone`. A
test fails if its pages did anything wrong, also when it passed otherwise.
"""

from __future__ import annotations

import fcntl
import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import httpx2
import pytest
from playwright.sync_api import Browser, sync_playwright

from observatory.http.web_ui import FOLDER
from tests.flows.fleet import say
from tests.flows.server import Server
from tests.waiting import until
from tests.windows.looking import DESK, PHONE, Window
from tests.windows.staff import Story
from tools import chromium

Open = Callable[..., Window]
LONGEST_S = 600.0
# Not the first visit: no tour. What the page itself stores later is left alone.
BEGUN = """
// An empty or broken-off document has no storage, and none of our page either.
if (location.protocol.startsWith("http") && !localStorage.getItem("observatory:tour")) {
  localStorage.setItem("observatory:tour", "seen");
  localStorage.setItem("mantine-color-scheme-value", "%s");
}
"""


class Atlas(Server):
    """The demo as `observatory demo` starts it, mesh and gateway, with its story at a faster pace."""

    verb = "demo"

    def start(self) -> Atlas:
        """`ATLAS=folder` names a demo that is already running, for faster test development."""
        visited = os.environ.get("ATLAS")
        if visited is None:
            super().start()
        else:
            self.visit(Path(visited))
        return self

    def visit(self, folder: Path) -> None:
        """One that runs already."""
        self.folder = folder
        self.url = self.credentials["url"]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    assert (FOLDER / "index.html").is_file(), "the windows are not built: run `make windows`"
    found = chromium.find()
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=found.path,
            args=list(found.arguments),
            env={**os.environ, **found.environment},
        )
        yield launched
        launched.close()


@pytest.fixture
def posix(browser: Browser) -> Iterator[Browser]:
    """A browser on a machine without a locale: its language is not a valid tag."""
    found = chromium.find()
    launched = browser.browser_type.launch(
        executable_path=found.path,
        args=list(found.arguments),
        env={**os.environ, **found.environment, "LANG": "C", "LC_ALL": "C", "LANGUAGE": ""},
    )
    yield launched
    launched.close()


@pytest.fixture(scope="session")
def atlas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Atlas]:
    """The worker that needs it first starts it, and waits at its end for those that use it too."""
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "atlas"
    shared.mkdir(exist_ok=True)
    begun = shared / "begun"
    running = Atlas(shared / uuid.uuid4().hex, "--seed", "7", "--pace", "4")
    with (shared / "turn").open("w") as turn, (shared / "users").open("w") as users:
        fcntl.flock(turn, fcntl.LOCK_EX)
        is_ours = not begun.exists()
        if is_ours:
            running.start()
            begun.write_text(str(running.folder))
        else:
            running.visit(Path(begun.read_text()))
        fcntl.flock(users, fcntl.LOCK_SH)
        fcntl.flock(turn, fcntl.LOCK_UN)
        yield running
        fcntl.flock(users, fcntl.LOCK_UN)
        if is_ours:
            until(lambda: _is_left(turn, users), LONGEST_S)
            begun.unlink()  # who comes later starts another
        running.stop()


def _is_left(turn: IO[str], users: IO[str]) -> bool:
    """True if no worker uses it any more; the lock keeps new ones out."""
    fcntl.flock(turn, fcntl.LOCK_EX)
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        fcntl.flock(turn, fcntl.LOCK_UN)
        return False
    return True


@pytest.fixture(scope="session")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A gateway used by the tests only, each with its own agents and sessions.

    It has one prepared session, and five agents of type writer.
    """
    with Server(tmp_path_factory.mktemp("house") / "data") as running:
        Story(running)
        for cluster in ("alpha", "beta", "gamma", "delta", "epsilon"):
            say(running, f"writer-{cluster}-1", kind="writer", cluster=cluster)
        yield running


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Server]:
    """An empty gateway that belongs to one test, to be stopped and killed."""
    with Server(tmp_path / "data") as running:
        yield running


def cookie_of(server: Server, role: str = "admin") -> dict[str, Any]:
    """The cookie after following a login link; roles without a key get a new user."""
    who, asked = role, {}
    if role not in ("admin", "operator"):
        person = {"name": f"{role}-{uuid.uuid4().hex[:6]}", "role": role}
        made = server.http("admin").post("/v1/users", json=person).json()
        who, asked = "admin", {"user_id": made["user_id"]}
    link = server.http(who).post("/v1/logins", json=asked).json()["url"]
    name, value = (
        httpx2.post(link, trust_env=False, verify=server.verify)
        .headers["set-cookie"]
        .partition(";")[0]
        .split("=", 1)
    )
    return {"name": name, "value": value, "url": server.url}


@pytest.fixture
def opened(browser: Browser) -> Iterator[Open]:
    """A window on a page, signed in as `role`: `opened(server, "/fleet", phone=True, light=True)`."""
    windows: list[Window] = []
    contexts = []

    def open_one(
        server: Server,
        path: str | None = "/fleet",
        *,
        role: str | None = "operator",
        phone: bool = False,
        light: bool = False,
        calm: bool = True,
        using: Browser | None = None,
    ) -> Window:
        context = (using or browser).new_context(
            viewport=PHONE if phone else DESK,  # type: ignore[arg-type]
            is_mobile=phone,
            has_touch=phone,
            color_scheme="light" if light else "dark",
            reduced_motion="reduce" if calm else "no-preference",
        )
        contexts.append(context)
        context.add_init_script(BEGUN % ("light" if light else "dark"))
        if role is not None:
            context.add_cookies([cookie_of(server, role)])  # type: ignore[list-item]
        window = Window(context, server.url)
        windows.append(window)
        return window.go(path).settled() if path is not None else window

    yield open_one
    for context in contexts:
        context.close()
    assert [fault for window in windows for fault in window.faults] == []
