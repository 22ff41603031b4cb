"""Graphs of one's own (LangGraph): every node a step, with forks and joins as the graph has them.

    from observatory import Agent
    from observatory.sdk.integrations.langgraph import ObservatoryCallback

    graph = builder.compile()
    watch = ObservatoryCallback(Agent("researcher-1"), graph)
    graph.invoke(state, {"callbacks": [watch], "configurable": {"thread_id": "case-7"}})

    # Tools that ask first, and, in the node that asks the model, what people have injected:
    ToolNode(tools, wrap_tool_call=watch.wrap_tool_call, awrap_tool_call=watch.awrap_tool_call)
    model.invoke([*state["messages"], *watch.injected()])

Law: a node waits, before it runs, while the agent is paused, and is said when it has ended, after all that
was done in it: models' answers, tools, subgraphs. Its parents are the nodes that lead to it by an edge in the
step of the graph before, and all that a join waited for; else all nodes of that step. Nothing of the graph is
changed; its own interrupts pass through, and the node they end is said when it was resumed and has ended.
Agents of `create_agent` have a middleware of their own (`langchain`): give them that, and not this too.
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
    MOST_SUSPENDED,
    Tools,
    injected,
    say_answer,
    thread_id,
)
from observatory.sdk.received import Prompt
from observatory.sdk.speaker import Speaker

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
    """A run of a node: where it goes on from, and what became of it."""

    def __init__(self, name: str, place: str, step: int, course: Course) -> None:
        self.name = name
        self.place = place
        self.step = step
        self.course = course
        self.started_ns = time.perf_counter_ns()
        self.followed = False  # some node went on from it
        self.owed: list[Prompt] = []  # given to a run of this node that came to nothing
        self.given: list[Prompt] = []

    @property
    def tips(self) -> tuple[str, ...]:
        return self.course.line.tips


class _Level:
    """A graph in progress, the outer one or one that runs in a node of another: what has ended in it."""

    def __init__(self, course: Course, edges: "Edges") -> None:
        self.course = course
        self.edges = edges
        self.ended: list[_Node] = []

    def parents(self, name: str, step: int) -> tuple[str, ...]:
        """Where a node that begins goes on from."""
        before = [node for node in self.ended if node.step == step - 1]
        found = [node for node in before if name in self.edges.after[node.name]]
        for sources in self.edges.joins[name]:
            if any(node.name in sources for node in before):
                found += [node for node in self.ended if node.name in sources and node not in found]
        if not found:  # sent there, or the last to run: after all that was done before it
            found = before or [node for node in self.ended if not node.followed]
        for node in found:
            node.followed = True
        return _tips(found) or self.course.line.tips

    def close(self) -> None:
        """What comes after the graph goes on from the nodes nobody went on from."""
        if tips := _tips(node for node in self.ended if not node.followed):
            self.course.line = self.course.line.at(*tips)


class Edges:
    """Which node may follow which, and which wait for several."""

    def __init__(self, graph: Any) -> None:
        self.after: dict[str, set[str]] = defaultdict(set)
        self.joins: dict[str, list[tuple[str, ...]]] = defaultdict(list)
        if graph is None:
            return
        for edge in graph.get_graph().edges:
            self.after[edge.source].add(edge.target)
        for sources, target in getattr(getattr(graph, "builder", None), "waiting_edges", ()):
            self.joins[target].append(tuple(sources))


class ObservatoryCallback(Tools, BaseCallbackHandler):
    """For one graph, and any number of runs of it. `needs_approval`, `timeout`, `cost`: as in `langchain`."""

    raise_error = True  # `Cancelled` must end the run; what only observes is caught here

    def __init__(
        self,
        agent: Speaker,
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
        self._nodes: dict[str, _Node] = {}  # by namespace, which names the task too
        self._running: dict[UUID, _Node] = {}
        self._asked: dict[UUID, tuple[Course, int]] = {}
        self._owed: OrderedDict[str, list[Prompt]] = OrderedDict()  # by namespace, for who runs there again

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
        told = metadata or {}
        with self._guard:
            root = self._roots[run_id] = self._roots.get(parent_run_id or run_id, run_id)
            if root == run_id:
                course = self.courses.of(self.courses.enter(told.get("thread_id")))
                self._levels[root] = {"": _Level(course, self._edges[""])}
        name = told.get("langgraph_node")
        if name == more.get("name") and any(tag.startswith("graph:step:") for tag in tags or ()):
            self._begin(root, run_id, str(name), told)

    def _begin(self, root: UUID, run_id: UUID, name: str, told: dict[str, Any]) -> None:
        place, step = str(told.get(NS, "")), int(told.get("langgraph_step", 0))
        with self._guard:
            level = self._level(root, place.rpartition("|")[0])
            line = level.course.line.at(*level.parents(name, step))
            node = _Node(name, place, step, Course(self.courses.speaker, line, self.courses.terms))
            self._nodes[place] = self._running[run_id] = node
            node.owed = self._owed.pop(place, [])
        try:
            node.course.wait()
        except Cancelled:  # whoever raises at the start of a run is not told of its end
            self._roots.pop(run_id, None)
            self._running.pop(run_id, None)
            self._nodes.pop(place, None)
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
            place = node.place
            self._nodes.pop(place, None)
            if error is not None and (owed := [*node.owed, *node.given]):
                self._owed[place] = owed  # interrupted, or retried: what it was told is told again
                while len(self._owed) > MOST_SUSPENDED:
                    self._owed.popitem(last=False)
            known = self._levels.get(root, {})
            if (inner := known.pop(place, None)) is not None:
                inner.close()
            if (level := known.get(place.rpartition("|")[0])) is not None:
                level.ended.append(node)
        self._say(node, error, outputs)

    def _say(self, node: _Node, error: BaseException | None, outputs: Any) -> None:
        spent = (time.perf_counter_ns() - node.started_ns) // 1_000_000
        if error is None:
            summary = wording.clip(_shown(outputs))
            node.course.said(f"Ran {node.name}", tool_output_summary=summary, duration_ms=spent)
        elif not isinstance(error, GraphBubbleUp | Cancelled):
            summary = wording.failure(error)
            intent = f"Failed in {node.name}"
            node.course.said(intent, status="failure", tool_output_summary=summary, duration_ms=spent)

    def _level(self, root: UUID, place: str) -> _Level:
        """The graph that runs at a place; one inside a node goes on from what was done in that node."""
        levels = self._levels.setdefault(root, {})
        if place not in levels:
            outer = self._nodes.get(place)
            course = outer.course if outer is not None else self.courses.of(self.courses.enter())
            path = "/".join(part.partition(":")[0] for part in place.split("|"))
            levels[place] = _Level(course, self._edges.get(path) or Edges(None))
        return levels[place]

    # Models in nodes.

    @observing()
    def on_chat_model_start(
        self, serialized: Any, messages: Any, *, run_id: UUID, metadata: Any = None, **more: Any
    ) -> None:
        node = self._nodes.get(str((metadata or {}).get(NS, "")))
        if node is not None:
            self._asked[run_id] = node.course, time.perf_counter_ns()

    @observing()
    def on_llm_start(
        self, serialized: Any, prompts: Any, *, run_id: UUID, metadata: Any = None, **more: Any
    ) -> None:
        self.on_chat_model_start(serialized, prompts, run_id=run_id, metadata=metadata)

    @observing()
    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **more: Any) -> None:
        course, started_ns = self._asked.pop(run_id, (None, 0))
        if course is not None and response.generations and response.generations[0]:
            first = response.generations[0][0]
            message = getattr(first, "message", None)
            if message is None:  # a model of plain text
                course.thought(Usage(), (), first.text, started_ns=started_ns)
            else:
                say_answer(course, [message], started_ns)

    @observing()
    def on_llm_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:
        course, started_ns = self._asked.pop(run_id, (None, 0))
        if course is not None:
            course.failed(error, started_ns)

    # In a node.

    def injected(self) -> list[HumanMessage]:
        """What people have injected since this was last asked, as messages for the model. A node that is
        interrupted, or fails and is tried again, is told the same again."""
        return self._told(self._here().ready())

    async def ainjected(self) -> list[HumanMessage]:
        return self._told(await self._here().aready())

    def _told(self, prompts: list[Prompt]) -> list[HumanMessage]:
        node = self._node_here()
        if node is not None:
            prompts, node.owed = [*node.owed, *prompts], []
            node.given += prompts
        return injected(prompts)

    def course_of(self, state: Any) -> Course:
        return self._here()

    def _here(self) -> Course:
        """The course of the node this runs in."""
        node = self._node_here()
        return node.course if node is not None else self.courses.of(self.courses.enter(thread_id()))

    def _node_here(self) -> _Node | None:
        try:
            place = get_config().get("configurable", {}).get("checkpoint_ns", "")
        except RuntimeError:  # outside of any graph
            return None
        return self._nodes.get(str(place))


def _tips(nodes: Iterable[_Node]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tip for node in nodes for tip in node.tips))


def _shown(outputs: Any) -> Any:
    """A node's update without the messages' inner lives."""
    if isinstance(outputs, dict) and "messages" in outputs:
        messages = outputs["messages"] if isinstance(outputs["messages"], list) else [outputs["messages"]]
        return outputs | {"messages": [str(getattr(one, "content", one)) for one in messages]}
    return outputs
