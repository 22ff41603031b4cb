"""Attribute names of other telemetry conventions: OpenTelemetry's GenAI (current and old), OpenInference,
OpenLLMetry, Claude Code. Data only; used by `spans.py`.

Where several names mean the same, the first present counts. Every name the mapping reads is here; any other
attribute is unmapped, and counted by its name.
"""

from __future__ import annotations

from typing import Final, Literal

Kind = Literal["model", "tool", "agent", "link"]

OPERATIONS: Final[dict[str, Kind]] = {
    "chat": "model",
    "text_completion": "model",
    "generate_content": "model",
    "embeddings": "model",
    "execute_tool": "tool",
    "retrieval": "tool",
    "search_memory": "tool",
    "update_memory": "tool",
    "invoke_agent": "agent",
    "create_agent": "agent",
    "invoke_workflow": "agent",
    "plan": "link",
}
OPENINFERENCE: Final[dict[str, Kind]] = {
    "LLM": "model",
    "EMBEDDING": "model",
    "RERANKER": "model",
    "TOOL": "tool",
    "RETRIEVER": "tool",
    "AGENT": "agent",
    "CHAIN": "link",
    "GUARDRAIL": "link",
    "EVALUATOR": "link",
    "PROMPT": "link",
}
TRACELOOP: Final[dict[str, Kind]] = {"workflow": "agent", "agent": "agent", "task": "link", "tool": "tool"}
CLAUDE_CODE: Final = "claude_code."
CLAUDE_SPANS: Final[dict[str, Kind]] = {
    "claude_code.interaction": "agent",
    "claude_code.llm_request": "model",
    "claude_code.tool": "tool",
}
# Inside a tool's span: waiting for a person, running. They add nothing to the tool's own span.
CLAUDE_INNER: Final = ("claude_code.tool.", "claude_code.hook")

AGENT: Final = (
    "gen_ai.agent.name",
    "agent.name",
    "agent_name",
    "gen_ai.agent.id",
    "agent_id",
)
AGENT_TYPE: Final = "observatory.agent_type"
AGENT_VERSION: Final = ("gen_ai.agent.version", "app.version")
SESSION: Final = ("gen_ai.conversation.id", "session.id", "traceloop.association.properties.session_id")
MODEL: Final = (
    "gen_ai.response.model",
    "gen_ai.request.model",
    "llm.model_name",
    "embedding.model_name",
    "reranker.model_name",
    "llm.request.model",
    "model",
)
PROVIDER: Final = ("gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system")
TOOL: Final = (
    "gen_ai.tool.name",
    "tool.name",
    "tool_name",
    "traceloop.entity.name",
    "gen_ai.data_source.id",  # the source a retrieval queries
)
TOOL_INPUT: Final = (
    "gen_ai.tool.call.arguments",
    "tool.parameters",
    "tool_parameters",
    "tool_input",
    "traceloop.entity.input",
    "input.value",
)
TOOL_OUTPUT: Final = ("gen_ai.tool.call.result", "tool_output", "traceloop.entity.output", "output.value")
ANSWER: Final = ("gen_ai.output.messages", "output.value", "traceloop.entity.output", "gen_ai.completion")
QUESTION: Final = (
    "gen_ai.input.messages",
    "input.value",
    "user_prompt",
    "prompt",
    "traceloop.entity.input",
    "gen_ai.prompt",
)
TOKENS_IN: Final = (
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.prompt_tokens",
    "llm.token_count.prompt",
    "input_tokens",
)
TOKENS_OUT: Final = (
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
    "llm.token_count.completion",
    "output_tokens",
)
TOKENS_ALL: Final = ("gen_ai.usage.total_tokens", "llm.usage.total_tokens", "llm.token_count.total")
# Claude Code counts tokens from its cache separately from its input; the others include them.
TOKENS_CACHED: Final = ("cache_read_tokens", "cache_creation_tokens")
COST: Final = ("gen_ai.usage.cost", "llm.cost.total", "cost_usd")
FAILURE: Final = ("error.type", "error", "error.message", "exception.message")
CLUSTER: Final = ("observatory.cluster_id", "k8s.cluster.name", "cloud.region", "deployment.environment.name")
REGION: Final = "cloud.region"
CLOUD: Final = "cloud.provider"

READ: Final = frozenset(
    (
        "gen_ai.operation.name",
        "openinference.span.kind",
        "traceloop.span.kind",
        "success",
        "duration_ms",
        "gen_ai.agent.description",
        AGENT_TYPE,
        "event.name",
        "event.timestamp",
        "event.sequence",
        "prompt.id",
        "decision",
        "source",
        "tool_use_id",
        "gen_ai.tool.call.id",
        *AGENT,
        *AGENT_VERSION,
        *SESSION,
        *MODEL,
        *PROVIDER,
        *TOOL,
        *TOOL_INPUT,
        *TOOL_OUTPUT,
        *ANSWER,
        *QUESTION,
        *TOKENS_IN,
        *TOKENS_OUT,
        *TOKENS_ALL,
        *TOKENS_CACHED,
        *COST,
        *FAILURE,
        *CLUSTER,
    )
)
