"""The command line: one module per command, each with `OPTIONS`, a table of what it takes, and `run(options)`.

Only the module of the command that was typed is imported; a module imports what it needs inside `run`.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

from insight_trace import __version__
from insight_trace.commands.signals import Terminated, abandon, flushed
from insight_trace.errors import RequestError, as_error, did_you_mean, shown
from insight_trace.limits import cut, steer

if TYPE_CHECKING:
    from insight_trace.results import Progress

# what people come for -> command -> its line in `insight-trace --help`; the module is insight_trace.commands.<command>
GROUPS: dict[str, dict[str, str]] = {
    "get data": {
        "scene": "cases, kernels, func ids and core types of a scene",
        "capture": "run a scene on the host and record every dispatch",
        "dump": "list, show, export and compare what a run recorded of its dispatches",
    },
    "simulate": {
        "replay": "simulate one recorded dispatch, check it, write what Insight opens",
        "replay-all": "every dispatch of a dump, or a sample, verified in one table",
        "profile": "every kernel of a PyPTO build: one trace per kernel",
        "exec": "a program of your own, unchanged, with its kernels on a simulated chip",
        "kernel": "one kernel of a C++ file with arguments from the command line",
        "run": "a case on a whole chip: its time, its timeline, and which kernel to look at",
        "op": "cycles of one tile op, or of a table of them",
        "core-swimlane": "one task under the flags of simpler's core_swimlane",
    },
    "look": {
        "view": "the page: timeline, pipes, source, tiles; two runs side by side, or a table of many kernels",
        "stats": "where the cycles go: pipes, waits, critical path, hot lines, and what to fix first",
        "compare": "two traces, instruction by instruction and pipe by pipe",
        "query": "SQL over a recording: instructions, operands, tiles, lines, pipes, findings",
        "clean": "a trace without clutter: lanes in dataflow order, flags as arrows, per-instruction numbers",
        "export": "core model dump logs to the Insight directory, or check any such directory",
    },
    "correct": {
        "check": "what is wrong in a kernel, and on which line: races, memory, synchronisation",
        "debug": "any moment of a replay, forward and back: tiles, memories, flags, pipes",
        "why": "the lines that made an element, or that made an output wrong",
        "diverge": "two replays: the first op, line and element where their values part",
    },
    "keep": {
        "judge": "candidate kernels for a task: right, wrong, racing, slow, and why; for tools that write kernels",
        "mcp": "tools for agents, over the Model Context Protocol: kernel, check, why, advice, judge and the others",
        "diff": "two builds of the same kernels: new races, changed values, cycles; exit 1 on a new error",
        "gate": "cases against a committed baseline: cycles, verdicts, findings; exit 1 if something is worse",
        "runs": "runs that were made: list, show, compare, prune",
        "calibrate": "a chip's numbers from what a device measured of a run",
    },
    "set up": {
        "demo": "the whole way on the bundled paged attention; prints what to open",
        "new": "a kernel and a scene that run, to begin with",
        "doctor": "what this machine has: compiler, CANN, msprof, ptoas, and what follows",
    },
}
COMMANDS: dict[str, str] = {name: text for group in GROUPS.values() for name, text in group.items()}


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = [
        "usage: insight-trace COMMAND ...",
        "",
        "From one kernel dispatch observed at run time to a trace that opens in MindStudio Insight.",
    ]
    for title, group in GROUPS.items():
        lines += ["", title, *(f"  {name:<{width}}  {text}" for name, text in group.items())]
    lines += [
        "",
        "`insight-trace help COMMAND` says more. --debug shows the traceback of an error; with --no-run nothing is run:",
        "no kernel, no scene's Python, no compiler. What only reads does as always, the others refuse (SECURITY.md).",
    ]
    return "\n".join(lines)


def _unknown(word: str) -> str:
    guess = did_you_mean(word, (*COMMANDS, "help")) or "`insight-trace --help` lists the commands."
    return f"insight-trace: there is no command '{word}'\n  {guess}"


class _Parser(argparse.ArgumentParser):
    """Says what is wrong with a value without repeating all of it."""

    def error(self, message: str) -> NoReturn:
        # a usage of forty options says nothing; the flag that was meant does
        unknown = (
            message.removeprefix("unrecognized arguments: ").split() if "unrecognized" in message else []
        )
        flags = [word.partition("=")[0] for word in unknown if word.startswith("--")]
        known = [flag.lstrip("-") for flag in self._option_string_actions]
        hint = did_you_mean(flags[0].lstrip("-"), known, "did you mean '--{}'? ") if flags else ""
        more = f"`{self.prog.replace('insight-trace ', 'insight-trace help ', 1)}` lists the options"
        self.exit(2, f"{self.prog}: error: {shown(message)}\n  {hint}{more}\n")


_BOUNDS = """
# limits (docs/limits.md)
--sandbox          strict|default|off  what the kernels' processes may do (default: default; SECURITY.md)
--compile-limit S  float               seconds that one compilation may take (120)
"""


def prepare(parser: argparse.ArgumentParser, command: ModuleType) -> None:
    """Adds what a command takes: its table, and what no table says."""
    from insight_trace.options import add_table

    add_table(parser, getattr(command, "OPTIONS", ""), **getattr(command, "KINDS", {}))
    if hasattr(command, "prepare"):
        command.prepare(parser)
    if getattr(command, "RUNS_KERNELS", False):
        add_table(parser, _BOUNDS)


def given(function: Any, typed: argparse.Namespace, **more: Any) -> dict[str, Any]:
    """What a function of the API takes: what was typed under the names of its parameters, and `more`."""
    from insight_trace.options import RunOptions, VendorOptions, options_of

    takes = getattr(function, "__wrapped__", function).__annotations__
    found = {word: value for word, value in vars(typed).items() if word in takes} | more
    if "options" in takes and "options" not in more:
        found["options"] = options_of(typed, RunOptions)
    if "vendor" in takes and "vendor" not in more:
        found["vendor"] = options_of(typed, VendorOptions)
    return found


def call(name: str, typed: argparse.Namespace, **more: Any) -> Any:
    """Calls a function of the API with what is given to it; on a terminal it says how far it is."""
    import insight_trace

    function = getattr(insight_trace, name)
    asked = given(function, typed, **more)
    if "progress" in asked or "progress" not in getattr(function, "__wrapped__", function).__annotations__:
        return function(**asked)
    with shown_progress(quiet=getattr(typed, "json", False)) as progress:
        return function(**asked, progress=progress)


def show(typed: argparse.Namespace, data: Callable[[], Any], text: Callable[[], Iterable[str]]) -> None:
    """Prints an answer: with --json its data, else its lines."""
    if typed.json:
        import json

        print(json.dumps(data(), indent=2))
        return
    for line in text():
        print(line)


def _parser(name: str, command: ModuleType, everything: bool = False) -> argparse.ArgumentParser:
    parser = _Parser(
        prog=f"insight-trace {name}",
        description=command.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    prepare(parser, command)
    seldom = getattr(command, "SELDOM", "").split()
    if seldom:
        parser.add_argument(
            "--help-all", action="help", help="all options, with those that are seldom needed"
        )
        for action in parser._actions:
            if action.dest in seldom and not everything:
                action.help = argparse.SUPPRESS
    return parser


@contextlib.contextmanager
def _bounds_of(options: argparse.Namespace) -> Iterator[None]:
    """The two options are variables of this process for a while, so that they hold wherever a kernel runs."""
    variables = {}
    if getattr(options, "sandbox", None):
        variables["INSIGHT_TRACE_SANDBOX"] = options.sandbox
    flags = {"time_limit": "--time-limit", "seconds": "--time-limit", "compile_limit": "--compile-limit"}
    for name, flag in flags.items():
        seconds = getattr(options, name, None)
        if seconds is not None:
            from insight_trace.limits import seconds_given

            seconds_given(seconds, flag)
    if getattr(options, "compile_limit", None) is not None:
        variables["INSIGHT_TRACE_COMPILE_SECONDS"] = str(options.compile_limit)
    with _variables(variables):
        yield


@contextlib.contextmanager
def _variables(variables: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def numbers(text: str | None, flag: str) -> tuple[int, ...]:
    """`0,1,2` as numbers."""
    from insight_trace.errors import RequestError

    if text is None:
        return ()
    try:
        return tuple(int(word) for word in text.split(","))
    except ValueError:
        raise RequestError(
            f"{flag} '{text}' is not a number or a list like 0,1,2",
            hint="`insight-trace scene SCENE` lists kernels and func ids",
        ) from None


@contextlib.contextmanager
def shown_progress(quiet: bool = False) -> Iterator[Progress]:
    """One line on a terminal's stderr that says what is being done; nothing elsewhere."""
    from insight_trace.results import silent

    if quiet or not sys.stderr.isatty():
        yield silent
        return
    from insight_trace.executor import Remaining

    rest = Remaining()

    def show(step: str, done: int = 0, total: int = 0, /) -> None:
        counted = f": {rest.text(done, total)}" if total else " …"
        steer(sys.stderr, f"\r\x1b[K{cut(step)}{counted}")

    try:
        yield show
    finally:
        steer(sys.stderr, "\r\x1b[K")


