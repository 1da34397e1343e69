"""The tools over the Model Context Protocol: standard input and output, or HTTP on this machine alone.

The only module that needs the SDK (`pip install insight-trace[agents]`). It reads and runs nothing itself: requests go
to workers, and a request that is cancelled ends its worker with all that it started.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import sys
import tempfile
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
import msgspec
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from insight_trace import __version__
from insight_trace.agents.forms import TOOLS, Tool
from insight_trace.agents.worker import LARGEST, Settings, frame
from insight_trace.errors import JobError

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

_INSTRUCTIONS = """Simulates Ascend NPU kernels without a device: cycles, races, wrong numbers, and what to change.
Begin with `kernel` (a C++ file or text, arguments by name) or `judge` (a task); both answer within seconds. `advice` says
what to change first and what it saves; `check` and `why` say what is wrong and on which line; `compare` proves that a
change helped. Cycles are a model's, with a 90 % interval. Answers show the first rows: `more` takes their cursor."""
_AT_ONCE = 2
_KEPT_ANSWERS = 32  # whose further rows are held for `more`
_CALLS = 200  # of one worker: a fresh one takes over then
_READY_SECONDS = 120.0
Report = Callable[[str, int, int], Awaitable[None]]


class RefusedError(Exception):
    """What a tool says when it does not do what was asked."""


# --- workers -------------------------------------------------------------------------------------------------


class _Worker:
    """One process of tools."""

    def __init__(self, process: Process, folder: Path, memory: Path) -> None:
        self.process = process
        self.folder, self.memory = folder, memory
        assert process.stdout is not None
        assert process.stdin is not None
        self.answers, self.requests = BufferedByteReceiveStream(process.stdout), process.stdin
        self.calls = 0

    async def receive(self) -> dict[str, Any]:
        try:
            size = int.from_bytes(await self.answers.receive_exactly(4), "little")
            if size > LARGEST:
                raise RefusedError("the answer is too large")
            found: dict[str, Any] = msgspec.json.decode(await self.answers.receive_exactly(size))
            return found
        except (anyio.IncompleteRead, anyio.EndOfStream, anyio.ClosedResourceError):
            raise RefusedError("the process of the tool ended; ask again") from None

    async def ask(self, tool: str, arguments: dict[str, Any], report: Report) -> dict[str, Any]:
        self.calls += 1
        await self.requests.send(frame({"tool": tool, "arguments": arguments}))
        while True:
            said = await self.receive()
            if said["kind"] == "progress":
                await report(said["step"], said["done"], said["total"])
            elif said["kind"] == "answer":
                answer: dict[str, Any] = said["answer"]
                return answer
            else:
                raise RefusedError(said["text"])

    async def end(self) -> None:
        """At once; what it started holds its leash and goes with it."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        with anyio.CancelScope(shield=True):
            await self.process.wait()
            for stream in (self.process.stdin, self.process.stdout):
                if stream is not None:
                    await stream.aclose()
            for place in (self.folder, self.memory):
                await anyio.to_thread.run_sync(shutil.rmtree, place, True)


class Workers:
    """A few of them, one request each; those that wait are kept for the next."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._idle: list[_Worker] = []
        self._places = anyio.CapacityLimiter(_AT_ONCE)

    async def call(self, tool: str, arguments: dict[str, Any], report: Report) -> dict[str, Any]:
        async with self._places:
            worker = self._idle.pop() if self._idle else await self._start()
            try:
                answer = await worker.ask(tool, arguments, report)
            except RefusedError:
                await self._back(worker)
                raise
            except BaseException:  # cancelled: nobody waits for the rest of it
                await worker.end()
                raise
            await self._back(worker)
            return answer

    async def _back(self, worker: _Worker) -> None:
        if worker.calls >= _CALLS or worker.process.returncode is not None:
            await worker.end()
        else:
            self._idle.append(worker)

    async def _start(self) -> _Worker:
        folder = Path(tempfile.mkdtemp(prefix="insight-trace-mcp-"))
        in_memory = Path("/dev/shm")
        memory = Path(
            tempfile.mkdtemp(prefix="insight-trace-mcp-", dir=in_memory if in_memory.is_dir() else None)
        )
        settings = msgspec.structs.replace(self.settings, scratch=str(folder), memory=str(memory))
        words = [sys.executable, "-m", "insight_trace.agents.worker", msgspec.json.encode(settings).decode()]
        process = await anyio.open_process(words, stdin=-1, stdout=-1, stderr=None, env=dict(os.environ))
        worker = _Worker(process, folder, memory)
        try:
            with anyio.fail_after(_READY_SECONDS):
                said = await worker.receive()
        except TimeoutError:
            await worker.end()
            raise RefusedError(
                f"the process of the tools did not start within {_READY_SECONDS:g} s"
            ) from None
        except BaseException:
            await worker.end()
            raise
        if said["kind"] != "ready":
            await worker.end()
            raise RefusedError(said["text"])
        return worker

    async def close(self) -> None:
        for worker in self._idle:
            await worker.end()
        self._idle = []


