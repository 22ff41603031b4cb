"""LangGraph adapter for custom graphs: every node is a step, with the graph's forks and joins.

    from observatory import Agent
    from observatory.sdk.integrations.langgraph import ObservatoryCallback

    graph = builder.compile()
    watch = ObservatoryCallback(Agent("researcher-1"), graph)
    graph.invoke(state, {"callbacks": [watch], "configurable": {"thread_id": "case-7"}})

    # Tools that ask first, and injected prompts in the node that calls the model:
    ToolNode(tools, wrap_tool_call=watch.wrap_tool_call, awrap_tool_call=watch.awrap_tool_call)
    model.invoke([*state["messages"], *watch.injected()])

Rule: a node waits before it runs while the agent is paused, and is recorded when it has ended, after
everything done in it: model answers, tools, subgraphs. Its parents are the nodes of the previous graph step
with an edge to it, and all nodes a join waited for; otherwise all nodes of that step. The graph is not
changed; its own interrupts pass through, and an interrupted node is recorded once it was resumed and has
ended. Agents of `create_agent` have their own middleware (`langchain`): use that instead of this, not both.
"""

import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from threading import RLock
from typing import Any
from uuid import UUID

from observatory.sdk.errors import Cancelled
from observatory.sdk.integrations import wording
from observatory.sdk.integrations.course import Course, Usage, observing
from observatory.sdk.integrations.framework import need
from observatory.sdk.integrations.langchain_calls import (
    MAX_SUSPENDED,
    GatedTools,
    injected,
    record_answer,
    thread_id,
)
from observatory.sdk.received import Prompt
from observatory.sdk.sender import Sender

need(
    "langgraph",
    "langgraph>=1.2",
    "langgraph.pregel:Pregel.get_graph",
    "langgraph.pregel:Pregel.get_subgraphs",
    "langgraph.errors:GraphBubbleUp",
    *(
        f"langchain_core.callbacks:BaseCallbackHandler.{hook}"
        for hook in ("on_chain_start", "on_chain_end", "on_chain_error")
    ),
    *(
        f"langchain_core.callbacks:BaseCallbackHandler.{hook}"
        for hook in ("on_chat_model_start", "on_llm_start", "on_llm_end", "on_llm_error", "raise_error")
    ),
)

from langchain_core.callbacks import BaseCallbackHandler  # noqa: E402
from langchain_core.messages import HumanMessage  # noqa: E402
from langchain_core.outputs import LLMResult  # noqa: E402
from langgraph.config import get_config  # noqa: E402
from langgraph.errors import GraphBubbleUp  # noqa: E402

NS = "langgraph_checkpoint_ns"


class _Node:
    """One run of a node: where it continues from, and its result."""

    def __init__(self, name: str, namespace: str, step: int, course: Course) -> None:
        self.name = name
        self.namespace = namespace
        self.step = step
        self.course = course
        self.started_ns = time.perf_counter_ns()
        self.followed = False  # a later node continues from it
        self.pending_prompts: list[Prompt] = []  # given to a failed run of this node
        self.delivered_prompts: list[Prompt] = []

    @property
    def tips(self) -> tuple[str, ...]:
        return self.course.line.tips


class _Level:
    """A running graph (outermost, or nested in a node of another) and its ended nodes."""

    def __init__(self, course: Course, edges: "Edges") -> None:
        self.course = course
        self.edges = edges
        self.ended: list[_Node] = []

    def parents(self, name: str, step: int) -> tuple[str, ...]:
        """The parents of a node that begins."""
        before = [node for node in self.ended if node.step == step - 1]
        parents = [node for node in before if name in self.edges.after[node.name]]
        for sources in self.edges.joins[name]:
            if any(node.name in sources for node in before):
                parents += [node for node in self.ended if node.name in sources and node not in parents]
        if not parents:  # sent there, or the last to run: after everything before it
            parents = before or [node for node in self.ended if not node.followed]
        for node in parents:
            node.followed = True
        return _tips(parents) or self.course.line.tips

    def close(self) -> None:
        """What follows the graph continues from the nodes that have no successor."""
        if tips := _tips(node for node in self.ended if not node.followed):
            self.course.line = self.course.line.at(*tips)


