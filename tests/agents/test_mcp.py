"""The server of tools for agents, driven by the SDK's own client."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import jsonschema
import pytest

from insight_trace.agents.forms import TOOLS
from insight_trace.agents.root import Root
from insight_trace.commands import run_line
from insight_trace.errors import RequestError

ROOT = Path(__file__).resolve().parents[2]
_ARGUMENTS = {"x": "f32[4096]:random", "y": "f32[4096]:random", "z": "f32[4096]"}

if TYPE_CHECKING:
    from mcp import Client

    Session = Callable[[Client], Awaitable[None]]


@pytest.fixture(autouse=True)
def _sdk() -> None:
    """Imported where a test needs it: that takes a second, which every worker would spend to find the tests."""
    pytest.importorskip("mcp", reason="the extra `agents` is not installed")


def _folder(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    shutil.copytree(ROOT / "examples" / "judge", folder / "judge")
    shutil.copytree(ROOT / "examples" / "two_builds", folder / "two_builds")
    shutil.copy(ROOT / "examples" / "kernels" / "rounds.cpp", folder)
    return folder


def _with_client(folder: Path, session: Session, *flags: str) -> None:
    from mcp import Client, StdioServerParameters, stdio_client

    words = ["-m", "insight_trace", "mcp", "--root", str(folder), *flags]
    server = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))

    async def run() -> None:
        async with Client(stdio_client(server)) as client:
            await session(client)

    anyio.run(run)


async def _ask(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content[0].text
    return answer.structured_content


def test_every_tool_answers_shortly_and_as_its_schema_says(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    good = "runs/good_1"
    calls: list[tuple[str, dict[str, Any], Callable[[dict[str, Any]], bool]]] = [
        ("kernel", {"file": "judge/good.cpp", "arguments": _ARGUMENTS}, lambda a: a["workspace"] == good),
        ("replay", {"path": good}, lambda a: a["cycles"] == 4104),
        ("check", {"path": good}, lambda a: a["errors"] == 0),
        ("why", {"workspace": good, "element": "2[3]"}, lambda a: a["rows"][0]["op"] == "TSTORE"),
        ("stats", {"workspace": good}, lambda a: a["cycles"] == 4084 and len(a["rows"]) == 4),
        ("advice", {"workspace": good}, lambda a: a["rows"][0]["simulated"]),
        ("compare", {"before": good, "after": "runs/good_1_1"}, lambda a: a["before"] == a["after"]),
        ("diff", {"a": "two_builds/v1", "b": "two_builds/v2"}, lambda a: a["errors"] == 1),
        (
            "judge",
            {"task": "judge/axpy.json", "file": "judge/wrong.cpp"},
            lambda a: a["verdict"]["line"] == 16,
        ),
        ("query", {"workspace": good, "sql": "select * from instructions"}, lambda a: a["total"] > 40),
        ("op_cost", {"op": "TADD", "rows": [16, 32], "cols": 64}, lambda a: a["best"] == 0),
        (
            "time_many",
            {
                "file": "rounds.cpp",
                "arguments": {"x": "f32[65536]", "y": "f32[65536]", "rounds": [1, 2], "work": 1},
            },
            lambda a: a["rows"][0]["parameters"] == {"rounds": 1},
        ),
        ("view", {"workspace": good}, lambda a: a["uri"].startswith("page://")),
        (
            "exec",
            {"command": [sys.executable, "-c", "raise SystemExit(3)"]},
            lambda a: a["code"] == 3 and not a["rows"],
        ),
    ]
    steps: list[str] = []

    async def session(client: Client) -> None:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(listed) == {*TOOLS, "more"}
        assert {call[0] for call in calls} == set(TOOLS)

        async def progress(_done: float, _total: float | None, step: str | None) -> None:
            steps.append(step or "")

        for name, arguments, holds in calls:
            answer = await client.call_tool(name, arguments, progress_callback=progress)
            text = answer.content[0].text
            assert not answer.is_error, f"{name}: {text}"
            jsonschema.validate(arguments, listed[name].input_schema)
            jsonschema.validate(answer.structured_content, listed[name].output_schema)
            assert json.loads(text) == answer.structured_content
            assert len(text) < 6000, name
            assert holds(answer.structured_content), f"{name}: {text}"
            if name == "query":
                await _further(client, answer.structured_content)
            if name == "view":
                page = await client.read_resource(answer.structured_content["uri"])
                assert page.contents[0].text.startswith("<!DOCTYPE html>")
        assert json.loads((await client.read_resource(f"trace://{good}")).contents[0].text)["traceEvents"]

    _with_client(folder, session, "--programs")
    assert "simulate" in steps


async def _further(client: Client, first: dict[str, Any]) -> None:
    """The rest of an answer, by its cursor."""
    rows, cursor = len(first["rows"]), first["cursor"]
    while cursor:
        part = await _ask(client, "more", cursor=cursor, limit=20)
        rows, cursor = rows + len(part["rows"]), part["cursor"]
    assert rows == first["total"]


_ENDLESS = """#include <pto/pto-inst.hpp>
__global__ AICORE void endless(__gm__ float *x) {
    for (volatile int i = 0;; i = i + 1) {}
}
"""


def _simulators() -> set[int]:
    """Runners whose job lies where this server's workers put theirs."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[0].endswith(b"/runner") and b"insight-trace-mcp-" in words[1]:
                found.add(int(entry.name))
    return found


