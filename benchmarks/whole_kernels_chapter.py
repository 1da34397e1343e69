"""The chapter on whole kernels in docs/accuracy.md, from what `whole_kernels.py --json` wrote."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import svg_plots
from insight_trace.chips import load_chip
from insight_trace.simulate.embedded.confidence import first_launch_error

RESULTS = Path(__file__).resolve().parent / "whole_kernels.json"
CONFIDENCE = RESULTS.parent.parent / "src" / "insight_trace" / "simulate" / "embedded" / "confidence.py"
README = RESULTS.parent.parent / "README.md"
NEAR = 0.15
NINE_OF_TEN = 1.64
_KINDS = {
    "cube": ("GEMM", "gemm_ar", "conv2d"),
    "vector": ("vector add", "top-k"),
    "mix": ("flash attention",),
}
Row = dict[str, Any]


def load(path: Path = RESULTS) -> list[Row]:
    rows: list[Row] = json.loads(path.read_text(encoding="utf-8"))
    return rows


def ratio(row: Row) -> float:
    return float(row["us"]) / float(row["published_us"])


def _ran(rows: Sequence[Row], role: str) -> list[Row]:
    return [row for row in rows if row["role"] == role and not row["problem"]]


def mean_ratio(rows: Sequence[Row]) -> float:
    return math.exp(sum(math.log(ratio(row)) for row in rows) / len(rows)) if rows else math.nan


def spread(rows: Sequence[Row]) -> float:
    """Root mean square of log(ours / published): what confidence.py calls the model's error."""
    return math.sqrt(sum(math.log(ratio(row)) ** 2 for row in rows) / len(rows)) if rows else math.nan


def of_kind(rows: Sequence[Row], kind: str) -> list[Row]:
    return [row for row in rows if row["kernel"].startswith(_KINDS[kind])]


def pooled(rows: Sequence[Row]) -> float:
    """The spread of a kernel that is not among these, by those that are: each counts once, however many points it has."""
    kernels = {row["kernel"] for row in rows}
    each = [spread([row for row in rows if row["kernel"] == kernel]) for kernel in sorted(kernels)]
    return math.sqrt(sum(error**2 for error in each) / len(each)) if each else math.nan


def model_error(rows: Sequence[Row]) -> dict[str, float]:
    """What confidence.py holds: by kind of kernel, over points that only test, and never less than over all kernels."""
    tested = _ran(rows, "test")
    every = pooled(tested)
    kinds = {kind: of_kind(tested, kind) for kind in _KINDS}
    return {kind: round(max(every, pooled(mine)) if mine else every, 3) for kind, mine in kinds.items()}


def write_model_error(rows: Sequence[Row]) -> None:
    """Into the package: its intervals are made of the errors that this table has."""
    text = CONFIDENCE.read_text(encoding="utf-8")
    table = ", ".join(f'"{kind}": {error}' for kind, error in model_error(rows).items())
    text, found = re.subn(r"(?m)^MODEL_ERROR = \{.*\}$", f"MODEL_ERROR = {{{table}}}", text)
    assert found == 1
    CONFIDENCE.write_text(text, encoding="utf-8")


def write_readme(rows: Sequence[Row]) -> None:
    """The sentence of README's that states these figures."""
    tested = _ran(rows, "test")
    sentence = (
        f"- Whole kernels: of {len(tested)} published times that set no parameter {_near(tested, NEAR)} are within 15 %,\n"
        f"  the geometric mean of ours to theirs is {mean_ratio(tested):.2f}\n"
        "  (`benchmarks/whole_kernels.py --pto-isa PATH`)."
    )
    text = README.read_text(encoding="utf-8")
    text, found = re.subn(
        r"- Whole kernels: of .*?\(`benchmarks/whole_kernels\.py --pto-isa PATH`\)\.",
        sentence,
        text,
        flags=re.S,
    )
    assert found == 1
    README.write_text(text, encoding="utf-8")


def within_intervals(rows: Sequence[Row]) -> int:
    """Test points within what nine of ten should be, by an error that knows all kernels but the point's own; a first launch
    counts as confidence.py has it."""
    tested, found = _ran(rows, "test"), 0
    for kernel in sorted({row["kernel"] for row in tested}):
        errors = model_error([row for row in tested if row["kernel"] != kernel])
        mine = [row for row in tested if row["kernel"] == kernel]
        for kind in _KINDS:
            found += sum(
                abs(math.log(ratio(row)))
                <= NINE_OF_TEN
                * math.hypot(
                    errors[kind], first_launch_error(load_chip(row["chip"])) if row["l2"] == "cold" else 0.0
                )
                for row in of_kind(mine, kind)
            )
    return found


