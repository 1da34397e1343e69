"""SQL over a recording: instructions, operands, tiles, lines, pipes, findings (docs/query.md).

  insight-trace query WORKSPACE                                     the tables and their columns
  insight-trace query WORKSPACE "select op, sum(cycles) from calls group by op order by 2 desc"

WORKSPACE is what replay or profile wrote. The question is one select; it sees the recording and no file.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from insight_trace.trace.sql import Answer

_SHOWN = 200


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "path", type=Path, metavar="WORKSPACE", help="a recording, or the folder that holds one"
    )
    parser.add_argument("sql", nargs="?", help="one select; leave it out to see the tables")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print a list of objects")
    form.add_argument("--csv", action="store_true", help="print comma-separated values")
    parser.add_argument(
        "--limit", type=int, default=_SHOWN, metavar="N", help="rows of the text form (200; 0: all)"
    )


def run(options: argparse.Namespace) -> int:
    from insight_trace import query
    from insight_trace.errors import RequestError

    if options.limit < 0:
        raise RequestError(f"--limit {options.limit} is no number of rows", hint="0 shows all")
    if options.sql is None:
        return _show_tables(options.json)
    answer = query(options.path, options.sql)
    if options.json:
        _print_json(answer)
    elif options.csv:
        _print_csv(answer)
    else:
        _print_table(answer, options.limit)
    return 0


def _show_tables(as_json: bool) -> int:
    from insight_trace.trace.sql import public_tables

    tables = public_tables()
    if as_json:
        import json

        print(
            json.dumps(
                {name: {"what": t.what, "columns": dict(t.meaning)} for name, t in tables.items()}, indent=1
            )
        )
        return 0
    for name, table in tables.items():
        print(f"{name:<15} {table.what}")
        print(f"{'':<15} {', '.join(table.meaning)}")
    return 0


def _print_json(answer: Answer) -> None:
    import json

    print("[", end="")
    for number, row in enumerate(answer.rows):
        entry = json.dumps(dict(zip(answer.columns, map(_plain, row), strict=True)), ensure_ascii=False)
        print(f"{',' if number else ''}\n {entry}", end="")
    print("\n]")


def _print_csv(answer: Answer) -> None:
    import csv
    import sys

    from insight_trace.limits import cell

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(answer.columns)
    writer.writerows(["" if value is None else cell(_plain(value)) for value in row] for row in answer.rows)


def _plain(value: Any) -> Any:
    """Values that JSON has; others (dates, exact decimals) as numbers or text."""
    import decimal
    import math

    if isinstance(value, decimal.Decimal):
        return float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _print_table(answer: Answer, limit: int) -> None:
    from insight_trace.results import text_table

    kept, more = _taken(answer.rows, limit)
    cells = [[_cell(value) for value in row] for row in kept]
    left = [i for i in range(len(answer.columns)) if not kept or not all(_is_number(row[i]) for row in kept)]
    print("\n".join(text_table(answer.columns, cells, left)))
    if not kept:
        print("no rows")
    if more:
        print(f"… more than {limit} rows; --limit 0, --json and --csv have them all")


def _taken(rows: Iterator[tuple[Any, ...]], limit: int) -> tuple[Sequence[tuple[Any, ...]], bool]:
    if not limit:
        return list(rows), False
    kept = list(itertools.islice(rows, limit))
    return kept, next(rows, None) is not None


def _cell(value: Any) -> str:
    plain = _plain(value)
    if plain is None:
        return ""
    if isinstance(plain, bool):
        return "true" if plain else "false"
    if isinstance(plain, int):
        return str(plain)
    if isinstance(plain, float):
        return f"{plain:,.4g}" if abs(plain) < 1000 else f"{plain:,.1f}"
    return str(plain).replace("\n", " ")
