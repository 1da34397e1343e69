"""Cycles of one tile op on the modelled core, or of every row of a table of measured ops.

insight-trace op TADD --dtype float --rows 64 --cols 64
insight-trace op TADD --grid rows=16,32,64 cols=64:512:64 dtype=f16,f32
insight-trace op --table measured.csv
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from insight_trace.simulate.embedded.single_op import OpTiming, TableRow

RUNS_KERNELS = True


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("op", nargs="?", metavar="OP", help="the op, as kernels spell it")
    parser.add_argument("--dtype", default="float", help="element type (default: float)")
    parser.add_argument("--rows", type=int, help="rows of the tile (m of a matmul)")
    parser.add_argument("--cols", type=int, help="columns of the tile (n of a matmul)")
    parser.add_argument("--valid-rows", type=int, metavar="R", help="rows that hold data (default: all)")
    parser.add_argument("--valid-cols", type=int, metavar="C", help="columns that hold data (default: all)")
    parser.add_argument("--to", metavar="DTYPE", help="what TCVT converts to")
    parser.add_argument("--k", type=int, help="k of a matmul")
    parser.add_argument(
        "--addresses",
        metavar="A,B,…",
        help="where the sources and then the result lie, e.g. 0x0,0x4000,0x8000",
    )
    parser.add_argument(
        "--grid",
        nargs="+",
        metavar="AXIS=V,…",
        help="time every combination; axes: dtype, rows, cols, valid_rows, valid_cols, to, k; FROM:TO:STEP counts up to TO",
    )
    parser.add_argument("--table", type=Path, metavar="FILE.csv", help="time every row of a table")
    parser.add_argument("--soc-version", metavar="V", help="the chip, e.g. Ascend910B1")
    parser.add_argument(
        "--l2",
        choices=("cold", "warm"),
        help="what L2 holds at first: nothing, or what the op left there (default)",
    )
    parser.add_argument(
        "--preset",
        default="device",
        choices=("device", "camodel"),
        help="times as on the chip, or as the vendor's simulator shows them (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    from insight_trace import time_op, time_table
    from insight_trace.errors import RequestError

    how = {"soc_version": options.soc_version, "preset": options.preset, "l2": options.l2}
    if options.table is not None:
        if options.op:
            raise RequestError("give an op or --table, not both")
        _show_table(time_table(options.table, **how), as_json=options.json)
        return 0
    if options.grid is not None:
        _time_grid(options)
        return 0
    if not options.op or options.rows is None or options.cols is None:
        raise RequestError(
            "name an op and its size, or a table",
            hint="insight-trace op TADD --dtype float --rows 64 --cols 64",
        )
    timing = time_op(
        options.op,
        options.dtype,
        options.rows,
        options.cols,
        valid_rows=options.valid_rows,
        valid_cols=options.valid_cols,
        to=options.to,
        k=options.k,
        addresses=_addresses(options.addresses),
        **how,
    )
    print(json.dumps(timing.data(), indent=2)) if options.json else _show(timing)
    return 0


def _time_grid(options: argparse.Namespace) -> None:
    from insight_trace import op_variants, time_many
    from insight_trace.errors import RequestError

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


def _axis(text: str) -> tuple[str, list[Any]]:
    """`rows=16,32`, `cols=64:512:64`, `dtype=f16,f32`."""
    from insight_trace.errors import RequestError

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
    from insight_trace.errors import RequestError

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
        listed = [_row_json(row) for row in rows]
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


def _row_json(row: TableRow) -> dict[str, Any]:
    return {
        "op": row.op,
        "case": row.case,
        "params": row.params,
        "cycles": row.cycles,
        "measured": row.measured,
        "precision": row.precision,
        "peer_precision": row.peer_precision,
        "quality": row.quality,
        "problem": row.problem,
    }
