"""A pull request on GitHub reaches an agent of the cluster `code-reviewer`.

Start a gateway with `observatory serve`, then run `python examples/github_pull_request/run.py`. An admin
opens a hook, a reviewer listens, and this script plays GitHub: it sends `pull_request.json`, signed as GitHub
signs.
"""

import hashlib
import hmac
import json
import os
import uuid
from pathlib import Path
from typing import Any

import httpx2

from observatory import Agent

HERE = Path(__file__).parent
FOLDER = Path(os.environ.get("OBSERVATORY_DATA", "~/.observatory")).expanduser()


def open_hook(admin: httpx2.Client) -> dict[str, Any]:
    """The answer tells the URL and, this once, the secret: both are entered at GitHub."""
    mapping = json.loads((HERE / "mapping.json").read_text())
    wanted = {"name": f"pull requests {uuid.uuid4()}", "scheme": "github", "mapping": mapping}
    hook: dict[str, Any] = admin.post("/v1/webhooks/in", json=wanted).raise_for_status().json()
    return hook


def github_sends(hook: dict[str, Any]) -> dict[str, Any]:
    """What GitHub does when somebody opens a pull request."""
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
    known = json.loads((FOLDER / "credentials.json").read_text())
    key = {"Authorization": f"Bearer {known['admin_key']}"}
    with (
        httpx2.Client(base_url=known["url"], headers=key, timeout=30, trust_env=False) as admin,
        Agent("atlas-reviewer", agent_type="code_reviewer", cluster="code-reviewer") as reviewer,
    ):
        reviewer.register()
        hook = open_hook(admin)
        print(f"admin     opened {hook['name'][:13]} for the cluster code-reviewer")
        told = github_sends(hook)
        for message in reviewer.incoming(timeout=20):
            print(f"reviewer  is asked: {message.intent} ({message.payload['title']})")
            with reviewer.session(continues=message) as session:
                session.step(
                    "Read the change", tool_call="read_diff", tool_input={"url": message.payload["url"]}
                )
                done = session.step("Approve: the retry is bounded", terminal=True)
            is_one = done.answer(timeout=10).session_id == told["session_id"]
            print(f"reviewer  has answered in the session of the pull request: {is_one}")
            break
        (call,) = admin.get("/v1/webhooks/in/calls", params={"hook_id": hook["hook_id"]}).json()["items"]
        print(f"log       signature {call['signature']}, outcome {call['outcome']}")
        admin.delete(f"/v1/webhooks/in/{hook['hook_id']}").raise_for_status()


if __name__ == "__main__":
    main()
