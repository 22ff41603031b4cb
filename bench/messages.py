"""What the benchmarks send: DecisionLogs of 1,000 to 1,050 bytes with realistic text, prebuilt as bytes.

Every message has a fresh UUID as its step, names its session and its parent (the step before it in that
session). Bodies are joined from templates, so that building one costs the client about 2 µs.
"""

from __future__ import annotations

import json
import os
import random
from datetime import UTC, datetime

SIZE = (1_000, 1_050)
AGENTS = 40
_MARKS = ("@TRACE@", "@PARENT@", "@STEP@", "@SESSION@", "@TIME@")
_TOPICS = (
    ("Verify quarterly revenue for NVDA", "serp_search", "NVDA 10-K revenue 2023", "10-K; revenue $26.97B"),
    ("Summarise overnight incident reports", "read_tickets", "severity high, last 12 h", "4 tickets, 1 open"),
    ("Draft the answer to the customer", "compose_mail", "refund for order 88-1204", "Draft of 140 words"),
    ("Find flaky tests of the last week", "query_ci", "status flaky, branch main", "7 tests in 3 suites"),
    ("Check the licence of new packages", "scan_licences", "requirements.lock", "212 packages, none GPL"),
    ("Plan the migration of the archive", "estimate_rows", "table audit_log", "1.2 M rows, 4 minutes"),
)
_THOUGHTS = (
    "Initial search returned conflicting dates for fiscal year end.",
    "Cross-referencing primary filings to resolve the conflict.",
    "Prioritising the primary source over news aggregators.",
    "The cache is older than the limit given, so it is read anew.",
    "Two tools could do this; the cheaper one suffices here.",
    "No approval is needed below the limit of the policy.",
    "The earlier answer stays valid unless the totals differ.",
    "A second reader should look at the table before it is sent.",
)
Template = list[bytes]


def _template(rng: random.Random, agent: int) -> Template:
    intent, tool, query, found = rng.choice(_TOPICS)
    body = {
        "meta": {
            "trace_id": "@TRACE@",
            "parent_step_id": "@PARENT@",
            "step_id": "@STEP@",
            "session_id": "@SESSION@",
            "timestamp": "@TIME@",
            "cluster_id": f"aws-eu-central-1-mesh-{agent % 4:02}",
        },
        "identity": {
            "agent_id": f"researcher-{agent:03}",
            "agent_type": f"web_researcher_{agent % 5}",
            "capability_version": "v2.1.0",
        },
        "cognition": {
            "intent": intent,
            "reasoning_chain": [rng.choice(_THOUGHTS)],
            "confidence_score": round(rng.uniform(0.5, 0.99), 2),
            "strategy_used": "ReAct",
            "entropy_score": 0.8,  # near what is computed: another figure would be reported as a discrepancy
        },
        "action": {
            "tool_call": tool,
            "tool_input": json.dumps({"query": query}),
            "tool_output_summary": found,
            "status": rng.choice(("success", "success", "success", "failure")),
        },
        "state_delta": {
            "added_to_memory": [""],
            "tokens_consumed": rng.randrange(200, 4_000),
            "cumulative_session_cost": round(rng.uniform(0.01, 0.9), 3),
        },
        "control": {"hitl_required": False, "interrupt_signal": None, "is_terminal": False},
    }
    # Four ids of 36 bytes and a time of 27 take the marks' places.
    bare = len(json.dumps(body, separators=(",", ":"))) - sum(map(len, _MARKS)) + 4 * 36 + 27
    fill = rng.randrange(*SIZE) - bare
    if fill < 1:
        raise ValueError(f"a template of {bare} bytes leaves no room")
    words = " ".join(rng.choices(_THOUGHTS, k=8))
    body["state_delta"]["added_to_memory"] = [words[:fill]]  # type: ignore[index]
    text = json.dumps(body, separators=(",", ":")).encode()
    parts = []
    for mark in _MARKS:
        before, _, text = text.partition(mark.encode())
        parts.append(before)
    return [*parts, text]


def uuids(count: int) -> list[bytes]:
    """Random UUIDs (version 4) as text, far cheaper than the library's objects."""
    text = os.urandom(16 * count).hex()
    return [
        f"{t[:8]}-{t[8:12]}-4{t[13:16]}-8{t[17:20]}-{t[20:]}".encode()
        for t in (text[i : i + 32] for i in range(0, 32 * count, 32))
    ]


class Mesh:
    """Agents at work in this many sessions; each call continues where the last ended."""

    def __init__(self, sessions: int, seed: int = 1) -> None:
        self._rng = random.Random(seed)
        self._templates = [[_template(self._rng, agent) for _ in range(8)] for agent in range(AGENTS)]
        self.sessions = uuids(sessions)
        self._traces = uuids(sessions)
        self._last = uuids(sessions)

    def logs(self, count: int) -> list[bytes]:
        rng, made = self._rng, []
        time_text = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ").encode()
        total = len(self.sessions)
        for step in uuids(count):
            number = int(rng.random() * total)
            # Two agents to a session.
            kinds = self._templates[(number + (step[0] & 1)) % AGENTS]
            one, two, three, four, five, end = kinds[step[1] & 7]
            where = (one, self._traces[number], two, self._last[number], three, step, four)
            made.append(b"".join((*where, self.sessions[number], five, time_text, end)))
            self._last[number] = step
        return made

    def violations(self, count: int) -> list[bytes]:
        """Each breaks two rules: a status that is none, and a missing agent type."""
        return [
            log.replace(b'"status":"', b'"status":"x').replace(b'"agent_type"', b'"agent_kind"')
            for log in self.logs(count)
        ]
