"""A pull request on GitHub reaches an agent of the cluster `code-reviewer`.

Start a gateway with `observatory serve`, then run `python examples/github_pull_request/run.py`. An admin
opens a hook at the terminal, a reviewer listens, and this script plays GitHub: it sends `pull_request.json`,
signed as GitHub signs. The agent's process never holds the admin's key: only the terminal reads it.
"""

import hashlib
import hmac
import json
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import httpx2

from observatory import Agent

HERE = Path(__file__).parent


def admin(*words: str) -> Any:
    """Run a CLI command; returns its JSON output."""
    command = [sys.executable, "-m", "observatory.cli", "hooks", *words, "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def open_hook() -> dict[str, Any]:
    """The response contains the URL and, only this once, the secret: enter both at GitHub."""
    name, mapping = f"pull requests {uuid.uuid4()}", str(HERE / "mapping.json")
    return dict(admin("add", name, "--scheme", "github", "--mapping", mapping))


def github_sends(hook: dict[str, Any]) -> dict[str, Any]:
    """What GitHub sends when a pull request is opened."""
    body = json.loads((HERE / "pull_request.json").read_text())
    raw = json.dumps(body).encode()
    headers = {
        "X-GitHub-Event": "pull_request",
        "X-GitHub-Delivery": str(uuid.uuid4()),
        "X-Hub-Signature-256": "sha256=" + hmac.new(hook["secret"].encode(), raw, hashlib.sha256).hexdigest(),
    }
    answer = httpx2.post(hook["url"], content=raw, headers=headers, trust_env=False)
    print(f"github    is answered {answer.status_code} {answer.json()['outcome']}")
    return dict(answer.raise_for_status().json())


def main() -> None:
    with Agent("atlas-reviewer", agent_type="code_reviewer", cluster="code-reviewer") as reviewer:
        reviewer.register()
        hook = open_hook()
        print(f"admin     opened {hook['name'][:13]} for the cluster code-reviewer")
        delivery = github_sends(hook)
        for message in reviewer.incoming(timeout=20):
            print(f"reviewer  is asked: {message.intent} ({message.payload['title']})")
            with reviewer.session(continues=message) as session:
                session.step(
                    "Read the change", tool_call="read_diff", tool_input={"url": message.payload["url"]}
                )
                done = session.step("Approve: the retry is bounded", terminal=True)
            is_one = done.answer(timeout=10).session_id == delivery["session_id"]
            print(f"reviewer  has answered in the session of the pull request: {is_one}")
            break
        (call,) = admin("calls", hook["hook_id"])
        print(f"log       signature {call['signature']}, outcome {call['outcome']}")
        admin("remove", hook["hook_id"], "--yes")


if __name__ == "__main__":
    main()
