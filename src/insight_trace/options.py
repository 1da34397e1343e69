"""How to run: every option of a simulation with its default, and the flags that set it, each once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from msgspec import Struct
from msgspec.structs import fields, force_setattr, replace

from insight_trace.chips import TARGETS
from insight_trace.errors import RequestError, did_you_mean
from insight_trace.limits import BLOCKS, RUN_SECONDS, cut

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

SIMULATORS = ("embedded", "msprof")  # by the names that --simulator takes, besides auto
PRESETS = ("device", "camodel")
LAUNCHES = ("task", "kernel", "first")
PLATFORMS = tuple(f"{target}{kind}" for target in TARGETS for kind in ("", "sim"))
KERNEL_SECONDS = 300.0  # of one kernel of a profile, and of each step around it
_LAUNCHES, _MINUTES = 5000, 2880  # that msprof takes at most


class RunOptions(Struct, frozen=True):
    """How a job runs, whichever product asks for it."""

    simulator: str = "auto"
    soc_version: str | None = None  # a chip by name; for the embedded simulator also a chip file
    target: str | None = None  # None: what chip, platform, case or the kernel's place say
    platform: str | None = None
    any_target: bool = False  # also on a target that the scene does not name
    preset: str = "device"
    blocks: int | None = None  # None: as recorded
    timing_only: bool = False
    check: bool = False  # look for what is wrong in the kernel
    orders: int = 0  # with check: how many other orders of cores and pipes
    l2: str | None = None  # what L2 holds at first: cold (None), warm, trace: what earlier dispatches left
    # task (None): started by a scheduler; kernel: launched by itself, as often before; first: for the first time, so that
    # its code is fetched and its pages are looked up
    launch: str | None = None
    mark_cost: bool = False  # TRACE_START and TRACE_STOP take the time that they take on a device
    pto_isa_root: Path | None = None  # checkout whose headers kernels compile against; None: bundled ones
    ascendc_root: Path | None = None  # checkout of asc-devkit for AscendC kernels; None: our own subset
    seconds: float = RUN_SECONDS  # that the kernel may run
    host_cores: int | None = None  # that blocks may be run on at once; None: all of this process
    insight: bool = True  # write an Insight directory, and not the recording alone
    cores: str | None = (
        None  # of the Insight directory: names, blocks as core3, or all; None: what Insight can open
    )
    window: str | None = None  # of the Insight directory: BEGIN:END in cycles, or with us behind each
    include_source: bool = True  # source text in the Insight directory
    dump_logs: bool = False  # also the logs that the vendor's exporter reads
    keep_outputs: bool = False  # what the kernel wrote, as .npy

    def __post_init__(self) -> None:
        require_known(self.simulator)
        if self.platform is not None:
            target_of_platform(self.platform)
        if self.blocks is not None and self.blocks < 1:
            raise RequestError(f"--blocks {self.blocks}: a kernel runs in at least one block")
        if self.blocks is not None and self.blocks > BLOCKS:
            raise RequestError(f"--blocks {cut(str(self.blocks))}: at most {BLOCKS:,} blocks are replayed")
        if self.window is not None:
            window_of(self.window, 1.0)
        force_setattr(self, "soc_version", self.soc_version or None)

    @property
    def chosen(self) -> tuple[Any, ...]:
        """What decides a result: all but where it runs, how long it may take and what is written of it."""
        return (
            self.soc_version, self.preset, self.timing_only, self.check, self.orders, self.l2, self.launch, self.mark_cost,
        )  # fmt: skip


class RunKeywords(TypedDict, total=False):
    """The fields of RunOptions, as functions take them by name; RunOptions has the defaults and says what they mean."""

    simulator: str
    soc_version: str | None
    target: str | None
    platform: str | None
    any_target: bool
    preset: str
    blocks: int | None
    timing_only: bool
    check: bool
    orders: int
    l2: str | None
    launch: str | None
    mark_cost: bool
    pto_isa_root: Path | None
    ascendc_root: Path | None
    seconds: float
    host_cores: int | None
    insight: bool
    cores: str | None
    window: str | None
    include_source: bool
    dump_logs: bool
    keep_outputs: bool


class VendorOptions(Struct, frozen=True):
    """What the vendor's simulator, and the programs that are built for it, want to know in addition."""

    cann_home: Path | None = None
    cann_set_env: Path | None = None
    ptoas_root: Path | None = None  # a checkout whose test case generator is used
    aicore_arch: str = ""
    msopprof: Path | None = None  # a worker from another installation
    auto_msopprof: bool = False
    hardware_blocks: int = 1
    launch_count: int = 1
    timeout_minutes: int = 120  # the unit that msprof counts in
    device: int = 0
    debug_lines: bool = True
    step_seconds: float = KERNEL_SECONDS
    build_seconds: float = 600.0

    def __post_init__(self) -> None:
        if not 1 <= self.launch_count <= _LAUNCHES:
            raise RequestError(f"--launch-count {self.launch_count}: msprof takes 1 to {_LAUNCHES}")
        if not 1 <= self.timeout_minutes <= _MINUTES:
            raise RequestError(
                f"--msprof-timeout {self.timeout_minutes}: msprof takes 1 to {_MINUTES} minutes"
            )

    @property
    def names_the_vendor(self) -> bool:
        """Whether something was said that only the vendor's simulator reads."""
        return any((self.cann_home, self.cann_set_env, self.ptoas_root, self.msopprof))


