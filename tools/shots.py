"""`make shots`: the pictures of docs/windows, taken from the running demo in a real Chromium.

Every view and panel at 1440×900 dark and light and at 390×844, as WebP by the browser itself, each at most
120 kB. What to show is asked of the gateway: an agent that loops, a gate that waits, a fact that spread; so
the pictures are of the story, whatever its ids are this time. `--data` names a demo that runs already.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
from playwright.sync_api import Browser, Page, sync_playwright

from tools import chromium, windows

OUT = windows.ROOT / "docs/windows"
LARGEST = 120_000
READY_S, STORY_S = 120, 300
WANTED = ("loop", "gate", "fact", "pair", "session")
LOOKS: dict[str, dict[str, Any]] = {
    "dark": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "dark"},
    "light": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "light"},
    "phone": {
        "viewport": {"width": 390, "height": 844},
        "color_scheme": "dark",
        "is_mobile": True,
        "has_touch": True,
    },
}
EVERYWHERE = ("dark", "light", "phone")
Act = Callable[[Page], None]


@dataclass(frozen=True)
class Shot:
    name: str
    path: str
    looks: tuple[str, ...] = EVERYWHERE
    act: Act | None = None


class Door:
    """The demo's gateway, asked as its operator."""

    def __init__(self, folder: Path) -> None:
        found = json.loads((folder / "credentials.json").read_text("utf-8"))
        self.url = found["url"]
        headers = {"authorization": f"Bearer {found['operator_key']}"}
        self._http = httpx2.Client(base_url=self.url, headers=headers, timeout=60, trust_env=False)

    def ask(self, path: str, **query: Any) -> Any:
        answer = self._http.get(path, params=query)
        answer.raise_for_status()
        return answer.json()

    def link(self) -> str:
        made: str = self._http.post("/v1/logins", json={}).json()["url"]
        return made


def story(door: Door) -> dict[str, str]:
    """Where each incident is to be seen, once it is; what has not happened in time is left out."""
    found: dict[str, str] = {}
    deadline = time.monotonic() + STORY_S
    while len(found) < len(WANTED) and time.monotonic() < deadline:
        for alert in door.ask("/v1/alerts", limit=100)["items"]:
            if alert["kind"] in ("loop", "entropy") and alert["session_id"]:
                found.setdefault("loop", f"{alert['session_id']}?step={alert['sequence_number']}")
        for item in door.ask("/v1/waiting", limit=100)["items"]:
            if item["kind"] == "gate" and item["message_id"]:
                found.setdefault("gate", item["message_id"])
        spread = [one for one in door.ask("/v1/facts", limit=200)["items"] if one["uses"] >= 3]
        if spread:
            fact = max(spread, key=lambda one: int(one["uses"]))
            found.setdefault("fact", f"{fact['session_id']}?fact={fact['fact_id']}&colour=infection")
        ended = [one for one in door.ask("/v1/sessions", limit=200)["items"] if one["messages"] >= 25]
        if len(ended) >= 2:
            found.setdefault("pair", f"left={ended[0]['session_id']}&right={ended[1]['session_id']}")
            found.setdefault("session", ended[0]["session_id"])
        time.sleep(2)
    return found


def _first_row(page: Page) -> None:
    page.locator("tr[data-index='0']").click()
    page.wait_for_timeout(2_000)


