"""The MCP server: the seed's six tools and five that read, as a thin translation onto our own HTTP API.

Laws: no second logic. A tool calls the HTTP endpoint that does the same with the caller's own key, so roles,
refusals and responses are those of the endpoint. Every `tools/call` writes its audit event before its
response is sent, refused ones too; if that cannot be written the call fails (rules S400–S412). Requests are
stateless: nothing is kept between them, so a restart breaks no client. The official SDK implements the
protocol; it is loaded by the first request, because a gateway without MCP clients need not pay for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import msgspec

from observatory.errors import ObservatoryError, QueueFull
from observatory.features.mcp import commands as tool_calls
from observatory.features.mcp import tools
from observatory.features.mcp.commands import UNKNOWN
from observatory.features.mcp.tools import Outcome
from observatory.pipeline.state import Command, Principal, SubmissionResult
from observatory.protocol.asgi import Answer, Headers, call_app
from observatory.protocol.document import parse
from observatory.settings import VERSION

if TYPE_CHECKING:
    import mcp_types as types
    from mcp.server.context import ServerRequestContext
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

log = logging.getLogger("observatory.mcp")
# (method, path, query, body) of a call to our own API with the caller's key -> (code, response).
Ask = Callable[[str, str, Mapping[str, Any], Any], Awaitable[tuple[int, Any]]]
Submit = Callable[[Command], Awaitable[SubmissionResult]]
JSON: Final = [(b"content-type", b"application/json")]
PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32602, -32603
VISIT: Final = "observatory.visit"
# The SDK gets the headers the protocol needs, and no key and no cookie.
PASSED_HEADERS: Final = (b"accept", b"content-type", b"content-length", b"host")
LOADING_S = 30.0
MAX_RECORDED = 64  # recorded calls of a refused batch: one event each


@dataclass
class ToolCallInProgress:
    """One tool call in progress; a call that reaches no tool counts as refused."""

    tool: str
    arguments_hash: str
    ident: Any
    outcome: Outcome = "refused"
    reason: str | None = "bad_request"

    def ends(self, outcome: Outcome, reason: str | None) -> None:
        self.outcome, self.reason = outcome, reason


@dataclass
class McpRequest:
    ask: Ask
    called: ToolCallInProgress | None


class McpServer:
    """`run` is a worker that sleeps until the first request; `answer` handles one authenticated POST."""

    def __init__(self, submit: Submit, clock: Callable[[], int]) -> None:
        self._submit, self._clock = submit, clock
        self._wanted, self._ready = asyncio.Event(), asyncio.Event()
        self._manager: StreamableHTTPSessionManager | None = None

    async def run(self) -> None:
        await self._wanted.wait()
        manager = await asyncio.to_thread(_manager)
        async with manager.run():
            self._manager = manager
            self._ready.set()
            try:
                await asyncio.Event().wait()
            finally:
                self._ready.clear()

    async def answer(self, who: Principal, headers: Headers, body: bytes, ask: Ask) -> Answer:
        document = parse(body)
        value = None if document is None else document.value
        if isinstance(value, list):
            return await self._batch(who, value)
        called = _called(value)
        ident = None if called is None else called.ident
        if document is None:
            answer = failure(400, None, PARSE_ERROR, "the body is not JSON in UTF-8")
        elif not document.clean:
            answer = failure(400, None, PARSE_ERROR, "the body is not JSON that every parser reads alike")
        elif not isinstance(value, dict) or not isinstance(value.get("method"), str):
            answer = failure(
                400, None, INVALID_REQUEST, "the body must be one JSON-RPC request or notification"
            )
        else:
            problem = None if called is None else _misshapen(value.get("params"))
            if problem is None:
                answer = await self._pass_to_sdk(headers, body, McpRequest(ask, called))
            else:
                answer = failure(400, ident, INVALID_PARAMS, problem)
        refusal = None if called is None else await self._record(who, [called])
        return answer if refusal is None else refusal

    async def _batch(self, who: Principal, values: list[Any]) -> Answer:
        """Batches are refused; each call in one is recorded, up to a bound."""
        calls = [one for one in map(_called, values) if one is not None]
        refusal = await self._record(who, calls[:MAX_RECORDED]) if calls else None
        problem = "the body must be one JSON-RPC request or notification"
        return failure(400, None, INVALID_REQUEST, problem) if refusal is None else refusal

    async def record_refused_call(self, who: Principal, reason: str) -> None:
        """Record a call that the endpoint refused unread. It is refused even if this cannot be recorded."""
        call = tool_calls.RecordedToolCall(UNKNOWN, "refused", reason, None)
        with suppress(ObservatoryError):
            await self._submit(tool_calls.record_tool_calls(who, [call], self._clock()))

    async def _pass_to_sdk(self, headers: Headers, body: bytes, visit: McpRequest) -> Answer:
        self._wanted.set()
        try:
            await asyncio.wait_for(self._ready.wait(), LOADING_S)
        except TimeoutError:
            if visit.called is not None:
                visit.called.ends("error", "not_ready")
            return failure(503, None, INTERNAL_ERROR, "the MCP server is still starting; try again")
        assert self._manager is not None
        passed = [
            (name, text) for name, text in headers if name in PASSED_HEADERS or name.startswith(b"mcp-")
        ]
        code, response_headers, answer = await call_app(
            self._manager.handle_request, "POST", "/mcp", passed, body, known={VISIT: visit}
        )
        if visit.called is not None and visit.called.outcome == "ok" and _is_error(answer):
            visit.called.ends("error", "internal_error")  # the SDK could not encode the tool's response
        return code, [(name, text) for name, text in response_headers if name != b"content-length"], answer

    async def _record(self, who: Principal, calls: list[ToolCallInProgress]) -> Answer | None:
        """None when it is recorded; else the response that replaces the tool's."""
        called = calls[0]
        ident = called.ident
        recorded = [
            tool_calls.RecordedToolCall(one.tool, one.outcome, one.reason, one.arguments_hash)
            for one in calls
        ]
        act = tool_calls.record_tool_calls(who, recorded, self._clock())
        try:
            verdict = await self._submit(act)
        except ObservatoryError as error:
            code = 429 if isinstance(error, QueueFull) else 503
            return failure(code, ident, INTERNAL_ERROR, _unrecorded(called))
        if verdict.code == 401:
            return failure(401, ident, INVALID_REQUEST, "this key is no longer valid")
        if verdict.code >= 400:
            return failure(503, ident, INTERNAL_ERROR, _unrecorded(called))
        return None