def test_a_call_that_is_cancelled_ends_its_simulator_within_a_second_and_the_next_is_answered(
    tmp_path: Path,
) -> None:
    folder = _folder(tmp_path)
    before = _simulators()

    async def session(client: Client) -> None:
        async def call() -> None:
            await client.call_tool(
                "kernel", {"source": _ENDLESS, "arguments": {"x": "f32[64]"}, "seconds": 300}
            )

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            with anyio.fail_after(120):
                while not _simulators() - before:
                    await anyio.sleep(0.05)
            group.cancel_scope.cancel()
        began = time.monotonic()
        while _simulators() - before:
            assert time.monotonic() - began < 1.0
            await anyio.sleep(0.02)
        assert (await _ask(client, "op_cost", op="TADD", rows=16, cols=64))["total"] == 1

    _with_client(folder, session)


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_although_its_client_keeps_the_input_open(
    sent: signal.Signals, tmp_path: Path
) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    asked = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}
    words = [sys.executable, "-m", "insight_trace", "mcp", "--root", str(tmp_path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(asked).encode() + b"\n")
        server.stdin.flush()
        assert json.loads(server.stdout.readline())["id"] == 0
        server.send_signal(sent)
        try:
            assert server.wait(20) == 128 + sent
        finally:
            server.kill()


def test_hostile_arguments_get_nothing_and_leave_the_server_at_work(tmp_path: Path) -> None:
    from mcp import MCPError

    folder = _folder(tmp_path)
    secret = tmp_path / "secret.hpp"
    secret.write_text("#error the-secret-of-this-machine\n")
    (folder / "link").symlink_to(tmp_path)
    (folder / "scene.py").write_text("raise SystemExit\n")
    (folder / "python.json").write_text(
        (folder / "judge" / "axpy.json").read_text().replace("2 * x + y", "np.fromfile(x)")
    )
    (folder / "baseline.json").write_text(
        (folder / "judge" / "axpy.json").read_text().replace("good.cpp", "link/secret.hpp")
    )
    reads = f'#include "{secret}"\n__global__ AICORE void k(__gm__ float *x) {{}}\n'
    task = "judge/axpy.json"
    hostile: list[tuple[str, dict[str, Any], str]] = [
        ("stats", {"workspace": "../root/../secret.hpp"}, "outside"),
        ("stats", {"workspace": "/etc/passwd"}, "outside"),
        ("stats", {"workspace": "link/secret.hpp"}, "link"),
        ("stats", {"workspace": "a\0b"}, "no path"),
        ("stats", {"workspace": "x" * 5000}, ""),
        ("stats", {"workspace": 7}, ""),
        ("stats", {"workspace": "judge", "else": 1}, ""),
        ("stats", {"workspace": "judge", "limit": 10**9}, "limit"),
        ("kernel", {"file": "judge/good.cpp", "arguments": _ARGUMENTS, "output": "../out"}, "outside"),
        ("kernel", {"file": "judge/good.cpp", "arguments": {"x": "../secret.npy"}}, "outside"),
        ("kernel", {"source": reads, "arguments": {"x": "f32[8]"}}, "secret.hpp"),
        ("kernel", {"source": reads, "file": "judge/good.cpp", "arguments": {}}, "either"),
        ("kernel", {"source": "#error no\n", "arguments": {"x": "f32[9999999999999]"}}, ""),
        ("replay", {"path": "scene.py"}, "Python"),
        ("judge", {"task": "python.json", "file": "judge/good.cpp"}, "fromfile"),
        ("judge", {"task": "baseline.json", "file": "judge/good.cpp"}, "link"),
        ("judge", {"task": task, "file": "/etc/hostname"}, "outside"),
        ("query", {"workspace": "judge", "sql": "select * from read_csv('/etc/passwd')"}, ""),
        ("exec", {"command": ["id"]}, "--programs"),
        ("time_many", {"file": "rounds.cpp", "arguments": {"x": list(range(3000))}}, "variants"),
        ("more", {"cursor": "0:0"}, "cursor"),
    ]

    async def session(client: Client) -> None:
        for name, arguments, said in hostile:
            answer = await client.call_tool(name, arguments)
            text = answer.content[0].text
            assert answer.is_error, f"{name} {arguments}: {text}"
            assert said in text, f"{name} {arguments}: {text}"
            assert "the-secret-of-this-machine" not in text
            assert "Traceback" not in text
        with pytest.raises(MCPError):
            await client.read_resource("page://../secret.hpp")
        assert (await _ask(client, "op_cost", op="TADD", rows=16, cols=64))["total"] == 1

    _with_client(folder, session)
    assert not (tmp_path / "out").exists()


def test_a_root_gives_paths_in_it_alone(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "loop").symlink_to("loop")
    root = Root(tmp_path / "in")
    assert root.inside("a/../b", new=True) == tmp_path / "in" / "b"
    for wrong in ("", "..", "a/../../in2", "loop", "loop/x", str(tmp_path), "none"):
        with pytest.raises(RequestError):
            root.inside(wrong)


def test_the_script_of_the_skill_asks_a_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = ROOT / "skills" / "insight-trace" / "scripts" / "ask.py"

    def asked(*words: str) -> Any:
        monkeypatch.setattr(sys, "argv", [str(script), "--root", str(tmp_path), *words])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(script), run_name="__main__")
        return ended.value.code

    assert asked("op_cost", '{"op": "TADD", "rows": 16, "cols": 64}') == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["cycles"] > 0
    assert asked("stats", '{"workspace": "none"}') == 1
    assert "none" in capsys.readouterr().err