def window_of(text: str, mhz: float) -> tuple[float, float]:
    """Begin and end of a window in cycles."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(us)?:(\d+(?:\.\d+)?)(us)?", text)
    if found is None or len(text) > 60:
        raise RequestError(
            f"--window {cut(text)}: a window is BEGIN:END in cycles, or in microseconds with us behind each",
            hint="--window 1000:5000, --window 2us:7.5us",
        )
    begin, end = (float(found[i]) * (mhz if found[i + 1] else 1.0) for i in (1, 3))
    if not begin < end:
        raise RequestError(f"--window {text}: it ends before it begins")
    return begin, end


def require_known(simulator: str) -> str:
    """The name, if it is one that `--simulator` takes."""
    if simulator not in ("auto", *SIMULATORS):
        raise RequestError(
            f"there is no simulator '{simulator}'", hint=f"there are: auto, {', '.join(SIMULATORS)}"
        )
    return simulator


def target_of_platform(platform: str) -> str:
    """The family of a platform: a5sim is the a5, simulated."""
    if platform not in PLATFORMS:
        guess = did_you_mean(platform, PLATFORMS)
        raise RequestError(
            f"there is no platform '{cut(platform)}'", hint=f"{guess}there are: {', '.join(PLATFORMS)}"
        )
    return platform.removesuffix("sim")


# --- flags ------------------------------------------------------------------------------------------


class Flag(Struct, frozen=True):
    """How an option is typed. `hidden` are names of other tools, which work and are not listed."""

    name: str
    help: str
    metavar: str | None = None
    choices: tuple[str, ...] | None = None
    kind: Callable[[str], Any] | None = None
    hidden: tuple[str, ...] = ()


FLAGS: dict[str, Flag] = {
    "simulator": Flag(
        "--simulator", "auto: the vendor's where CANN is named (by an option or by its environment), else ours",
        choices=("auto", *SIMULATORS),
    ),
    "soc_version": Flag("--chip", "the chip, e.g. Ascend910B1, or a chip file", "NAME", hidden=("--soc-version",)),
    "target": Flag("--target", "the chip's family, where the scene does not say", choices=tuple(TARGETS)),
    "platform": Flag("--platform", "a2a3, a2a3sim, a5 or a5sim", "P"),
    "any_target": Flag("--any-target", "also on a target that the scene does not name"),
    "preset": Flag("--preset", "times as on the chip, or as in the vendor's simulator (%(default)s)", choices=PRESETS),
    "blocks": Flag(
        "--blocks", "how many blocks run (default: as recorded)", "N", kind=int,
        hidden=("--block-dim", "--replay-blocks", "--spmd-block-num"),
    ),
    "timing_only": Flag("--timing-only", "instructions and times, no arithmetic"),
    "check": Flag("--check", "look for races, wrong memory and wrong synchronisation"),
    "orders": Flag("--perturb", "also N other orders of cores and pipes", "N", kind=int),
    "l2": Flag(
        "--l2", "what L2 holds at first: nothing, what the same run left, what earlier dispatches of the dump left",
        choices=("cold", "warm", "trace"),
    ),
    "launch": Flag("--launch", "a task of a scheduler, a kernel by itself, or that for the first time", choices=LAUNCHES),
    "mark_cost": Flag("--mark-cost", "TRACE_START and TRACE_STOP take time, as where ASCENDC_TRACE_ON is defined"),
    "seconds": Flag("--time-limit", "seconds that a kernel may run (%(default)g)", "S", kind=float),
    "insight": Flag("--no-insight", "write the recording, and no Insight directory"),
    "cores": Flag("--cores", "of the Insight directory: core3, core3.veccore0, all (default: what it can open)", "LIST"),
    "window": Flag("--window", "of the Insight directory: cycles BEGIN:END, or with us", "A:B"),
    "include_source": Flag("--no-source", "leave source text out of the Insight directory"),
    "dump_logs": Flag("--dump-logs", "also write logs that the vendor's exporter reads"),
    "keep_outputs": Flag("--keep-outputs", "keep what kernels wrote, as .npy"),
    "cann_home": Flag("--cann-home", "the toolkit to use", "P", kind=Path),
    "cann_set_env": Flag("--cann-set-env", "the toolkit's set_env.sh", "P", kind=Path),
    "pto_isa_root": Flag("--pto-isa-root", "checkout of pto-isa whose headers kernels compile against", "P", kind=Path),
    "ascendc_root": Flag("--ascendc-root", "checkout of asc-devkit, for kernels in AscendC", "P", kind=Path),
    "ptoas_root": Flag("--ptoas-root", "PTOAS checkout whose test case generator is used", "P", kind=Path),
    "aicore_arch": Flag("--aicore-arch", "--cce-aicore-arch of CANN builds", "A"),
    "msopprof": Flag("--msopprof", "worker binary for msprof", "FILE", kind=Path),
    "auto_msopprof": Flag("--auto-msopprof", "look for a worker in other local CANN installations"),
    "hardware_blocks": Flag("--hw-block-num", "blocks that are launched (%(default)s)", "N", kind=int),
    "launch_count": Flag("--launch-count", "how often the kernel is launched (%(default)s)", "N", kind=int),
    "timeout_minutes": Flag("--msprof-timeout", "minutes of a simulation (%(default)s)", "MIN", kind=int,
                            hidden=("--timeout",)),
    "device": Flag("--device", "id of the simulated device (%(default)s)", "ID", kind=int),
    "debug_lines": Flag("--debug-lines", "compile with -g, so that traces have source lines (default)"),
    "build_seconds": Flag("--build-timeout", "seconds of one build (%(default)g)", "S", kind=float),
}  # fmt: skip

Options = TypeVar("Options", RunOptions, VendorOptions)


def add_options(
    to: argparse._ActionsContainer, kind: type[RunOptions] | type[VendorOptions], *names: str, **defaults: Any
) -> None:
    """Adds the flags of these options; `defaults` are a command's own."""
    import argparse

    usual = {field.name: field.default for field in fields(kind)}
    for name in names:
        flag, default = FLAGS[name], defaults.get(name, usual[name])
        how: dict[str, Any] = {"dest": name, "default": default, "help": flag.help}
        if isinstance(usual[name], bool):
            negated = usual[name] and flag.name.startswith("--no-")
            plain = (
                argparse.BooleanOptionalAction if flag.name in ("--auto-msopprof", "--debug-lines") else None
            )
            how["action"] = "store_false" if negated else plain or "store_true"
        else:
            how |= {"metavar": flag.metavar, "choices": flag.choices, "type": flag.kind or str}
        to.add_argument(flag.name, **how)
        if flag.hidden:
            to.add_argument(*flag.hidden, **how | {"help": argparse.SUPPRESS, "default": argparse.SUPPRESS})