class _Reply(msgspec.Struct):
    error: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def _is_error(answer: bytes) -> bool:
    try:
        return msgspec.json.decode(answer, type=_Reply).error is not msgspec.UNSET
    except msgspec.MsgspecError:
        return True


def _unrecorded(called: ToolCallInProgress) -> str:
    done = (
        "; it was carried out: check before you call it again"
        if called.outcome == "ok"
        else "; call it again"
    )
    return f"this call could not be recorded{done}"


def failure(code: int, ident: Any, number: int, sentence: str, data: Any = None) -> Answer:
    """A JSON-RPC error with the HTTP code that fits it."""
    error = {"code": number, "message": sentence} | ({} if data is None else {"data": data})
    known = ident if isinstance(ident, str | int) and not isinstance(ident, bool) else None
    return code, list(JSON), msgspec.json.encode({"jsonrpc": "2.0", "id": known, "error": error})


def _called(value: Any) -> ToolCallInProgress | None:
    """The tool call in a message, even if malformed."""
    if not isinstance(value, dict) or value.get("method") != "tools/call":
        return None
    params = value.get("params")
    params = params if isinstance(params, dict) else {}
    name = params.get("name")
    return ToolCallInProgress(
        name if isinstance(name, str) and name in tools.BY_NAME else UNKNOWN,
        _hash(params.get("arguments")),
        value.get("id"),
    )


def _misshapen(params: Any) -> str | None:
    """A problem that the SDK would refuse without saying how to fix it."""
    if not isinstance(params, dict) or not isinstance(params.get("name"), str):
        return "params must be an object {name, arguments} with the name of a tool; tools/list shows them"
    if not isinstance(params.get("arguments") or {}, dict):
        return "arguments must be an object; tools/list shows what each tool takes"
    return None


def _hash(arguments: Any) -> str:
    """Hash of the arguments as sorted JSON without spaces; of nothing if they are not valid JSON."""
    try:
        text = msgspec.json.encode({} if arguments is None else arguments, order="sorted")
    except (TypeError, ValueError, RecursionError):
        text = b""
    return "sha256:" + sha256(text).hexdigest()


# --- callbacks for the SDK, which is loaded here and nowhere else ---


class _MessageOnlyHandler(logging.Handler):
    """The SDK's log records, without values and tracebacks: they may quote the request."""

    def emit(self, record: logging.LogRecord) -> None:
        log.error("the MCP SDK: %s", record.msg)


def _manager() -> StreamableHTTPSessionManager:
    from mcp.server.lowlevel import Server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    sdk_log = logging.getLogger("mcp")
    sdk_log.setLevel(logging.ERROR)
    sdk_log.propagate = False
    sdk_log.handlers = [_MessageOnlyHandler()]
    server: Server[Any] = Server(
        "observatory",
        version=VERSION,
        title="Hypervisor Observatory",
        instructions=tools.INSTRUCTIONS,
        get_tool_input_schema=lambda name: None,
        on_list_tools=_list_tools,
        on_call_tool=_call_tool,
    )
    server.middleware.clear()
    return StreamableHTTPSessionManager(server, json_response=True, stateless=True)


