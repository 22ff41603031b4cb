"""The TypeScript SDK in a real Chromium, on a page of another origin than the gateway's."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.flows.sdk_harness import SdkHarness, until
from tests.flows.server import Server
from tools import windows


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def shop() -> Iterator[str]:
    """A third-party site that serves the built SDK and a page; returns its origin."""
    handler = partial(_Quiet, directory=str(windows.build_sdk()))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{site.server_port}"
        site.shutdown()


@pytest.fixture
def harness(shop: str, tmp_path: Path) -> Iterator[SdkHarness]:
    allowed = {"OBSERVATORY_CORS_ORIGINS": shop, "OBSERVATORY_INSIGHT": "false"}
    with Server(tmp_path / "data", environment=allowed) as server:
        yield SdkHarness(server, tmp_path)


OPEN = """async ([name, url, key]) => {
  const sdk = await import("/browser.js");
  window.logged = [];
  const log = (...told) => logged.push(told.join(" "));
  window.agent = new sdk.Agent(name, {url, key, heartbeat_s: null, log});
}"""


def opened(page: Page, shop: str, harness: SdkHarness) -> None:
    page.goto(f"{shop}/browser.d.ts")  # any document of that origin
    page.evaluate(OPEN, [harness.name, harness.server.url, harness.server.key("agent")])


@pytest.mark.req(99, 133)
def test_an_agent_in_a_page_says_waits_asks_and_outlives_its_page_s923(
    browser: Browser, shop: str, harness: SdkHarness
) -> None:
    """S910-S912, S915-S917, S923: step, pause, ask, inject; gateway and page die, nothing is lost."""
    page = browser.new_page()
    asked_for: list[str] = []
    page.on("request", lambda request: asked_for.append(request.url))
    page.on("websocket", lambda socket: asked_for.append(socket.url))
    opened(page, shop, harness)
    session_id = page.evaluate("""async () => {
      const step = await agent.step("works", {tool_call: "look", tool_input: {q: 1}});
      await step.answer({timeout_s: 30});
      return (await agent.listen({timeout_s: 30})) && step.session_id;
    }""")
    harness.do("pause", session_id)
    page.wait_for_function("session => agent.orders.isHeld(session)", arg=session_id)
    page.evaluate(
        "() => { window.after = agent.step('after'); after.then(() => { window.passed = true; }); }"
    )
    assert page.evaluate("window.passed") is None and harness.intents() == ["works"]
    harness.do("inject", session_id, prompt="Use euros")
    page.wait_for_function("agent.orders.hasPrompts")
    harness.do("unpause", session_id)
    assert page.evaluate("after.then((step) => step.answer({timeout_s: 30})).then((told) => told.state)") == (
        "forwarded"
    )
    assert page.evaluate("agent.context([])") == [{"role": "user", "content": "Use euros"}]
    page.evaluate("() => { window.asked = agent.ask('Buy', {tool_call: 'buy', tool_input: {n: 2}}); }")
    held = harness.held()
    harness.do("approve", held["session_id"], message_id=held["message_id"])
    assert page.evaluate("asked.then((ok) => [ok.verdict, ok.tool_input])") == ["approved", {"n": 2}]
    until(lambda: not harness.inbox())

    harness.server.kill()
    page.evaluate("() => { for (let n = 0; n < 20; n++) agent.step(`late ${n}`); }")
    page.wait_for_function("agent.outbox.in_memory === 0")
    page.evaluate("() => { agent.step('last'); }")
    page.reload()  # before it was sent, or even spooled
    harness.server.start()
    opened(page, shop, harness)
    assert page.evaluate("agent.flush({timeout_s: 30})")
    assert harness.intents() == ["works", "after", "Buy", *(f"late {n}" for n in range(20)), "last"]
    assert page.evaluate("agent.close()")
    assert page.evaluate("Object.keys(localStorage)") == []
    key = harness.server.key("agent")
    assert any(url.startswith("ws:") for url in asked_for) and not any(key in url for url in asked_for)
    page.close()
