"""Any moment of a replay, forward and back: what tiles and memories hold, flags, pipes, who changed what.

insight-trace debug WORKSPACE                                   a prompt; `help` lists its commands, Tab completes
insight-trace debug WORKSPACE --op TROWMAX 1 --show dst         the same commands as flags, done in their order
insight-trace debug WORKSPACE --line 44 --diff dst --json       answers as JSON
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

RUNS_KERNELS = True


class _InOrder(argparse.Action):
    """Keeps flags in the order in which they were given."""

    def __call__(
        self,
        _parser: argparse.ArgumentParser,
        options: argparse.Namespace,
        values: Any,
        option: str | None = None,
    ) -> None:
        words: Sequence[str] = values if isinstance(values, list) else [values]
        asked = [*(options.asked or ()), ((option or "").removeprefix("--"), list(words))]
        options.asked = asked


def prepare(parser: argparse.ArgumentParser) -> None:
    from insight_trace.debug.questions import COMMANDS

    parser.add_argument("workspace", type=Path, metavar="WORKSPACE", help="what `replay` wrote")
    parser.add_argument("--json", action="store_true", help="print one JSON object with every answer")
    asked = parser.add_argument_group("commands (done in the order given; none of them: the prompt)")
    for name, (takes, what, _) in COMMANDS.items():
        asked.add_argument(
            f"--{name}", action=_InOrder, nargs="*", metavar="X", dest="asked", default=None,
            help=f"{takes + ': ' if takes else ''}{what}",
        )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    from insight_trace import open_session
    from insight_trace.debug.answer_text import as_data, as_lines
    from insight_trace.debug.questions import Questions

    session = open_session(options.workspace)
    looks = Questions(session)
    if not options.asked:
        from insight_trace.debug.prompt import run_prompt
        from insight_trace.errors import RequestError

        if options.json:
            raise RequestError("--json goes with commands as flags", hint="e.g. --line 44 --show dst --json")
        run_prompt(looks)
        return 0
    answers = [looks.do(name, words) for name, words in options.asked]
    if options.json:
        said = {"answers": [as_data(answer) for answer in answers], "remarks": list(session.remarks)}
        print(json.dumps(said, indent=1))
        return 0
    width = shutil.get_terminal_size().columns
    for answer in answers:
        print("\n".join(as_lines(answer, width)))
    for remark in session.remarks:
        print(f"note: {remark}", file=sys.stderr)
    return 0
