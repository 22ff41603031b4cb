"""Where the TypeScript SDK finds its gateway and its key, and to whom it gives it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.flows.node_agent import NodeAgent, Thrown
from tests.flows.server import Server


def test_the_key_is_found_as_in_python_and_never_sent_to_a_stranger_s922(
    server: Server, tmp_path: Path
) -> None:
    """S922: option, environment, `agent.json`; what is missing is said in a sentence."""
    with NodeAgent(server, "finder-1", tmp_path) as agent:
        given = json.dumps({"data": str(server.folder)})
        assert agent.run(f"const a = new sdk.Agent('found-1', {given}); return await a.close()")
        cases = {
            "{data: '/nowhere'}": "No gateway found: OBSERVATORY_URL and OBSERVATORY_KEY are not set",
            "{data: '/nowhere', url: 'http://127.0.0.1:1'}": "No key for http://127.0.0.1:1",
            "{data: '/nowhere', key: 'obs_x'}": "A key but no gateway",
            f"{{data: '{server.folder}', url: 'http://other.example'}}": "No key for http://other.example",
            "{url: 'ftp://x', key: 'obs_x'}": "is not a gateway's address",
            "{url: 'http://me:secret@x', key: 'obs_x'}": "must not contain a user or a password",
        }
        for options, sentence in cases.items():
            with pytest.raises(Thrown, match="NotConfigured") as received:
                agent.run(f"new sdk.Agent('lost-1', {options})")
            assert sentence in str(received.value) and "secret" not in str(received.value)