def positive(text: str) -> int:
    """A number as a flag takes it."""
    import argparse

    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{cut(text)}' is not a number of one or more")
    return int(text)


def add_executor_options(to: argparse._ActionsContainer) -> None:
    """Where many jobs run."""
    add_table(
        to,
        """
        --jobs N           positive  how many run at once (default: one for each core)
        --cluster ADDRESS  text      run them on the workers of a Dask cluster (extra: cluster)
        """,
    )


def add_table(to: argparse._ActionsContainer, rows: str, **kinds: Callable[[str], Any]) -> None:
    """Adds flags and arguments, one a row: its names with the metavar, its kind, its help, two blanks between them.

    A kind is on, either (--x, --no-x), text, path, int, float, positive, a|b|c or one of `kinds`; behind it may stand
    =DEFAULT, many, required, ? * +, or alone: the flag without a value means True.
    `NAMES -> DEST` names where the value goes. `@ a b` are options of the two types above, `@ jobs` where many jobs run.
    `# TITLE` begins a group, and a help of - is not listed.
    """
    import argparse

    known: dict[str, Callable[[str], Any]] = {
        "path": Path,
        "int": int,
        "float": float,
        "positive": positive,
        **kinds,
    }
    group = to
    for row in filter(None, map(str.strip, rows.splitlines())):
        mark, _, rest = row.partition(" ")
        if mark == "#":
            group = to.add_argument_group(rest)
        elif row == "@ jobs":
            add_executor_options(group)
        elif mark == "@":
            for name in rest.split():
                add_options(
                    group, RunOptions if name in RunOptions.__struct_fields__ else VendorOptions, name
                )
        else:
            typed, kind, text = re.split(r"\s{2,}", row, maxsplit=2)
            typed, _, dest = typed.partition(" -> ")
            words = typed.split()
            flags = row.startswith("-")
            names = [word for word in words if word.startswith("-")] if flags else words[:1]
            how: dict[str, Any] = {"help": argparse.SUPPRESS if text == "-" else text}
            how |= {"dest": dest} if dest else {}
            what, *more = kind.split()
            if what == "on":
                how["action"] = "store_true"
            elif what == "either":
                how |= {"action": argparse.BooleanOptionalAction, "default": True}
            else:
                how |= {"metavar": " ".join(words[len(names) :]) or None, "type": known.get(what)}
                how |= {"choices": tuple(what.split("|"))} if "|" in what else {}
            for word in more:
                if word.startswith("="):
                    how["default"] = (known.get(what) or str)(word[1:])
                elif word == "many":
                    how |= {"action": "append", "default": []}
                elif word == "required":
                    how["required"] = True
                else:
                    how |= {"nargs": "?", "const": True} if word == "alone" else {"nargs": word}
            group.add_argument(*names, **how)