def run_line(argv: list[str]) -> int:
    """Runs one command line; returns the exit code (0 done, 1 the job failed, 2 the request was wrong)."""
    ours = argv[: argv.index("--")] if "--" in argv else argv  # what follows is somebody else's command line
    debug, no_run = "--debug" in ours, "--no-run" in ours
    argv = [word for word in ours if word not in ("--debug", "--no-run")] + argv[len(ours) :]
    name = argv[0] if argv and argv[0] in COMMANDS else ""
    label = f"insight-trace {name}".strip()
    try:
        _require_names(ours)
        with _variables({"INSIGHT_TRACE_NO_RUN": "1"} if no_run else {}):
            code = _run(argv)
        error = flushed()
        if error is not None and not isinstance(error, BrokenPipeError):
            raise error
        return code
    except BrokenPipeError:
        # the reader of our output went away (`| head`): nothing more to say to it
        abandon(sys.stdout)
        return 0
    except KeyboardInterrupt as interrupt:
        _say(f"{label}: {'ended' if isinstance(interrupt, Terminated) else 'interrupted'}")
        return interrupt.code if isinstance(interrupt, Terminated) else 130
    except Exception as error:
        if debug:
            raise
        known = as_error(error)
        _say(f"{label}: {shown(str(known))}")
        return known.exit_code


