"""What agents may ask for: one typed request and one typed answer for each tool. Schemas come from these types.

An answer is short: a summary, the few numbers that decide, and `rows`, of which the server hands out the first; `next`
names the tools that say more. Paths are relative to the root.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct, field

from insight_trace.judge.verdict import Advised, Verdict

_SOURCE_CHARACTERS = 1 << 20

Name = Annotated[str, Meta(max_length=1024)]
Source = Annotated[str, Meta(max_length=_SOURCE_CHARACTERS)]
Seconds = Annotated[float, Meta(gt=0, le=600)]
Blocks = Annotated[int, Meta(ge=1, le=1024)]
Value = str | int | float
Axis = int | list[int]


class Request(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The beginning of every request."""

    limit: Annotated[int, Meta(ge=1, le=200, description="rows of the answer; the cursor gives more")] = 10


class Answer(Struct, frozen=True, kw_only=True):
    """The beginning of every answer."""

    summary: str
    next: tuple[str, ...] = ()  # tools that say more
    total: int = 0  # rows that there are
    cursor: str | None = None  # for `more`


# --- rows ------------------------------------------------------------------------------------------------


class FindingRow(Struct, frozen=True):
    """What the checker found."""

    severity: str
    category: str
    message: str
    line: int = 0
    file: str = ""
    fix: str = ""
    kernel: str = ""


class AdviceRow(Struct, frozen=True):
    """Something to try. `simulated`: the run was timed again with the change; else `saves` is a bound."""

    text: str
    saves: int
    simulated: bool
    place: str = ""
    topic: str = ""


class PipeRow(Struct, frozen=True):
    core: str
    pipe: str
    busy: int
    waiting: int
    idle: int
    instructions: int


class StepRow(Struct, frozen=True):
    """One step on the way back from a number, or a line that may have made it wrong."""

    line: int
    op: str
    file: str = ""
    fix: str = ""
    exact: bool = False  # with the fix every output is right
    reason: str = ""


class ChangeRow(Struct, frozen=True):
    what: str
    where: str
    before: int
    after: int


class KernelRow(Struct, frozen=True):
    """One kernel of two builds."""

    name: str
    grade: str
    sentence: str
    line: int = 0
    fix: str = ""
    cycles_a: int | None = None
    cycles_b: int | None = None


class LaunchRow(Struct, frozen=True):
    name: str
    cycles: int | None
    bound: str
    workspace: str = ""
    findings: tuple[str, ...] = ()
    error: str = ""


class TimeRow(Struct, frozen=True):
    """One variant: what varies, and its cycles with the 90 % interval on a chip."""

    parameters: dict[str, Any]
    cycles: int
    low: int
    high: int
    bound: str
    failure: str = ""


# --- kernel, replay, exec --------------------------------------------------------------------------------


class RunAnswer(Answer, frozen=True, kw_only=True):
    workspace: str  # for stats, advice, why, check, compare, query
    cycles: int | None = None
    low: int | None = None  # `low` to `high`: the 90 % interval on a chip
    high: int | None = None
    micros: float | None = None
    outputs: dict[str, str] = field(default_factory=dict)  # by slot: verified, mismatch, unverified …
    source: str = ""  # where a text that was given is kept
    printed: str = ""
    rows: tuple[FindingRow, ...] = ()


class KernelRequest(Request, frozen=True, kw_only=True):
    """Simulate one kernel of a C++ file, check it, and write a workspace with its instruction trace.

    Arguments go by name: "f32[64,64]" (zeros), "f32[64,64]:random", "x.npy", or a number.
    """

    file: Name = ""
    source: Annotated[Source, Meta(description="the kernel's text, instead of a file")] = ""
    arguments: Annotated[
        dict[str, Value], Meta(description='by name, such as {"x": "f32[4096]:random", "n": 64}')
    ]
    entry: Name = ""
    macros: dict[str, Value] = {}
    blocks: Blocks = 1
    soc_version: Annotated[Name, Meta(description="a chip, such as Ascend910B1")] = ""
    expect: Annotated[dict[str, Name], Meta(description=".npy files of what arguments hold afterwards")] = {}
    timing_only: bool = False
    check: bool = True
    output: Annotated[Name, Meta(description="the workspace; usual: runs/NAME_N")] = ""
    seconds: Seconds = 60.0


class ReplayRequest(Request, frozen=True, kw_only=True):
    """Simulate one dispatch of a scene or build, or an earlier workspace again, and write its workspace."""

    path: Annotated[Name, Meta(description="a scene, a PyPTO build, or a workspace")]
    case: Name = ""
    kernel: Name = ""
    dump: Annotated[Name, Meta(description="recorded dispatches; usual: the case is captured")] = ""
    dispatch_id: int | None = None
    soc_version: Name = ""
    timing_only: bool = False
    check: bool = True
    output: Name = ""
    seconds: Seconds = 60.0


class ExecRequest(Request, frozen=True, kw_only=True):
    """Run a program of your own, unchanged, with its kernels on a simulated chip."""

    command: Annotated[list[Name], Meta(min_length=1, max_length=256)]
    soc_version: Name = ""
    check: bool = False
    timing_only: bool = False
    output: Name = ""
    seconds: Seconds = 60.0


class ExecAnswer(Answer, frozen=True, kw_only=True):
    code: int
    rows: tuple[LaunchRow, ...] = ()


class CheckRequest(Request, frozen=True, kw_only=True):
    """What is wrong in a kernel, and on which line: races, memory, synchronisation."""

    path: Annotated[Name, Meta(description="a workspace, a scene or a PyPTO build")]
    case: Name = ""
    kernel: Name = ""
    seconds: Seconds = 60.0