def headline(rows: Sequence[Row]) -> str:
    """The line of the page's first table."""
    tested = _ran(rows, "test")
    near = _near(tested, NEAR)
    far = max(tested, key=lambda row: abs(math.log(ratio(row))))
    kernels = len({row["kernel"] for row in tested})
    return (
        f"| {len(tested)} published times of {kernels} whole kernels, none of which set a parameter | "
        f"{near} ({near / len(tested):.0%}) within {NEAR:.0%}, geometric mean **{mean_ratio(tested):.2f}** | "
        f"{far['kernel']} {far['case']}: {ratio(far):.2f} |"
    )


def plot(rows: Sequence[Row], into: Path) -> None:
    picture = svg_plots.LogPlot(
        "Whole kernels: ours against published", ("published us", 10, 6000), ("our us", 10, 6000)
    )
    picture.line([(10, 10), (6000, 6000)], "#999")
    picture.line([(10, 11.5), (5200, 5980)], "#999", dashed=True)
    picture.line([(11.5, 10), (6000, 5217)], "#999", dashed=True)
    names = (
        ("test", "only tested; dashed: 15 % off"),
        ("fit", "set a parameter, or was seen when one was chosen"),
    )
    for colour, (role, _) in zip(svg_plots.COLOURS, names, strict=False):
        picture.dots([(row["published_us"], row["us"]) for row in _ran(rows, role)], colour)
    picture.key([(name, colour) for colour, (_, name) in zip(svg_plots.COLOURS, names, strict=False)])
    (into / "accuracy-kernels.svg").write_text(picture.svg(), encoding="utf-8")