class Pages:
    """Further rows of the last answers."""

    def __init__(self) -> None:
        self._rows: OrderedDict[str, list[Any]] = OrderedDict()

    def first(self, answer: dict[str, Any], limit: int) -> dict[str, Any]:
        rows = answer.get("rows")
        if not rows or len(rows) <= limit:
            return answer
        name = secrets.token_hex(6)
        self._rows[name] = rows
        while len(self._rows) > _KEPT_ANSWERS:
            self._rows.popitem(last=False)
        return answer | {"rows": rows[:limit], "cursor": f"{name}:{limit}"}

    def more(self, cursor: str, limit: int) -> dict[str, Any]:
        name, _, place = cursor.partition(":")
        rows = self._rows.get(name)
        if rows is None or not place.isdecimal() or len(place) > 9:
            raise RefusedError("this cursor is not known any more: ask again")
        begin = int(place)
        end = begin + limit
        return {
            "summary": f"rows {begin + 1} to {min(end, len(rows))} of {len(rows)}",
            "total": len(rows),
            "rows": rows[begin:end],
            "cursor": f"{name}:{end}" if end < len(rows) else None,
        }


# --- the protocol --------------------------------------------------------------------------------------------


def schema(kind: type) -> dict[str, Any]:
    """JSON Schema of a type, an object at its root."""
    (root,), parts = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    name = root["$ref"].rpartition("/")[2]
    found: dict[str, Any] = dict(parts.pop(name))
    return found | ({"$defs": parts} if parts else {})


_MORE = types.Tool(
    name="more",
    description="More rows of an answer that had a cursor.",
    input_schema={
        "type": "object",
        "properties": {
            "cursor": {"type": "string", "maxLength": 64},
            "limit": {"type": "integer", "minimum": 1, "maximum": 200, "default": 50},
        },
        "required": ["cursor"],
        "additionalProperties": False,
    },
    output_schema={
        "type": "object",
        "properties": {
            "summary": {"type": "string"},
            "total": {"type": "integer"},
            "rows": {"type": "array"},
            "cursor": {"type": ["string", "null"]},
        },
        "required": ["summary", "total", "rows", "cursor"],
    },
    annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
)


def _listed(name: str, tool: Tool) -> types.Tool:
    hints = types.ToolAnnotations(
        read_only_hint=not tool.changes,
        destructive_hint=False,
        idempotent_hint=not tool.changes,
        open_world_hint=False,
    )
    return types.Tool(
        name=name, description=tool.description, input_schema=schema(tool.request), output_schema=schema(tool.answer),
        annotations=hints,
    )  # fmt: skip


def _answered(found: dict[str, Any]) -> types.CallToolResult:
    text = types.TextContent(text=msgspec.json.encode(found).decode())
    return types.CallToolResult(content=[text], structured_content=found)


def _refused(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)