def shots(found: dict[str, str]) -> list[Shot]:
    session, desk = found.get("session", ""), ("dark", "light")
    return [
        Shot("fleet", "/fleet"),
        Shot("fleet-geographic", "/fleet?layer=geographic", desk),
        Shot("fleet-agents", "/fleet?level=agent&by=cluster", ("dark",)),
        Shot("fleet-list", "/fleet?list=1"),
        Shot("fleet-agent", "/fleet?peek=agent:researcher-beta-3"),
        Shot("sessions", "/sessions"),
        Shot("session-loop", f"/sessions/{found.get('loop', session)}"),
        Shot("session-infection", f"/sessions/{found.get('fact', session)}", desk),
        Shot("session-cost", f"/sessions/{session}?colour=cost", desk),
        Shot("compare", f"/compare?{found.get('pair', '')}"),
        Shot("inbox", f"/inbox?item=gate:{quote(found.get('gate', ''))}"),
        Shot("palette", "/fleet", desk, lambda page: page.keyboard.press("Control+k")),
        Shot("keys", "/fleet", desk, lambda page: page.keyboard.press("?")),
        Shot("registry", "/registry?type=web_researcher"),
        Shot("registry-agent", "/registry/researcher-beta-3", desk),
        Shot("scheduler", "/scheduler"),
        Shot("scheduler-heartbeats", "/scheduler?board=heartbeats", ("dark",)),
        Shot("forensics", "/forensics"),
        Shot("forensics-fact", "/forensics/infections", desk, _first_row),
        Shot("forensics-costs", "/forensics/costs?by=branch", ("dark",)),
        Shot("forensics-trail", "/forensics/trail", desk, _first_row),
        Shot("forensics-log", "/forensics/log", ("dark",)),
        Shot("forensics-webhooks", "/forensics/webhooks", ("dark",)),
        Shot("forensics-policies", "/forensics/policies", ("dark",)),
        Shot("god-mode", "/god-mode"),
        Shot("settings", "/settings", ("dark",)),
    ]


def take(browser: Browser, door: Door, wanted: list[Shot], out: Path) -> Iterator[tuple[str, int]]:
    for look, how in LOOKS.items():
        context = browser.new_context(reduced_motion="reduce", **how)
        context.add_init_script(
            "localStorage.setItem('observatory:tour', 'seen');"
            f"localStorage.setItem('mantine-color-scheme-value', '{how['color_scheme']}')"
        )
        page = context.new_page()
        page.goto(door.link())
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_selector("nav")
        for shot in wanted:
            if look in shot.looks:
                page.goto(door.url + shot.path)
                page.wait_for_selector("#view > *")
                page.wait_for_timeout(2_500)  # charts and layout come to rest; a picture, not a test
                if shot.act is not None:
                    shot.act(page)
                    page.wait_for_timeout(600)
                yield f"{shot.name}-{look}", _save(page, out / f"{shot.name}-{look}.webp")
        context.close()


def _save(page: Page, path: Path) -> int:
    """As good as fits."""
    session = page.context.new_cdp_session(page)
    for quality in (86, 78, 70, 60, 50):
        told = session.send("Page.captureScreenshot", {"format": "webp", "quality": quality})
        picture = base64.b64decode(told["data"])
        if len(picture) <= LARGEST:
            break
    path.write_bytes(picture)
    return len(picture)


@contextmanager
def demo(data: Path | None) -> Iterator[Path]:
    if data is not None:
        yield data
        return
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "demo"
        words = ["demo", "--data", str(folder), "--port", "0", "--pace", "3"]
        running = subprocess.Popen(
            [sys.executable, "-m", "observatory.cli", *words],
            stdout=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
        )
        try:
            deadline = time.monotonic() + READY_S
            while not (folder / "credentials.json").exists():
                if running.poll() is not None or time.monotonic() > deadline:
                    raise windows.Failed("the demo did not start")
                time.sleep(0.2)
            yield folder
        finally:
            running.terminate()
            running.wait()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.shots", description="pictures of the windows")
    parser.add_argument("--data", type=Path, help="folder of a demo that runs already")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--only", action="append", help="names of shots")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    chosen = chromium.find()
    with demo(asked.data) as folder, sync_playwright() as playwright:
        door = Door(folder)
        found = story(door)
        browser = playwright.chromium.launch(
            executable_path=chosen.path,
            args=list(chosen.arguments),
            env={**os.environ, **chosen.environment},
        )
        wanted = [one for one in shots(found) if not asked.only or one.name in asked.only]
        for name, size in take(browser, door, wanted, asked.out):
            print(f"{name}.webp {size / 1000:.0f} kB", flush=True)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
