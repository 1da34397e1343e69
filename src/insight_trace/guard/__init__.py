"""The guard: two builds of the same kernels, judged on the same data. `insight-trace diff` is a skin over `diff`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Unpack

from msgspec.structs import replace

from insight_trace.guard.difference import Difference, Grade, KernelDifference, worst_first
from insight_trace.options import KERNEL_SECONDS, RunKeywords, RunOptions, run_options

__all__ = ["Difference", "Grade", "KernelDifference", "diff"]

THRESHOLD = 0.01  # how much slower a kernel may be before it counts as slower, relative


def diff(
    a: str | Path,
    b: str | Path,
    *,
    case: str | None = None,
    synthetic: bool = False,
    run_same: bool = False,
    threshold: float = THRESHOLD,
    jobs: int | None = None,
    cluster: str | None = None,
    progress: Callable[[str], None] = lambda _step: None,
    options: RunOptions | None = None,
    **run: Unpack[RunKeywords],
) -> Difference:
    """What the second of two builds does that the first did not, kernel by kernel, worst first.

    Both are PyPTO builds, scenes, folders that `replay`, `profile` or `exec` wrote, or baselines of `gate`. Kernels are
    matched by text and name, and run on the first one's data. A kernel whose code is the same but for names is not run
    unless `run_same` asks for it. `run` are fields of RunOptions.
    """
    from insight_trace.guard.pairs import BASELINE, How, kind_of, paired

    first, second = (Path(path).expanduser().absolute() for path in (a, b))
    if kind_of(first) == kind_of(second) == BASELINE:
        return _baselines(first, second, threshold)
    usual = run_options(options or RunOptions(seconds=KERNEL_SECONDS), run)
    how = How(
        replace(usual, check=True, simulator="embedded", host_cores=1), case, synthetic, run_same, threshold
    )
    from insight_trace.scratch import scratch_folder

    with scratch_folder("diff") as folder:
        found = paired(first, second, how, folder, progress)
        kernels = _judged(found, how.options, jobs, cluster, progress)
    return Difference(str(a), str(b), worst_first(kernels), found.notes)


def _judged(
    found: Any, options: RunOptions, jobs: int | None, cluster: str | None, progress: Callable[[str], None]
) -> list[KernelDifference]:
    from insight_trace.executor import Remaining, open_executor, required
    from insight_trace.guard.comparing import check_alone, compare_pair

    kernels = [
        KernelDifference(a, b, Grade.SAME, f"`{a}`: the same code but for names and layout", by)
        for a, b, by in found.same
    ]
    kernels += [
        KernelDifference(name, "", Grade.GONE, f"`{name}`: B has no kernel like it") for name in found.gone
    ]
    for name, job, problem in found.new:
        if job is None:
            said = f"`{name}`: new in B; not judged: {problem}"
            kernels.append(KernelDifference("", name, Grade.NEW, said))
        else:
            progress(f"check {name}")
            kernels.append(check_alone(name, job, options))
    if found.pairs:
        from insight_trace.simulate.embedded.toolchain import Toolchain

        Toolchain.find(options.pto_isa_root).runner()  # built once, before there are many
    left = Remaining()
    with contextlib.closing(open_executor(jobs, cluster)) as executor:
        results = required(executor.run(compare_pair, found.pairs, KernelDifference))
        for done, (_, one) in enumerate(results):
            progress(left.text(done + 1, len(found.pairs)))
            kernels.append(one)
    return kernels


def _baselines(a: Path, b: Path, threshold: float) -> Difference:
    """Figures that two runs of `gate --update` left: nothing is run."""
    from insight_trace.guard.difference import Cause
    from insight_trace.run.baseline import differences, read_baseline

    before, now = read_baseline(a), read_baseline(b)
    grades = {
        "slower": Grade.SLOWER, "faster": Grade.FASTER, "finding": Grade.ERROR, "fixed": Grade.FIXED,
        "verdict": Grade.ERROR, "dispatches": Grade.WARNING, "new": Grade.NEW, "gone": Grade.GONE,
    }  # fmt: skip
    found: dict[tuple[str, str], list[Cause]] = {}
    for change in differences(before.cases, now.cases, threshold):
        grade = grades[change.what]
        if change.what in ("verdict", "finding") and not change.worse:
            grade = Grade.FIXED if change.what == "verdict" else Grade.CHANGED
        elif change.what == "finding" and ": warning " in change.text:
            grade = Grade.WARNING
        elif change.what == "slower" and not change.worse:
            grade = Grade.CHANGED
        found.setdefault((change.case, change.kernel), []).append(
            Cause(change.what, grade, change.text, change.source)
        )
    kernels = []
    for (case, kernel), causes in found.items():
        causes.sort(key=lambda cause: list(Grade).index(cause.grade))
        name = f"{case}::{kernel}" if kernel else case
        kernels.append(
            KernelDifference(
                name, name, causes[0].grade, f"`{name}`: {causes[0].text}", "name", causes=tuple(causes)
            )
        )
    known = {(case.name, kernel) for case in before.cases for kernel in case.kernels}
    for figures in now.cases:
        for kernel in figures.kernels:
            if (figures.name, kernel) in known and (figures.name, kernel) not in found:
                name = f"{figures.name}::{kernel}"
                kernels.append(
                    KernelDifference(name, name, Grade.SAME, f"`{name}`: the same figures", "name")
                )
    return Difference(str(a), str(b), worst_first(kernels))