def test_memory_stays_flat_over_many_calls(tmp_path: Path) -> None:
    """Forty here; `benchmarks/mcp_calls.py` makes a thousand."""
    script = str(ROOT / "benchmarks" / "mcp_calls.py")
    words = [sys.executable, script, "--calls", "40", "--root", str(_folder(tmp_path))]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_session_of_the_guide_runs_as_it_stands(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    kernel = re.search(r"```cpp\n(.*?)```", page, re.S)[1]  # type: ignore[index]
    line = "    set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);\n"
    corrected = kernel.replace(line, line + line.replace("ID0", "ID1"), 1)
    calls = re.findall(r"^> (\w+) (\{.*\})\n< (\{.*\})$", page, re.M)
    assert len(calls) == 7

    async def session(client: Client) -> None:
        for tool, asked, expected in calls:
            arguments = json.loads(asked)
            texts = {"<the kernel above>": kernel, "<the kernel above, corrected>": corrected}
            if "source" in arguments:
                arguments["source"] = texts[arguments["source"]]
            answer = await _ask(client, tool, **arguments)
            assert _holds(json.loads(expected), answer), f"{tool}: {answer}"

    _with_client(_folder(tmp_path), session)


def _holds(expected: Any, found: Any) -> bool:
    if isinstance(expected, dict):
        return all(name in found and _holds(value, found[name]) for name, value in expected.items())
    if isinstance(expected, list):
        return len(found) >= len(expected) and all(map(_holds, expected, found))
    return bool(expected == found)


def test_http_is_served_to_who_knows_its_address(tmp_path: Path) -> None:
    from mcp import Client

    words = [sys.executable, "-m", "insight_trace", "mcp", "--root", str(_folder(tmp_path)), "--http", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{20,}/mcp", address)

            async def run() -> None:
                async with Client(address) as client:
                    assert (await _ask(client, "op_cost", op="TADD", rows=16, cols=64))["total"] == 1
                with pytest.raises(Exception):  # noqa: B017
                    async with Client(re.sub(r"/[\w-]+/mcp", "/mcp", address)) as client:
                        await client.list_tools()

            anyio.run(run)
        finally:
            server.terminate()


def test_without_the_sdk_one_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert run_line(["mcp"]) == 2
    assert "pip install 'insight-trace[agents]'" in capsys.readouterr().err
