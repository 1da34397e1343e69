"""Tools for agents over the Model Context Protocol: simulate, check, explain, judge and time kernels in one folder.

insight-trace mcp                      over standard input and output, as a client starts it
insight-trace mcp --http 0             over HTTP on this machine; prints the address, which holds a secret

The tools see the folder --root (usual: this one) and never leave it (docs/agents.md).
"""

from __future__ import annotations

import argparse
from pathlib import Path

RUNS = "kernels"


OPTIONS = """
--root FOLDER  path =.  the folder that they work in (.)
--http PORT    int      serve HTTP on 127.0.0.1; 0: a free port
--programs     on       also run Python and programs of the folder: exec, scenes, references
--sandbox      strict|default|off =strict  what kernels and tools may see of the machine (default: %(default)s; SECURITY.md)
"""


def run(options: argparse.Namespace) -> int:
    from insight_trace.agents.root import Root
    from insight_trace.agents.worker import Settings
    from insight_trace.errors import RequestError

    try:
        import mcp  # noqa: F401
    except ImportError:
        raise RequestError(
            "the Python package 'mcp' is not installed", hint="pip install 'insight-trace[agents]'"
        ) from None
    from insight_trace.agents.server import serve_http, serve_stdio

    root = Root(options.root)
    readable = _checkouts()
    settings = Settings(str(root.folder), options.sandbox, options.programs, readable=readable)
    if options.http is None:
        serve_stdio(settings)
        return 0
    if not 0 <= options.http < 65536:
        raise RequestError(f"--http {options.http}: a port from 0 to 65535", hint="0 takes a free one")
    serve_http(settings, options.http, lambda text: print(text, flush=True))
    return 0


def _checkouts() -> tuple[str, ...]:
    """Headers of others that kernels are compiled against, where this environment names them."""
    import os

    names = ("INSIGHT_TRACE_PTO_ISA", "INSIGHT_TRACE_ASCENDC")
    return tuple(str(Path(os.environ[name]).resolve()) for name in names if os.environ.get(name))