def make_server(settings: Settings) -> Server[Any]:
    """The server; its workers live as long as it does."""
    pages = Pages()
    workers = Workers(settings)
    listed = [*(_listed(name, tool) for name, tool in TOOLS.items()), _MORE]

    @contextlib.asynccontextmanager
    async def lifetime(_: Server[Any]) -> AsyncIterator[dict[str, Any]]:
        try:
            yield {}
        finally:
            with anyio.CancelScope(shield=True):
                await workers.close()

    async def list_tools(_context: ServerRequestContext[Any], _asked: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed)

    async def call_tool(
        context: ServerRequestContext[Any], asked: types.CallToolRequestParams
    ) -> types.CallToolResult:
        given = dict(asked.arguments or {})
        if asked.name != "more" and asked.name not in TOOLS:
            raise MCPError(types.INVALID_PARAMS, f"there is no tool '{asked.name[:64]}'")

        async def report(step: str, done: int, total: int) -> None:
            await context.session.report_progress(done, total or None, step)

        try:
            limit = given.get("limit", 50 if asked.name == "more" else 10)
            if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= 200:
                raise RefusedError("limit is a number from 1 to 200")
            if asked.name == "more":
                return _answered(pages.more(str(given.get("cursor", "")), limit))
            return _answered(pages.first(await workers.call(asked.name, given, report), limit))
        except RefusedError as error:
            return _refused(str(error))

    async def templates(
        _context: ServerRequestContext[Any], _asked: Any
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(
                    name="page", uri_template="page://{+path}", mime_type="text/html",
                    description="the page of a run, which `view` writes: page://WORKSPACE/report.html",
                ),
                types.ResourceTemplate(
                    name="trace", uri_template="trace://{+path}", mime_type="application/json",
                    description="the events of a run for a timeline: trace://WORKSPACE",
                ),
            ]
        )  # fmt: skip

    async def read_resource(
        _context: ServerRequestContext[Any], asked: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        async def silent(_step: str, _done: int, _total: int) -> None: ...

        uri = str(asked.uri)
        try:
            found = await workers.call("resource", {"uri": uri}, silent)
        except RefusedError as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from None
        part = types.TextResourceContents(uri=asked.uri, mime_type=found["mime"], text=found["text"])
        return types.ReadResourceResult(contents=[part])

    return Server(
        "insight-trace",
        version=__version__,
        instructions=_INSTRUCTIONS,
        lifespan=lifetime,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resource_templates=templates,
        on_read_resource=read_resource,
    )


def serve_stdio(settings: Settings) -> None:
    """Until the input ends, or a signal comes.

    A thread of the SDK waits for the next line, and nothing can interrupt it: a client that keeps our input open would
    keep us after a signal. So the process ends there and then, with its workers put away.
    """
    from mcp.server.stdio import stdio_server

    numbers = [
        n for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) != signal.SIG_IGN
    ]
    came: list[int] = []

    async def serve() -> None:
        server = make_server(settings)
        async with stdio_server() as (reading, writing), anyio.create_task_group() as tasks:

            async def wait_for_signal() -> None:
                with anyio.open_signal_receiver(*numbers) as signals:
                    async for number in signals:
                        came.append(number)
                        tasks.cancel_scope.cancel()

            tasks.start_soon(wait_for_signal)
            try:
                await server.run(reading, writing, server.create_initialization_options())
            finally:
                if came:
                    os._exit(128 + came[0])
                tasks.cancel_scope.cancel()

    anyio.run(serve)


def serve_http(settings: Settings, port: int, say: Callable[[str], None]) -> None:
    """On this machine alone. Its address holds a secret, so that other users of the machine cannot ask."""
    import socket

    import uvicorn

    path = f"/{secrets.token_urlsafe(16)}/mcp"
    app = make_server(settings).streamable_http_app(streamable_http_path=path, host="127.0.0.1")
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    with contextlib.closing(listening):
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(("127.0.0.1", port))
        except OSError as error:
            raise JobError(
                f"port {port}: {error.strerror}", hint="choose another one; 0 takes a free one"
            ) from None
        say(f"http://127.0.0.1:{listening.getsockname()[1]}{path}")
        config = uvicorn.Config(app, log_level="warning", lifespan="on")
        anyio.run(lambda: uvicorn.Server(config).serve(sockets=[listening]))