class Edges:
    """A graph's edges: successors of each node, and the joins."""

    def __init__(self, graph: Any) -> None:
        self.after: dict[str, set[str]] = defaultdict(set)
        self.joins: dict[str, list[tuple[str, ...]]] = defaultdict(list)
        if graph is None:
            return
        for edge in graph.get_graph().edges:
            self.after[edge.source].add(edge.target)
        for sources, target in getattr(getattr(graph, "builder", None), "waiting_edges", ()):
            self.joins[target].append(tuple(sources))


class ObservatoryCallback(GatedTools, BaseCallbackHandler):
    """Callback for one graph and any number of its runs. `needs_approval`, `timeout`, `cost`: see
    `langchain`."""

    raise_error = True  # `Cancelled` must end the run; errors of observing hooks are caught here

    def __init__(
        self,
        agent: Sender,
        graph: Any = None,
        *,
        needs_approval: Sequence[str] = (),
        timeout: float | None = None,
        cost: Callable[[Usage], float | None] | None = None,
    ) -> None:
        super().__init__(agent, needs_approval=needs_approval, timeout=timeout, cost=cost)
        self._guard = RLock()
        self._edges: dict[str, Edges] = {"": Edges(graph)}
        for path, inner in graph.get_subgraphs(recurse=True) if graph is not None else ():
            self._edges[path.replace("|", "/")] = Edges(inner)
        self._levels: dict[UUID, dict[str, _Level]] = {}  # by the outermost run, then by namespace
        self._roots: dict[UUID, UUID] = {}
        self._nodes: dict[str, _Node] = {}  # by namespace, which includes the task
        self._running: dict[UUID, _Node] = {}
        self._model_calls: dict[UUID, tuple[Course, int]] = {}
        self._undelivered: OrderedDict[str, list[Prompt]] = (
            OrderedDict()
        )  # by namespace, for the next run there

    # Nodes.

    def on_chain_start(
        self,
        serialized: Any,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        context = metadata or {}
        with self._guard:
            root = self._roots[run_id] = self._roots.get(parent_run_id or run_id, run_id)
            if root == run_id:
                course = self.courses.of(self.courses.enter(context.get("thread_id")))
                self._levels[root] = {"": _Level(course, self._edges[""])}
        name = context.get("langgraph_node")
        if name == more.get("name") and any(tag.startswith("graph:step:") for tag in tags or ()):
            self._begin(root, run_id, str(name), context)

    def _begin(self, root: UUID, run_id: UUID, name: str, context: dict[str, Any]) -> None:
        namespace, step = str(context.get(NS, "")), int(context.get("langgraph_step", 0))
        with self._guard:
            level = self._level(root, namespace.rpartition("|")[0])
            line = level.course.line.at(*level.parents(name, step))
            node = _Node(name, namespace, step, Course(self.courses.sender, line, self.courses.terms))
            self._nodes[namespace] = self._running[run_id] = node
            node.pending_prompts = self._undelivered.pop(namespace, [])
        try:
            node.course.wait()
        except Cancelled:  # a callback that raises at the start of a run gets no end event
            self._roots.pop(run_id, None)
            self._running.pop(run_id, None)
            self._nodes.pop(namespace, None)
            raise
        node.started_ns = time.perf_counter_ns()

    @observing()
    def on_chain_end(self, outputs: Any, *, run_id: UUID, **more: Any) -> None:
        self._end(run_id, None, outputs)

    @observing()
    def on_chain_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:
        self._end(run_id, error, None)

    def _end(self, run_id: UUID, error: BaseException | None, outputs: Any) -> None:
        with self._guard:
            root = self._roots.pop(run_id, run_id)
            node = self._running.pop(run_id, None)
            levels = self._levels.pop(run_id, None)  # the whole run has ended
            if levels is not None:
                levels[""].close()
            if node is None:
                return
            namespace = node.namespace
            self._nodes.pop(namespace, None)
            prompts = [*node.pending_prompts, *node.delivered_prompts]
            if error is not None and prompts:
                self._undelivered[namespace] = prompts  # interrupted or retried: deliver them again
                while len(self._undelivered) > MAX_SUSPENDED:
                    self._undelivered.popitem(last=False)
            known = self._levels.get(root, {})
            if (inner := known.pop(namespace, None)) is not None:
                inner.close()
            if (level := known.get(namespace.rpartition("|")[0])) is not None:
                level.ended.append(node)
        self._record(node, error, outputs)

    def _record(self, node: _Node, error: BaseException | None, outputs: Any) -> None:
        elapsed_ms = (time.perf_counter_ns() - node.started_ns) // 1_000_000
        if error is None:
            summary = wording.clip(_plain(outputs))
            node.course.said(f"Ran {node.name}", tool_output_summary=summary, duration_ms=elapsed_ms)
        elif not isinstance(error, GraphBubbleUp | Cancelled):
            summary = wording.failure(error)
            intent = f"Failed in {node.name}"
            node.course.said(intent, status="failure", tool_output_summary=summary, duration_ms=elapsed_ms)

    def _level(self, root: UUID, namespace: str) -> _Level:
        """The graph running in a namespace; a nested graph continues from its node's steps."""
        levels = self._levels.setdefault(root, {})
        if namespace not in levels:
            outer = self._nodes.get(namespace)
            course = outer.course if outer is not None else self.courses.of(self.courses.enter())
            path = "/".join(part.partition(":")[0] for part in namespace.split("|"))
            levels[namespace] = _Level(course, self._edges.get(path) or Edges(None))
        return levels[namespace]

    # Models in nodes.

    @observing()
    def on_chat_model_start(
        self, serialized: Any, messages: Any, *, run_id: UUID, metadata: Any = None, **more: Any
    ) -> None:
        node = self._nodes.get(str((metadata or {}).get(NS, "")))
        if node is not None:
            self._model_calls[run_id] = node.course, time.perf_counter_ns()

    @observing()
    def on_llm_start(
        self, serialized: Any, prompts: Any, *, run_id: UUID, metadata: Any = None, **more: Any
    ) -> None:
        self.on_chat_model_start(serialized, prompts, run_id=run_id, metadata=metadata)

    @observing()
    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **more: Any) -> None:
        course, started_ns = self._model_calls.pop(run_id, (None, 0))
        if course is not None and response.generations and response.generations[0]:
            first = response.generations[0][0]
            message = getattr(first, "message", None)
            if message is None:  # a model of plain text
                course.thought(Usage(), (), first.text, started_ns=started_ns)
            else:
                record_answer(course, [message], started_ns)

    @observing()
    def on_llm_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:
        course, started_ns = self._model_calls.pop(run_id, (None, 0))
        if course is not None:
            course.failed(error, started_ns)

    # In a node.

    def injected(self) -> list[HumanMessage]:
        """Prompts injected since the last call, as messages for the model. A node that is interrupted, or
        fails and is retried, receives them again."""
        return self._deliver(self._here().ready())

    async def ainjected(self) -> list[HumanMessage]:
        return self._deliver(await self._here().aready())

    def _deliver(self, prompts: list[Prompt]) -> list[HumanMessage]:
        node = self._node_here()
        if node is not None:
            prompts, node.pending_prompts = [*node.pending_prompts, *prompts], []
            node.delivered_prompts += prompts
        return injected(prompts)

    def course_of(self, state: Any) -> Course:
        return self._here()

    def _here(self) -> Course:
        """The course of the node this runs in."""
        node = self._node_here()
        return node.course if node is not None else self.courses.of(self.courses.enter(thread_id()))

    def _node_here(self) -> _Node | None:
        try:
            namespace = get_config().get("configurable", {}).get("checkpoint_ns", "")
        except RuntimeError:  # outside of any graph
            return None
        return self._nodes.get(str(namespace))


def _tips(nodes: Iterable[_Node]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tip for node in nodes for tip in node.tips))


def _plain(outputs: Any) -> Any:
    """A node's update with messages reduced to their text."""
    if isinstance(outputs, dict) and "messages" in outputs:
        messages = outputs["messages"] if isinstance(outputs["messages"], list) else [outputs["messages"]]
        return outputs | {"messages": [str(getattr(one, "content", one)) for one in messages]}
    return outputs