def chapter(rows: Sequence[Row]) -> list[str]:
    tested, fitted = _ran(rows, "test"), _ran(rows, "fit")
    short = [row for row in tested if row["published_us"] < 100]
    problems = [row for row in rows if row["problem"]]
    lines = [
        "## Whole kernels",
        "",
        "![ours against published](accuracy-kernels.svg)",
        "",
        "Kernels of a pto-isa checkout, and an Add of ours after asc-devkit's description, on all their cores, with what is",
        "around them (`--launch kernel`), by `python benchmarks/whole_kernels.py --pto-isa PATH --long --json",
        "benchmarks/whole_kernels.json`. L2 is cold and the launch a first one (`--launch first`) where the source launches",
        "a kernel once; it is warm, and code and pages are known, where the source launches it several times or fetches its",
        "inputs before. No number belongs to a kernel.",
        "",
        "| kind of kernel | points that only test | within 15 % | geometric mean | rms of log ratio |",
        "|---|---:|---:|---:|---:|",
    ]
    for kind in _KINDS:
        mine = of_kind(tested, kind)
        if mine:
            near = sum(abs(ratio(row) - 1) <= NEAR for row in mine)
            lines.append(f"| {kind} | {len(mine)} | {near} | {mean_ratio(mine):.2f} | {spread(mine):.3f} |")
    if fitted:
        lines.append(
            f"| set a parameter | {len(fitted)} | {_near(fitted, NEAR)} | {mean_ratio(fitted):.2f} | {spread(fitted):.3f} |"
        )
    lines += [
        "",
        "Intervals are made of "
        + ", ".join(f"{error} ({kind})" for kind, error in model_error(rows).items())
        + ": 1.64 times that to either side, from the spread of each kernel, all counted once, and never less than over",
        "all kernels. A first launch has more, as far as `page.turn` is worth.",
        f"With the point's own kernel left out, {within_intervals(rows)} of {len(tested)} points lie within.",
        f"Below 100 us {_near(short, 0.20)} of {len(short)} are within 20 %.",
        "",
        *_table([*tested, *fitted]),
    ]
    lines += [
        "",
        "What the numbers of the memory system come from (none of the points that only test set one):",
        "`gm.chip_rate`, `gm.chip_rate_l1`, `l2.chip_rate`,",
        "`l2.chip_rate_l1`, `gm.unaligned_cost*` and rows into boxes that miss L2 from asc-devkit's data_copy; those rows",
        "where L2 has them from its matmul on one core; `l2.miss_latency` from its Add on one core; `l2.shared_cost` from",
        "its matmul of 8192³; `code.fill` from a log of the vendor's model; `page.*` from CANN's description of pages, the",
        "scalar unit's load and one row of attention of 12/2025; `cross_core.turn` from one row of attention beside torch;",
        "`launch.*` from asc-devkit's task durations,",
        "which leave a wide range on 910B: the middle was taken, and GEMM 1536³ and the smallest convolution had been",
        "seen by then. The rows of top-k with fewer rows are the same work, less of it.",
        "",
        "Two numbers of the 950 were replaced when the mxfp4 points had been run, from other sources than these points:",
        "the time of a row that leaves L0C (asc-devkit; an estimate before) and of a row that goes into boxes (asc-devkit,",
        "one core and all cores; the point of mxfp4 that is a fit before).",
        "",
        "Not run, of what is published of the 950 (a5): attention (its table says TBD), kernels of catlass and asc-devkit",
        "(another programming interface; the Add here is ours), kernels that communicate (several cards).",
        "",
        "First launches. CANN gives a buffer of up to 1 MB pages of 4 KB, a larger one pages of 2 MB. That is why attention",
        "of 12/2025 takes longer for 2048 columns than for 4096: k and v have 128 pages each, and every core looks up all",
        "of them. A look-up is a read of memory, one after the other in a core (`page.walk`), and the chip makes one in",
        "`page.turn`, which 16 cores with 2048 columns set; the other 16 rows of the table, all first launches of the 910B",
        "and, as an estimate, of the 950 are tests of it. Rows of 2048 columns on one and two cores are 22 and 37 % too",
        "slow, those of 1024 and 4096 on eight cores a quarter too fast, those of 8192 on one and two a sixth too slow.",
        "That loads in flight together look their pages up one after the other comes from two products on one core that",
        "pypto published (the probes of the timing model), not from this table. That cores of a cluster share what they",
        "looked up, that stores do not wait for it and do not delay loads was chosen when rows on one core had been seen",
        "(1.4 to 2.1 otherwise): for that they are no tests.",
        "",
        "Sixteen cores. Attention beside torch takes a third longer for each tile on 16 cores than on 8, at 3.7 TB/s, where",
        "24 cores of the kernel with larger tiles reach 5. What it has more of is flags: nine for each tile of 256 columns;",
        "there, five and a quarter for one of 512 or 1024. Flags between cores of the 910B go through one unit of the chip;",
        "that it passes on one in 36 cycles is set by 8192 columns, and the other three rows of 16 cores are within 6 %.",
        "",
        "What is published and not modelled, since it does not pin a number:",
        "",
        "- L1 to L0 under load: MTE1 takes 395 to 466 cycles a step of 128 x 256 x 64 in loaded kernels and 367",
        "  alone; GEMM here has 363 and is published with 412, the largest convolution has 1,331 us and is published",
        "  with 1,330. No law meets both, and MTE1 bounds neither.",
        "- Loads of DN tiles: eight pieces of 255 x 8 floats are published with 8,352 cycles, 32 of 64 x 4 with",
        "  8,704. One latency and one rate meet the second and eight loads of ND tiles; the first would need nearly",
        "  four times as many pieces.",
        "- MMAD back to back: 2.1 to 2.9 cycles more than its fractals (mskpp), 9 and more in loaded kernels. The",
        "  first is used.",
        "",
        "### What is counted",
        "",
        "Every published time of these kernels. Attention by cores (S0 = 128 to 2048, S1 = 1K to 8K) is run with the kernel",
        "that it was measured with (pto-isa 6cc68238 of December 2025, from the history of the checkout), cold, by the",
        "kernel's own counter: from the earliest start of a core to the latest end.",
        "",
        "The table of attention on the 910B2 names no tiles. They are those that the program chooses which compares this",
        "kernel with torch_npu's at the same six lengths (demos/baseline/flash_atten): 256 columns for 1024, 512 up to",
        "8192, 1024 beyond. That they are not 256 throughout is published, too: 16 cores take 58 to 60 us for 4096",
        "columns with tiles of 256, and 4096², which is two rounds of as much on 24 cores, takes 88.9. Attention beside",
        "torch (demos/torch_jit/flash_atten, at pto-isa 68b7cd17) is published from two hosts; their mean is compared.",
    ]
    if problems:
        lines += ["", "Not run yet:", ""]
        lines += [f"- {row['kernel']} {row['case']} ({row['chip']}): {row['problem']}" for row in problems]
    return [*lines, ""]


def _near(rows: Sequence[Row], by: float) -> int:
    return sum(abs(ratio(row) - 1) <= by for row in rows)


def _table(rows: Sequence[Row]) -> list[str]:
    lines = [
        "| kernel | case | chip | blocks | L2 | by | published us | ours us | ratio | inside | L2 hits | waves | role |",
        "|---|---|---|---:|---|---|---:|---:|---:|---:|---:|---:|---|",
    ]
    for row in rows:
        chip = row["chip"].removeprefix("Ascend")
        lines.append(
            f"| {row['kernel']} | {row['case']} | {chip} | {row['blocks']} | {row['l2']} | {row.get('method', 'dur')} | "
            f"{row['published_us']:,.1f} | "
            f"{row['us']:,.1f} | {ratio(row):.2f} | {row['inside_us']:,.1f} | {row['hit_rate']:.0%} | {row['waves']} | "
            f"{row['role']} |"
        )
    return lines
