"""The agents of the demo: five teams of twelve in five regions, and for large meshes a crowd of more teams.

Law: the cast is the same for the same number, a smaller one is a prefix of a larger one, and names never
change: guides, tests and screenshots use `researcher-beta-3`. Ordered so that a small cast shows most
features.
"""

from typing import NamedTuple

REGIONS = ("aws-eu-central-1", "aws-us-east-1", "gcp-asia-southeast1", "azure-westeurope", "onprem-zrh")
CLUSTERS = (
    "aws-eu-central-1-mesh-04",
    "aws-us-east-1-mesh-01",
    "gcp-asia-southeast1-mesh-02",
    "azure-westeurope-mesh-03",
    "onprem-zrh",
)
TEAMS = ("alpha", "beta", "gamma", "delta", "epsilon")
MORE_TEAMS = (
    "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu", "xi", "omicron", "pi", "rho", "sigma",
    "tau", "upsilon", "phi", "chi", "psi", "omega",
)  # fmt: skip
DIRECTOR = "director"  # the planner of team epsilon: what is injected there starts an incident by name
DIRECTOR_SESSION = "atlas-director"


class AgentKind(NamedTuple):
    """What agents of one type have in common."""

    agent_type: str
    name: str
    version: str
    model: str
    provider: str
    price: float  # dollars a thousand tokens


PLANNER = AgentKind("planner", "planner", "2.4.0", "claude-opus-4-5", "anthropic", 0.015)
RESEARCHER = AgentKind("web_researcher", "researcher", "v2.1.0-stable", "gpt-5-mini", "openai", 0.0018)
FILINGS = AgentKind("filings_reader", "filings", "1.8.2", "gemini-2.5-flash", "google", 0.0012)
ANALYST = AgentKind("data_analyst", "analyst", "3.2.1", "claude-sonnet-4-5", "anthropic", 0.006)
CHECKER = AgentKind("fact_checker", "checker", "1.5.0", "mistral-large", "mistral", 0.004)
WRITER = AgentKind("writer", "writer", "4.0.3", "claude-sonnet-4-5", "anthropic", 0.009)
RUNNER = AgentKind("code_runner", "code-runner", "2.9.4", "qwen3-coder", "self-hosted", 0.0006)
PUBLISHER = AgentKind("publisher", "publisher", "1.2.0", "gpt-5-mini", "openai", 0.0018)
KINDS = (PLANNER, RESEARCHER, FILINGS, ANALYST, CHECKER, WRITER, RUNNER, PUBLISHER)
_TEAM = (
    PLANNER, RESEARCHER, ANALYST, WRITER, PUBLISHER, RUNNER, CHECKER, FILINGS,
    RESEARCHER, RESEARCHER, ANALYST, FILINGS,
)  # fmt: skip
NAMED = len(_TEAM) * len(TEAMS)


class Role(NamedTuple):
    """One simulated agent."""

    agent_id: str
    kind: AgentKind
    team: str
    cluster: str
    is_named: bool
    """Part of the story, with a channel; the others only send."""


def cast(agents: int) -> list[Role]:
    """The first `agents` roles: the five teams in turns, then the crowd team by team."""
    roles: list[Role] = []
    counts: dict[tuple[str, str], int] = {}
    for n in range(agents):
        is_named = n < NAMED
        if is_named:
            team_no, kind = n % len(TEAMS), _TEAM[n // len(TEAMS)]
            team, cluster = TEAMS[team_no], CLUSTERS[team_no]
        else:
            team_no, place = divmod(n - NAMED, len(_TEAM))
            kind = _TEAM[place]
            team = MORE_TEAMS[team_no % len(MORE_TEAMS)] + ("" if team_no < len(MORE_TEAMS) else f"{team_no}")
            cluster = _crowd_cluster(team_no)
        number = counts[team, kind.name] = counts.get((team, kind.name), 0) + 1
        agent_id = f"{kind.name}-{team}-{number}"
        if (team, kind) == ("epsilon", PLANNER):
            agent_id = DIRECTOR
        roles.append(Role(agent_id, kind, team, cluster, is_named))
    return roles


def _crowd_cluster(team_no: int) -> str:
    """More clusters next to those of the story, about a hundred agents each."""
    region = REGIONS[team_no % len(REGIONS)]
    return f"{region}-mesh-{10 + team_no // len(REGIONS) % 2}"