class CheckAnswer(Answer, frozen=True, kw_only=True):
    errors: int
    rows: tuple[FindingRow, ...] = ()


class WhyRequest(Request, frozen=True, kw_only=True):
    """Which lines made a number, or which line made an output wrong, with the change that corrects it."""

    workspace: Name
    element: Annotated[
        Name, Meta(description="SLOT[i,j]; without it: the outputs that differ from what is expected")
    ] = ""
    seconds: Annotated[float, Meta(ge=0, le=120)] = 20.0


class WhyAnswer(Answer, frozen=True, kw_only=True):
    value: Any = None
    rows: tuple[StepRow, ...] = ()


class TraceRequest(Request, frozen=True, kw_only=True):
    """Where the cycles of a run go: pipes, waits, and what bounds it."""

    workspace: Name


class AdviceRequest(TraceRequest, frozen=True, kw_only=True):
    """What to change first in a kernel, with the cycles that each change saves; many were simulated (what-if)."""


class StatsAnswer(Answer, frozen=True, kw_only=True):
    cycles: int
    low: int | None
    high: int | None
    micros: float
    instructions: int
    hot_lines: tuple[str, ...]
    waits: tuple[str, ...]
    rows: tuple[PipeRow, ...] = ()


class AdviceAnswer(Answer, frozen=True, kw_only=True):
    cycles: int
    rows: tuple[AdviceRow, ...] = ()


class CompareRequest(Request, frozen=True, kw_only=True):
    """Two runs, line by line: what became faster or slower, and why."""

    before: Name
    after: Name


class CompareAnswer(Answer, frozen=True, kw_only=True):
    before: int
    after: int
    reason: str
    rows: tuple[ChangeRow, ...] = ()


class DiffRequest(Request, frozen=True, kw_only=True):
    """Two builds of the same kernels: new races, changed values, cycles, with the line and the fix; worst first."""

    a: Name
    b: Name
    case: Name = ""


class DiffAnswer(Answer, frozen=True, kw_only=True):
    errors: int
    rows: tuple[KernelRow, ...] = ()


class JudgeRequest(Request, frozen=True, kw_only=True):
    """Is a kernel right, complete, free of races and fast? Compiles, runs on unknown inputs, compares, checks, times."""

    task: Annotated[Name, Meta(description="a JSON task (docs/judge.md)")]
    file: Name = ""
    source: Annotated[Source, Meta(description="the kernel's text, instead of a file")] = ""


class JudgeAnswer(Answer, frozen=True, kw_only=True):
    verdict: Verdict
    rows: tuple[Advised, ...] = ()


class QueryRequest(Request, frozen=True, kw_only=True):
    """SQL over a recording: instructions, calls, operands, tiles, lines, pipes, findings. Without `sql`: the tables."""

    workspace: Name
    sql: Annotated[str, Meta(max_length=20_000)] = ""


class QueryAnswer(Answer, frozen=True, kw_only=True):
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...] = ()


class OpCostRequest(Request, frozen=True, kw_only=True):
    """Cycles of a tile op; rows, cols, dtype and the others may be lists: every combination is timed."""

    op: Annotated[Name, Meta(description="as kernels spell it: TADD, TMATMUL, TLOAD …")]
    rows: Axis
    cols: Axis
    dtype: str | list[str] = "float"
    k: Axis | None = None
    to: str | None = None
    soc_version: Name = ""


class TimeManyRequest(Request, frozen=True, kw_only=True):
    """Cycles of many variants of one kernel, timing only. Lists are axes: every combination of them is timed."""

    file: Name
    arguments: dict[str, Value | list[Value]]
    macros: dict[str, Value | list[Value]] = {}
    blocks: Blocks | list[Blocks] = 1
    soc_version: Name | list[Name] = ""
    entry: Name = ""
    seconds: Seconds = 60.0


class TimesAnswer(Answer, frozen=True, kw_only=True):
    best: int | None  # the place of the fastest among all
    rows: tuple[TimeRow, ...] = ()  # in the order of the request


class ViewRequest(Request, frozen=True, kw_only=True):
    """Write the page of a run: timeline, pipes, source, advice. Its text is the resource page://PATH."""

    workspace: Name


class ViewAnswer(Answer, frozen=True, kw_only=True):
    page: str
    uri: str


class Tool(Struct, frozen=True):
    """One tool. `changes`: it writes below the root."""

    request: type[Request]
    answer: type[Answer]
    changes: bool = False

    @property
    def description(self) -> str:
        return " ".join((self.request.__doc__ or "").split())


TOOLS: dict[str, Tool] = {
    "kernel": Tool(KernelRequest, RunAnswer, True),
    "replay": Tool(ReplayRequest, RunAnswer, True),
    "exec": Tool(ExecRequest, ExecAnswer, True),
    "check": Tool(CheckRequest, CheckAnswer),
    "why": Tool(WhyRequest, WhyAnswer),
    "stats": Tool(TraceRequest, StatsAnswer),
    "advice": Tool(AdviceRequest, AdviceAnswer),
    "compare": Tool(CompareRequest, CompareAnswer),
    "diff": Tool(DiffRequest, DiffAnswer),
    "judge": Tool(JudgeRequest, JudgeAnswer),
    "query": Tool(QueryRequest, QueryAnswer),
    "op_cost": Tool(OpCostRequest, TimesAnswer),
    "time_many": Tool(TimeManyRequest, TimesAnswer),
    "view": Tool(ViewRequest, ViewAnswer, True),
}