async def _list_tools(ctx: ServerRequestContext[Any, Any], params: Any) -> types.ListToolsResult:
    from mcp_types import ListToolsResult, Tool, ToolAnnotations

    listed = [
        Tool(
            name=tool.name,
            title=tool.title,
            description=tool.description,
            input_schema=tool.input_schema,
            output_schema=tool.output_schema,
            annotations=ToolAnnotations(
                title=tool.title,
                read_only_hint=tool.reads_only,
                destructive_hint=False,  # no tool deletes anything
                idempotent_hint=tool.is_idempotent,
                open_world_hint=False,
            ),
        )
        for tool in tools.TOOLS
    ]
    return ListToolsResult(tools=listed)


async def _call_tool(
    ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
) -> types.CallToolResult:
    from mcp.shared.exceptions import MCPError

    visit: McpRequest = ctx.request.scope[VISIT]  # type: ignore[union-attr]
    called = visit.called
    assert called is not None
    tool = tools.BY_NAME.get(params.name)
    if tool is None:
        called.ends("refused", "unknown_tool")
        names = ", ".join(tools.BY_NAME)
        raise MCPError(INVALID_PARAMS, f"there is no such tool; call one of: {names}")
    arguments = params.arguments or {}
    found = tools.faults(tool, arguments)
    if found:
        called.ends("refused", "bad_arguments")
        return _refused(called, "; ".join(found))
    try:
        code, answer = await _do(tool.name, tools.given(tool, arguments), visit.ask)
    except Exception as error:  # noqa: BLE001 the one place where a tool's defect is reported
        called.ends("error", "internal_error")
        log.error("the tool %s failed: %s", tool.name, type(error).__name__)
        return _refused(called, "the call failed")
    return _result(called, code, answer)


async def _do(tool: str, given: dict[str, Any], ask: Ask) -> tuple[int, Any]:
    """Call the endpoint of this tool."""
    session = "/v1/sessions/" + quote(given.get("session_id", ""), safe="")
    match tool:
        case "audit_session_start":
            return await ask("POST", "/v1/thought-sessions", {}, given)
        case "thought_record":
            return await ask("POST", "/v1/thoughts", {}, given)
        case "audit_verify_chain":
            return await ask("POST", f"{session}/thoughts/verify", {}, None)
        case "merkle_finalize":
            return await ask("POST", f"{session}/seal", {}, None)
        case "merkle_root":
            code, answer = await ask("GET", f"{session}/seal", {}, None)
            return code, answer if code >= 400 else {name: answer[name] for name in ("root", "size")}
        case "audit_session_end":
            return await ask("POST", f"{session}/thoughts/end", {}, None)
        case "search_messages":
            return await ask(
                "GET", "/v1/search", {"q": given["query"], "limit": given.get("limit", 20)}, None
            )
        case "get_session":
            return await ask("GET", session, {}, None)
        case "get_step":
            return await _step(session, given, ask)
        case "list_pending_decisions":
            return await ask("GET", "/v1/decisions/pending", {"limit": given.get("limit", 20)}, None)
        case "get_proof":
            return await ask("GET", "/v1/audit/proof/" + quote(given["audit_event_id"], safe=""), {}, None)
    raise AssertionError("every tool has its endpoint")


async def _step(session: str, given: dict[str, Any], ask: Ask) -> tuple[int, Any]:
    step = quote(given["step_id"], safe="")
    code, found = await ask("GET", f"{session}/steps/{step}", {}, None)
    if code >= 400:
        return code, found
    # No causes while the step is not folded yet, or without an analyst.
    code, causes = await ask("GET", f"/v1/steps/{step}/causes", {"session": given["session_id"]}, None)
    return 200, {"step": found, "causes": causes if code < 400 else None}


def _result(called: ToolCallInProgress, code: int, answer: Any) -> types.CallToolResult:
    from mcp_types import CallToolResult, TextContent

    if code < 400 and isinstance(answer, dict):
        broken = called.tool == "audit_verify_chain" and not answer.get("valid")
        called.ends("error" if broken else "ok", "chain_broken" if broken else None)
        texts = [msgspec.json.encode(answer).decode(), *([tools.NEXT["chain_broken"]] if broken else [])]
        content: list[types.ContentBlock] = [TextContent(text=text) for text in texts]
        return CallToolResult(content=content, structured_content=answer, is_error=broken)
    refusal = answer if isinstance(answer, dict) else {}
    reason = str(refusal.get("reason") or f"code_{code}")
    called.ends("error" if code >= 500 else "refused", reason)
    faults = "; ".join(f"{one['path']}: {one['problem']}" for one in refusal.get("faults") or ())
    return _refused(called, faults or str(refusal.get("detail") or "the gateway refused"))


def _refused(called: ToolCallInProgress, detail: str) -> types.CallToolResult:
    """What went wrong and what to do next, as text for a model and as JSON."""
    from mcp_types import CallToolResult, TextContent

    reason = called.reason or ""
    then = tools.then(called.tool, reason)
    structured = {"status": "refused", "reason": reason, "detail": detail, "next": then}
    sentence = f"{detail}. {then}" if then else detail
    return CallToolResult(content=[TextContent(text=sentence)], structured_content=structured, is_error=True)
