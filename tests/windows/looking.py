"""A browser page as an operator sees it, with short helpers and a watch for page errors.

A page that writes an error to its console, throws, or is answered 4xx or 5xx without the test having said so
fails its test, whatever else the test looked at. Waiting is Playwright's own: on conditions, never on time.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import (
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    Request,
    Response,
    Route,
    expect,
)

from tests.waiting import PATIENCE_S
from tools.windows import UI

AXE = UI / "node_modules/axe-core/axe.min.js"
DESK = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}
VIEWS = {
    "1": "/fleet",
    "2": "/sessions",
    "3": "/registry",
    "4": "/scheduler",
    "5": "/forensics",
    "6": "/god-mode",
}
# Aborted because the page was left or refetched: harmless.
LEFT = ("net::ERR_ABORTED", "NS_BINDING_ABORTED")
PATIENCE_MS = PATIENCE_S * 1000
expect.set_options(timeout=PATIENCE_MS)


class Window:
    """One page. `faults` lists its errors; `forgiving` allows errors a test causes on purpose."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.page: Page = context.new_page()
        self.url = url
        self.faults: list[str] = []
        self._forgiven: list[str] = []
        self.page.set_default_timeout(PATIENCE_MS)
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self._note(f"page error: {error}"))
        self.page.on("requestfailed", self._failed)
        self.page.on("response", self._answered)

    def _said(self, message: ConsoleMessage) -> None:
        # Failed requests are reported by `_answered` and `_failed` with more detail.
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            self._note(f"console: {message.text[:2000]}")

    def _failed(self, request: Request) -> None:
        why = request.failure or ""
        if why not in LEFT:
            self._note(f"request: {request.method} {request.url} {why}")

    def _answered(self, response: Response) -> None:
        if response.status >= 400:
            self._note(f"answer: {response.status} {response.request.method} {response.url}")

    def _note(self, fault: str) -> None:
        if not any(re.search(pattern, fault) for pattern in self._forgiven):
            self.faults.append(fault)

    @contextmanager
    def forgiving(self, *patterns: str) -> Iterator[None]:
        """Allows errors the test itself causes, e.g. a stopped gateway, and no others."""
        self._forgiven.extend(patterns)
        yield
        self.page.wait_for_load_state()
        del self._forgiven[-len(patterns) :]

    def go(self, path: str) -> Window:
        self.page.goto(self.url + path)
        return self

    def settled(self) -> Window:
        """Waits until the frame and the view's chunk are loaded."""
        expect(self.page.get_by_role("navigation", name="Views")).to_be_visible()
        expect(self.page.get_by_role("main")).not_to_be_empty()
        return self

    def press(self, *keys: str) -> Window:
        for key in keys:
            self.page.keyboard.press(key)
        return self

    def at(self, pattern: str) -> None:
        """Waits until the URL, without the host, matches."""
        expect(self.page).to_have_url(re.compile(re.escape(self.url) + pattern))

    def role(self, role: Any, name: str | re.Pattern[str] | None = None, **more: Any) -> Locator:
        return self.page.get_by_role(role, name=name, **more) if name else self.page.get_by_role(role, **more)

    def confirmed(self, does: str, word: str) -> None:
        """Confirms an irreversible action: its button is enabled once the word is typed."""
        asked = self.role("group", does)
        button = asked.get_by_role("button", name=does)
        expect(button).to_be_disabled()
        asked.get_by_label(f"Type {word} to confirm").fill(word)
        button.click()

    def is_accessible(self, **options: Any) -> None:
        """axe finds no serious or critical violation in the page as it is now."""
        found = self._serious(options)
        assert not found, "\n".join(found)

    def _serious(self, options: dict[str, Any]) -> list[str]:
        self.page.evaluate(AXE.read_text("utf-8"))
        found = self.page.evaluate(
            "options => axe.run(document, { resultTypes: ['violations'], ...options })", options
        )
        return [
            f"{one['id']}: {node['target']} {node['failureSummary']}"
            for one in found["violations"]
            if one["impact"] in ("serious", "critical")
            for node in one["nodes"]
        ]

    def shot(self, name: str) -> None:
        """Takes a screenshot, only when `SHOTS` names a folder."""
        folder = os.environ.get("SHOTS")
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=str(Path(folder) / f"{name}.png"))

    def close(self) -> None:
        self.page.close()


class ActFirst:
    """Suspends polling, so that the next command, and not a refetch, discovers the change."""

    def __init__(self) -> None:
        self._has_acted = False

    def __call__(self, one: Route) -> None:
        self._has_acted = self._has_acted or one.request.method != "GET"
        if self._has_acted:
            one.continue_()
        else:
            one.abort("aborted")