def options_of(typed: argparse.Namespace, kind: type[Options], **more: Any) -> Options:
    """The options that were typed; what a command has no flag for keeps its default."""
    names = {field.name for field in fields(kind)}
    return kind(**{name: value for name, value in vars(typed).items() if name in names}, **more)


def repeated(options: RunOptions, kept: dict[str, Any]) -> RunOptions:
    """The options with what they leave open taken from those that a workspace kept."""
    usual = RunOptions()
    names = ("target", "soc_version", "simulator", "preset", "timing_only", "l2", "launch", "mark_cost")
    open_ = {
        n: kept[n] for n in names if kept.get(n) is not None and getattr(options, n) == getattr(usual, n)
    }
    for name in ("pto_isa_root", "ascendc_root"):
        if getattr(options, name) is None and isinstance(kept.get(name), str):
            open_[name] = Path(kept[name])
    return replace(options, **open_)


def run_options(options: RunOptions | None, more: Mapping[str, Any]) -> RunOptions:
    """Options as functions take them: an object, single fields by name, or both."""
    known = {field.name for field in fields(RunOptions)}
    for name in more:
        if name not in known:
            raise TypeError(
                f"there is no option '{name}'" + did_you_mean(name, known, ": did you mean '{}'?")
            )
    return replace(options or RunOptions(), **more)
