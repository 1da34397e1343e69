"""The tools: each is a function of the API, from a typed request to a typed answer (forms.py)."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from insight_trace.agents.forms import (
    TOOLS,
    AdviceAnswer,
    AdviceRequest,
    AdviceRow,
    Answer,
    ChangeRow,
    CheckAnswer,
    CheckRequest,
    CompareAnswer,
    CompareRequest,
    DiffAnswer,
    DiffRequest,
    ExecAnswer,
    ExecRequest,
    FindingRow,
    JudgeAnswer,
    JudgeRequest,
    KernelRequest,
    KernelRow,
    LaunchRow,
    OpCostRequest,
    PipeRow,
    QueryAnswer,
    QueryRequest,
    ReplayRequest,
    RunAnswer,
    StatsAnswer,
    StepRow,
    TimeManyRequest,
    TimeRow,
    TimesAnswer,
    TraceRequest,
    ViewAnswer,
    ViewRequest,
    WhyAnswer,
    WhyRequest,
)
from insight_trace.agents.root import Root
from insight_trace.errors import RequestError
from insight_trace.finding import Finding
from insight_trace.results import Progress

if TYPE_CHECKING:
    from insight_trace.replay.replaying import Replay
    from insight_trace.trace.bottleneck import Advice

MOST_ROWS = 2000  # that an answer keeps for the cursor
_TEXT = 300  # characters of a sentence in a row


class Tools:
    """The tools in one folder."""

    def __init__(self, root: Root, *, programs: bool = False) -> None:
        self.root = root
        self.programs = programs

    def call(self, name: str, arguments: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
        """The answer as JSON has it."""
        if name == "resource":
            return self._resource(str(arguments["uri"]))
        tool = TOOLS[name]
        try:
            request = msgspec.convert(dict(arguments), tool.request, strict=True)
        except msgspec.ValidationError as error:
            raise RequestError(f"{name}: {error}") from None
        function: Callable[[Any, Progress], Answer] = getattr(self, f"_{name}")
        answer: dict[str, Any] = msgspec.to_builtins(function(request, progress))
        return answer

    # --- running ------------------------------------------------------------------------------------------

    def _kernel(self, asked: KernelRequest, progress: Progress) -> RunAnswer:
        from insight_trace.program.kernel_file import parse_value
        from insight_trace.program.run_kernel import kernel

        file, kept = self._source_of(asked.file, asked.source)
        for text in asked.arguments.values():
            if isinstance(text, str) and (text.endswith(".npy") or text.startswith("@")):
                self.root.inside(text.removeprefix("@"))
        progress("simulate")
        function = kernel(
            file,
            asked.entry or None,
            soc_version=asked.soc_version or None,
            defines=tuple(f"{name}={value}" for name, value in asked.macros.items()),
            seconds=asked.seconds,
        )
        replay = function.replay(
            {
                name: parse_value(value, name) if isinstance(value, str) else value
                for name, value in asked.arguments.items()
            },
            blocks=asked.blocks,
            expected={name: self.root.inside(path) for name, path in asked.expect.items()},
            output=self.root.fresh(asked.output, file.stem),
            timing_only=asked.timing_only,
            check=asked.check,
        )
        return self._of_replay(replay, self.root.name(file) if kept else "")

    def _replay(self, asked: ReplayRequest, progress: Progress) -> RunAnswer:
        from insight_trace import replay

        path = self.root.inside(asked.path)
        self._allow_python(path)
        done = replay(
            path,
            case=asked.case or None,
            kernel=asked.kernel or None,
            dump_dir=self.root.inside(asked.dump) if asked.dump else None,
            dispatch_id=asked.dispatch_id,
            output=self.root.fresh(asked.output, path.stem),
            progress=progress,
            soc_version=asked.soc_version or None,
            timing_only=asked.timing_only,
            check=asked.check,
            seconds=asked.seconds,
        )
        return self._of_replay(done, "")

    def _of_replay(self, replay: Replay, source: str) -> RunAnswer:
        trusted = replay.confidence
        run = replay.simulation
        findings = tuple(self._finding(one) for one in replay.findings)
        workspace = self.root.name(replay.workspace)
        return RunAnswer(
            summary=self._told(replay.summary()),
            next=(
                *(("check",) if any(row.severity == "error" for row in findings) else ()),
                *(("why",) if replay.mismatched else ()),
                "advice",
                "stats",
            ),
            total=len(findings),
            workspace=workspace,
            cycles=replay.cycles,
            low=trusted.low if trusted else None,
            high=trusted.high if trusted else None,
            micros=round(run.cycles / run.mhz, 3) if run else None,
            outputs={str(check.slot): str(check.status) for check in replay.checks},
            source=source,
            printed=(run.printed if run else "")[:2000],
            rows=findings,
        )

    def _exec(self, asked: ExecRequest, progress: Progress) -> ExecAnswer:
        from insight_trace import run_program

        if not self.programs:
            raise RequestError(
                "programs are not run here",
                hint="who starts the server decides: `insight-trace mcp --programs`",
            )
        progress("run the program")
        done = run_program(
            asked.command, soc_version=asked.soc_version or None, check=asked.check, timing_only=asked.timing_only,
            seconds=asked.seconds, output=self.root.fresh(asked.output, "exec"),
        )  # fmt: skip
        rows = tuple(
            LaunchRow(
                row["name"], row.get("cycles"), row.get("bound") or "", self.root.name(row["workspace"] or ""),
                tuple(row["findings"] or ()), str(row.get("error") or ""),
            )
            for row in done.data()["launches"][:MOST_ROWS]
        )  # fmt: skip
        return ExecAnswer(
            summary=done.summary(), next=("stats", "advice"), total=len(rows), code=done.code, rows=rows
        )

    # --- correctness ---------------------------------------------------------------------------------------

    def _check(self, asked: CheckRequest, progress: Progress) -> CheckAnswer:
        from insight_trace import check

        path = self.root.inside(asked.path)
        self._allow_python(path)
        found = check(
            path,
            case=asked.case or None,
            kernel=asked.kernel or None,
            progress=progress,
            seconds=asked.seconds,
        )
        rows = tuple(
            self._finding(finding, " + ".join(one.kernels))
            for one in found.examined
            for finding in one.findings
        )
        rows += tuple(
            FindingRow("error", "failure", self._told(str(one.failure)), kernel=" + ".join(one.kernels))
            for one in found.examined
            if one.failure
        )
        return CheckAnswer(
            summary=found.summary(),
            total=len(rows),
            errors=found.errors + found.failed,
            rows=rows[:MOST_ROWS],
        )

    def _why(self, asked: WhyRequest, progress: Progress) -> WhyAnswer:
        from insight_trace import why

        progress("follow the number back")
        found = why(self.root.inside(asked.workspace), asked.element or None, seconds=asked.seconds)
        data = found.data()
        if found.mismatch is None:
            rows = tuple(
                StepRow(
                    int(link.get("line") or 0),
                    str(link.get("op") or ""),
                    self.root.name(link.get("file") or ""),
                )
                for link in data["chain"]
            )
            value = data["value"]
        else:
            rows = tuple(
                StepRow(
                    s["line"], s["op"], self.root.name(s["file"]), s["fix"] or "", bool(s["exact"]),
                    self._told("; ".join(s["reasons"][:2])),
                )
                for s in data["suspects"]
            )  # fmt: skip
            value = data["wrong"][:1]
        return WhyAnswer(
            summary=self._told(found.summary()), total=len(rows), value=value, rows=rows[:MOST_ROWS]
        )

    # --- reading -------------------------------------------------------------------------------------------

    def _stats(self, asked: TraceRequest, progress: Progress) -> StatsAnswer:
        from insight_trace import stats

        progress("read the trace")
        found = stats(self.root.inside(asked.workspace))
        figures = found.figures
        trusted = figures.confidence
        rows = tuple(
            PipeRow(pipe.core, str(pipe.pipe), pipe.busy, pipe.waiting, pipe.idle, pipe.instructions)
            for pipe in figures.pipes
        )
        data = found.data()
        return StatsAnswer(
            summary=self._told(found.summary()),
            next=("advice", "query"),
            total=len(rows),
            cycles=figures.cycles,
            low=trusted.low if trusted else None,
            high=trusted.high if trusted else None,
            micros=round(figures.micros, 3),
            instructions=figures.instructions,
            hot_lines=tuple(self._listed(data["hot_lines"])),
            waits=tuple(self._listed(data["waits"])),
            rows=rows[:MOST_ROWS],
        )

    def _listed(self, rows: list[dict[str, Any]]) -> list[str]:
        """The first few of a table, each as one line."""
        return [
            self._told(", ".join(f"{k} {v}" for k, v in row.items() if v not in ("", None)))
            for row in rows[:5]
        ]

    def _advice(self, asked: AdviceRequest, progress: Progress) -> AdviceAnswer:
        from insight_trace import stats

        progress("try changes")
        found = stats(self.root.inside(asked.workspace))
        rows = tuple(self._advised(one) for one in found.advice)
        best = rows[0].text if rows else "nothing stands out"
        return AdviceAnswer(
            summary=f"{found.cycles:,} cycles; first: {best}", next=("kernel", "compare"), total=len(rows),
            cycles=found.cycles, rows=rows,
        )  # fmt: skip

    def _compare(self, asked: CompareRequest, progress: Progress) -> CompareAnswer:
        from insight_trace import compare

        progress("compare")
        found = compare(self.root.inside(asked.before), self.root.inside(asked.after))
        rows = tuple(
            ChangeRow(self._told(one.what), one.where, one.before, one.after)
            for one in found.lines
            if one.before != one.after
        )
        return CompareAnswer(
            summary=self._told(found.summary()), total=len(rows), before=found.total.before, after=found.total.after,
            reason=self._told(found.reason), rows=rows[:MOST_ROWS],
        )  # fmt: skip

    def _diff(self, asked: DiffRequest, progress: Progress) -> DiffAnswer:
        from insight_trace import diff

        a, b = self.root.inside(asked.a), self.root.inside(asked.b)
        self._allow_python(a)
        self._allow_python(b)
        progress("run both builds")
        # a pool of processes wants semaphores, which lie outside of the folder
        found = diff(a, b, case=asked.case or None, jobs=1)
        rows = tuple(
            KernelRow(
                one.name, str(one.grade), self._told(one.sentence), one.line, one.causes[0].fix if one.causes else "",
                one.a.cycles if one.a else None, one.b.cycles if one.b else None,
            )
            for one in found.kernels
        )  # fmt: skip
        return DiffAnswer(
            summary=found.summary, total=len(rows), errors=len(found.errors), rows=rows[:MOST_ROWS]
        )

    def _judge(self, asked: JudgeRequest, progress: Progress) -> JudgeAnswer:
        from insight_trace.judge import judge, read_task

        path = self.root.inside(asked.task)
        task = read_task(path) if self.programs or path.suffix == ".json" else None
        if task is None or (task.runs_python and not self.programs):
            raise RequestError(
                "this task's reference is a Python file, and none is run here",
                hint="a task whose reference is a NumPy expression is judged; or start the server with --programs",
            )
        if task.baseline:
            self.root.inside(str(Path(asked.task).parent / task.baseline))
        file, _ = self._source_of(asked.file, asked.source)
        progress("judge")
        verdict = judge(file, task)
        return JudgeAnswer(
            summary=f"{verdict.outcome}, score {verdict.score:.3f}: {self._told(verdict.reason)}",
            next=("kernel", "advice") if verdict.right else ("kernel", "check"),
            total=len(verdict.advice), verdict=msgspec.structs.replace(verdict, advice=()), rows=verdict.advice,
        )  # fmt: skip

    def _query(self, asked: QueryRequest, progress: Progress) -> QueryAnswer:
        from insight_trace import query
        from insight_trace.trace.sql import public_tables

        progress("ask")
        workspace = self.root.inside(asked.workspace)
        if not asked.sql:
            tables = public_tables()
            rows = tuple((name, table.what, ", ".join(table.meaning)) for name, table in tables.items())
            return QueryAnswer(
                summary=f"{len(rows)} tables",
                total=len(rows),
                columns=("table", "what", "columns"),
                rows=rows,
            )
        answer = query(workspace, asked.sql)
        taken = [tuple(map(self._plain, row)) for row in itertools.islice(answer.rows, MOST_ROWS + 1)]
        more = " (cut: ask for fewer)" if len(taken) > MOST_ROWS else ""
        rows = tuple(taken[:MOST_ROWS])
        return QueryAnswer(
            summary=f"{len(rows):,} rows{more}", total=len(rows), columns=tuple(answer.columns), rows=rows
        )

    # --- times ---------------------------------------------------------------------------------------------

    def _op_cost(self, asked: OpCostRequest, progress: Progress) -> TimesAnswer:
        from insight_trace.api.timing import op_variants

        made = op_variants(
            asked.op, rows=asked.rows, cols=asked.cols, dtype=asked.dtype, to=asked.to, k=asked.k,
            soc_version=asked.soc_version or None,
        )  # fmt: skip
        return self._times(made, 60.0, progress)

    def _time_many(self, asked: TimeManyRequest, progress: Progress) -> TimesAnswer:
        from insight_trace.api.timing import variants

        chips = asked.soc_version
        made = variants(
            self.root.inside(asked.file), asked.arguments, macros=asked.macros, blocks=asked.blocks,
            soc_version=[one or None for one in chips] if isinstance(chips, list) else chips or None,
            entry=asked.entry or None,
        )  # fmt: skip
        return self._times(made, asked.seconds, progress)

    def _times(self, made: list[Any], seconds: float, progress: Progress) -> TimesAnswer:
        from insight_trace.api.timing import time_many

        if len(made) > MOST_ROWS:
            raise RequestError(f"{len(made):,} variants are asked for; at most {MOST_ROWS:,} at once")
        progress("time", 0, len(made))
        found = time_many(made, seconds=seconds)
        data = found.data()
        shown = ("cycles", "low", "high", "bound", "failure")
        rows = tuple(
            TimeRow(
                {
                    name: value
                    for name, value in row.items()
                    if name not in ("micros", "instructions", *shown)
                },
                *(row[name] for name in shown),
            )
            for row in data["candidates"]
        )
        return TimesAnswer(
            summary=found.summary(), next=("kernel",), total=len(rows), best=data["best"], rows=rows
        )

    # --- pages and resources ----------------------------------------------------------------------------------

    def _view(self, asked: ViewRequest, progress: Progress) -> ViewAnswer:
        from insight_trace import view

        page = view(self.root.inside(asked.workspace), browser=False, force=True, progress=progress)
        name = self.root.name(page)
        return ViewAnswer(summary=f"wrote {name}", page=name, uri=f"page://{name}")

    def _resource(self, uri: str) -> dict[str, Any]:
        """The text of a page, or of a trace as the browser's timeline reads it."""
        from insight_trace.reading import regular_text

        kind, _, name = uri.partition("://")
        path = self.root.inside(name)
        if kind == "trace" and path.is_dir():
            found = sorted(file for file in path.rglob("trace.json") if not file.is_symlink())
            if not found:
                raise RequestError(f"{name} has no trace.json")
            path = self.root.inside(self.root.name(found[0]))
        wanted = {"page": (".html", "text/html"), "trace": (".json", "application/json")}
        if kind not in wanted or path.suffix != wanted[kind][0]:
            raise RequestError(
                f"{uri} is no resource", hint="page://WORKSPACE/report.html or trace://WORKSPACE"
            )
        try:
            return {"mime": wanted[kind][1], "text": regular_text(path, most=32 << 20, errors="replace")}
        except OSError as error:
            raise RequestError(f"{name}: {error.strerror}") from None

    # --- parts -------------------------------------------------------------------------------------------------

    def _source_of(self, file: str, source: str) -> tuple[Path, bool]:
        """The kernel's file; a text that was given is kept in one, by its content."""
        if bool(file) == bool(source):
            raise RequestError("give either `file` or `source`")
        if file:
            return self.root.inside(file), False
        name = hashlib.sha256(source.encode()).hexdigest()[:12]
        path = self.root.inside(f"runs/sources/kernel_{name}.cpp", new=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError), path.open("x", encoding="utf-8") as made:
            made.write(source)
        return path, True

    def _allow_python(self, path: Path) -> None:
        """Scenes and builds with a golden are Python that would be run."""
        if self.programs or (path.is_dir() and (path / "replay.json").is_file()):
            return
        if path.suffix == ".py" or any(path.glob("**/golden.py")):
            raise RequestError(
                f"{self.root.name(path)} is, or holds, Python that would be run, and none is run here",
                hint="workspaces and kernels are; or start the server with --programs",
            )

    def _finding(self, one: Finding, kernel: str = "") -> FindingRow:
        place = one.places[0] if one.places else None
        return FindingRow(
            str(one.severity), one.category, self._told(one.message), place.line if place else 0,
            self.root.name(place.file) if place else "", one.fix, kernel,
        )  # fmt: skip

    def _advised(self, one: Advice) -> AdviceRow:
        return AdviceRow(self._told(one.text), one.saves, one.simulated, self.root.name(one.frame), one.topic)

    def _told(self, text: str) -> str:
        short = text.replace(f"{self.root.folder}/", "")
        return short if len(short) <= _TEXT else short[: _TEXT - 1] + "…"

    def _plain(self, value: Any) -> Any:
        """A cell as JSON has it."""
        if isinstance(value, str):
            return self.root.name(value)
        if value is None or isinstance(value, bool | int):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else str(value)
        return str(value)