def _require_names(words: list[str]) -> None:
    """Refuses names that are not UTF-8 before anything is done: JSON, pages and traces are, and name what they are of."""
    with contextlib.suppress(
        FileNotFoundError
    ):  # a working folder that is gone is reported where it is needed
        words = [os.getcwd(), *words]  # noqa: PTH109
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise RequestError(
                f"{shown(word)}: this name is not UTF-8, and what is written here names it",
                hint="rename it, or copy what is in it to a folder whose name is UTF-8",
            ) from None


def _say(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


def _run(argv: list[str]) -> int:
    if not argv or argv[0] in ("-h", "--help"):
        print(_overview())
        return 0 if argv else 2
    if argv[0] == "help":
        if len(argv) == 1:
            print(_overview())
            return 0
        argv = [argv[1], "--help"]
    if argv[0] in ("-V", "--version"):
        print(f"insight-trace {__version__}")
        return 0
    name, rest = argv[0], argv[1:]
    if name not in COMMANDS:
        _say(shown(_unknown(name)))
        return 2
    command = importlib.import_module(f"insight_trace.commands.{name.replace('-', '_')}")
    try:
        options = _parser(name, command, "--help-all" in rest).parse_args(rest)
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else 2
    runs = getattr(command, "RUNS", "kernels" if getattr(command, "RUNS_KERNELS", False) else "")
    with _bounds_of(options):
        if not runs:
            return int(command.run(options))
        from insight_trace.supervisor import adopting, require_running

        if not getattr(command, "only_reads", lambda _options: False)(options):
            require_running(runs)
        with adopting() if runs == "kernels" else contextlib.nullcontext():
            return int(command.run(options))
