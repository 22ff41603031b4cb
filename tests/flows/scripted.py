"""A chat model of LangChain's that says what it was told to, and keeps what it was asked."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

from tests.flows.sdk_harness import Json

USED = {"input_tokens": 5, "output_tokens": 3, "total_tokens": 8}


class Script(BaseChatModel):
    """A model that says its lines in turn and remembers what it was asked."""

    lines: list[AIMessage]
    asked: list[list[str]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "script"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **_: Any
    ) -> ChatResult:
        self.asked.append([str(message.content) for message in messages])
        return ChatResult(generations=[ChatGeneration(message=self.lines.pop(0))])


def calls(*wanted: tuple[str, Json]) -> AIMessage:
    received = [{"name": name, "args": args, "id": f"call_{n}"} for n, (name, args) in enumerate(wanted)]
    return AIMessage("", tool_calls=received, usage_metadata=USED)
