"""Cycles of one tile op on the modelled core, or of every row of a table of measured ops.

insight-trace op TADD --dtype float --rows 64 --cols 64
insight-trace op TADD --grid rows=16,32,64 cols=64:512:64 dtype=f16,f32
insight-trace op --table measured.csv
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from insight_trace.commands import call
from insight_trace.errors import RequestError

if TYPE_CHECKING:
    from insight_trace.simulate.embedded.single_op import OpTiming, TableRow

RUNS_KERNELS = True


OPTIONS = """
op OP                text ?       the op, as kernels spell it
--dtype              text =float  element type (default: float)
--rows               int          rows of the tile (m of a matmul)
--cols               int          columns of the tile (n of a matmul)
--valid-rows R       int          rows that hold data (default: all)
--valid-cols C       int          columns that hold data (default: all)
--to DTYPE           text         what TCVT converts to
--k                  int          k of a matmul
--addresses A,B,…    text         where the sources and then the result lie, e.g. 0x0,0x4000,0x8000
--grid AXIS=V,…      text +       time every combination; axes: dtype, rows, cols, valid_rows, valid_cols, to, k; \
FROM:TO:STEP counts up to TO
--table FILE.csv     path         time every row of a table
--soc-version V      text         the chip, e.g. Ascend910B1
--l2                 cold|warm    what L2 holds at first: nothing, or what the op left there (default)
--preset             device|camodel =device  times as on the chip, or as the vendor's simulator shows them \
(default: %(default)s)
--json               on           print one JSON object
"""


def run(options: argparse.Namespace) -> int:
    if options.table is not None:
        if options.op:
            raise RequestError("give an op or --table, not both")
        _show_table(call("time_table", options, path=options.table), as_json=options.json)
        return 0
    if options.grid is not None:
        _time_grid(options)
        return 0
    if not options.op or options.rows is None or options.cols is None:
        raise RequestError(
            "name an op and its size, or a table",
            hint="insight-trace op TADD --dtype float --rows 64 --cols 64",
        )
    timing: OpTiming = call("time_op", options, addresses=_addresses(options.addresses))
    print(json.dumps(timing.data(), indent=2)) if options.json else _show(timing)
    return 0


def _time_grid(options: argparse.Namespace) -> None:
    from insight_trace import op_variants, time_many

    if not options.op:
        raise RequestError("--grid needs an op", hint="insight-trace op TADD --grid rows=16,32 cols=64,128")
    if options.l2 is not None or options.addresses:
        raise RequestError("--l2 and --addresses are for one op", hint="leave them out with --grid")
    fixed = {name: getattr(options, name) for name in ("rows", "cols", "valid_rows", "valid_cols", "to", "k")}
    axes = {name: value for name, value in fixed.items() if value is not None}
    axes = {"dtype": options.dtype} | axes | dict(map(_axis, options.grid))
    if "rows" not in axes or "cols" not in axes:
        raise RequestError(f"{options.op} needs rows and cols", hint="--grid rows=16,32 cols=64,128")
    found = time_many(op_variants(options.op, soc_version=options.soc_version, **axes), preset=options.preset)
    if options.json:
        print(json.dumps({"op": options.op, **found.data()}, indent=2))
        return
    columns = found.columns()
    varied = [name for name in columns if name in _AXES]
    print(
        "".join(f"{name:>12}" for name in (*varied, "cycles", "us", "bound")) + "   90 % interval on a chip"
    )
    for place, time in enumerate(found.times):
        values = "".join(f"{columns[name][place]!s:>12}" for name in varied)
        if time.failure:
            print(f"{values}   {time.failure}")
        else:
            print(
                f"{values}{time.cycles:>12,}{time.micros:>12.3f}{time.bound:>12}   {time.low:,} to {time.high:,}"
            )
    print(found.summary())


_AXES = ("dtype", "rows", "cols", "valid_rows", "valid_cols", "to", "k", "depth")
_MOST = 100_000
_COLUMNS = (
    "op", "case", "params", "cycles", "measured", "precision", "peer_precision", "quality", "problem",
)  # fmt: skip


def _axis(text: str) -> tuple[str, list[Any]]:
    """`rows=16,32`, `cols=64:512:64`, `dtype=f16,f32`."""
    name, _, values = text.partition("=")
    if name not in _AXES[:-1]:
        raise RequestError(
            f"--grid {text}: there is no axis '{name}'", hint=f"there are: {', '.join(_AXES[:-1])}"
        )
    found: list[Any] = []
    for word in values.split(","):
        try:
            if name in ("dtype", "to"):
                found.append(word)
            elif ":" in word:
                first, last, step = (int(part) for part in word.split(":"))
                if step < 1 or (last - first) // step > _MOST:
                    raise ValueError
                found += range(first, last + 1, step)
            else:
                found.append(int(word))
        except ValueError:
            raise RequestError(
                f"--grid {text}: '{word}' is no value", hint="rows=16,32,64 or cols=64:512:64"
            ) from None
    return name, found


def _addresses(text: str | None) -> tuple[int, ...]:
    if not text:
        return ()
    try:
        return tuple(int(word, 0) for word in text.split(","))
    except ValueError:
        raise RequestError(f"--addresses '{text}' is not a list of numbers") from None


def _show(timing: OpTiming) -> None:
    request, simulation = timing.request, timing.simulation
    rows = timing.rows()
    micros = timing.cycles / simulation.mhz
    what = f"{request.op} {request.dtype.short} {request.rows} x {request.cols}"
    print(
        f"{what}   {timing.cycles:,} cycles · {micros:.3f} us at {simulation.mhz:.0f} MHz · {simulation.soc_version}"
    )
    shown = rows if len(rows) <= 24 else [*rows[:12], *rows[-8:]]
    for i, row in enumerate(shown):
        if i == 12 and len(rows) > len(shown):
            print(f"  … {len(rows) - len(shown)} more")
        lost = max(0, row["read_conflict"]) + max(0, row["write_conflict"])
        banks = f"  {lost} cycles of bank conflicts" if lost else ""
        print(
            f"  {row['start']:>7} {row['end']:>7}  {row['pipe']:<7} {row['instruction']:<22} {row['detail']}{banks}"
        )


def _show_table(rows: Sequence[TableRow], *, as_json: bool) -> None:
    from insight_trace.simulate.embedded.single_op import mean_precision

    mean = mean_precision(rows)
    sound = sum(row.sound for row in rows)
    if as_json:
        listed = [{name: getattr(row, name) for name in _COLUMNS} for row in rows]
        print(json.dumps({"rows": listed, "mean_precision": mean, "sound_rows": sound}, indent=2))
        return
    print(f"{'op':<12} {'case':<42} {'ours':>7} {'measured':>9} {'precision':>9} {'peer':>6}  remark")
    for row in rows:
        ours = f"{row.cycles:,}" if row.cycles is not None else "-"
        peer = f"{row.peer_precision:.2f}" if row.peer_precision is not None else ""
        remark = row.problem or ("" if row.sound else row.quality)
        print(
            f"{row.op:<12} {row.case:<42} {ours:>7} {row.measured:>9,.0f} {row.precision:>9.2f} {peer:>6}  {remark}"
        )
    print(f"mean precision {mean:.3f} over {sound} sound rows of {len(rows)}")
