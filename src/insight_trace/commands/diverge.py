"""Two runs of a dispatch: the first tile op, line and element where their values part.

insight-trace diverge BEFORE AFTER                  a kernel before and after a change, or two chips
insight-trace diverge WORKSPACE --order 3           the same run with cores and pipes in another order
insight-trace diverge WORKSPACE DUMP                a replay, and the tensors that a dump has of its dispatch
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

RUNS_KERNELS = True


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", type=Path, metavar="A", help="a workspace of `replay`")
    parser.add_argument("b", type=Path, nargs="?", metavar="B", help="another one, or a dump")
    parser.add_argument(
        "--order",
        type=int,
        metavar="N",
        help="instead of B: A in order N of cores and pipes (as in check --perturb)",
    )
    parser.add_argument(
        "--dispatch-id", type=int, metavar="K", help="of the dump; the one that A replays without it"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    from insight_trace import diverge

    found = diverge(options.a, options.b, order=options.order, dispatch_id=options.dispatch_id)
    print(json.dumps(found.data(), indent=1) if options.json else "\n".join(found.lines()))
    return 0
