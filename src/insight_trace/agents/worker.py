"""The process that runs the tools, one request after the other; the server ends it to cancel one.

What it starts holds a leash (supervisor.py): compilers and simulators end with it, however it ends. Frames are a
length of four bytes and JSON, on the input and output that it was started with.

    python -m insight_trace.agents.worker SETTINGS       (JSON: Settings)
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from msgspec import Struct

from insight_trace.errors import as_error

LARGEST = 64 << 20  # a frame


class Settings(Struct, frozen=True):
    """How the tools of one server run."""

    root: str
    sandbox: str = "strict"
    programs: bool = False  # the user's own Python and programs may be run
    scratch: str = ""  # a folder of this process for temporary files, and one in memory
    memory: str = ""
    readable: tuple[str, ...] = ()  # also: checkouts of headers


def read_frame(stream: BinaryIO) -> bytes | None:
    head = stream.read(4)
    if len(head) < 4:
        return None
    size = int.from_bytes(head, "little")
    return stream.read(size) if size <= LARGEST else None


def frame(message: dict[str, Any]) -> bytes:
    body = msgspec.json.encode(message)
    return len(body).to_bytes(4, "little") + body


def main(argument: str) -> int:
    settings = msgspec.json.decode(argument, type=Settings)
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what a library prints is no answer
    from insight_trace.supervisor import end_with_parent

    end_with_parent(os.getppid())
    try:
        tools = _ready(settings)
    except Exception as error:
        answers.write(frame({"kind": "refused", "text": str(as_error(error))}))
        return 1
    answers.write(frame({"kind": "ready"}))
    while (request := read_frame(requests)) is not None:
        asked = msgspec.json.decode(request)

        def progress(step: str, done: int = 0, total: int = 0, /) -> None:
            answers.write(frame({"kind": "progress", "step": step, "done": done, "total": total}))

        try:
            answer = tools.call(asked["tool"], asked["arguments"], progress)
            answers.write(frame({"kind": "answer", "answer": answer}))
        except Exception as error:  # a worker answers whatever happens
            known = as_error(error)
            answers.write(frame({"kind": "error", "text": str(known)}))
    return 0


def _ready(settings: Settings) -> Any:
    """The tools, in a process that is confined to what they need."""
    os.environ["INSIGHT_TRACE_SANDBOX"] = settings.sandbox
    if settings.scratch:
        os.environ["TMPDIR"] = settings.scratch
    if settings.memory:
        os.environ["INSIGHT_TRACE_SHARED_MEMORY"] = settings.memory
    os.chdir(settings.root)
    from insight_trace.agents.root import Root, confine
    from insight_trace.agents.tools import Tools
    from insight_trace.cache import default_root
    from insight_trace.simulate.embedded.toolchain import Toolchain

    root = Root(Path(settings.root))
    if settings.sandbox == "strict":
        # what a start of the compiler finds out stays in the cache
        cache = default_root()
        cache.mkdir(parents=True, exist_ok=True)
        compiler = Toolchain.find().compiler
        own = Path(compiler.command[0]).resolve().parents[1] if compiler.command else Path("/usr")
        confine(
            (*settings.readable, own),
            (root.folder, cache, settings.scratch or "/tmp", settings.memory or "/dev/shm"),
        )
    return Tools(root, programs=settings.programs)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
