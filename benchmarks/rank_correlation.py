"""Does the model order variants of a kernel as a device does? Kendall's tau by family, as the table in docs/judge.md.

    python benchmarks/rank_correlation.py [--write]

From benchmarks/whole_kernels.json: our times and the published ones of the same kernels. A family is a kernel on a chip.
Pairs of one family are compared, never pairs of two kernels. Where a point was measured twice, or is published with a
longer time than more of the same work, the publication itself says how uncertain that time is. A pair that is no further
apart than one of its two times is uncertain cannot be ordered by what was published: a tie, which does not count. Nothing
of ours decides what is a tie. The last row counts every pair.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "whole_kernels.json"
PAGE = ROOT / "docs" / "judge.md"


class Point(NamedTuple):
    published: float
    ours: float
    spread: float = 0.0  # of what was published, as a share


Family = list[Point]


def families(path: Path = RESULTS) -> dict[str, Family]:
    """By kernel and chip, those with at least two variants."""
    found: dict[str, Family] = {}
    for row in json.loads(path.read_text(encoding="utf-8")):
        if not row["problem"]:
            point = Point(row["published_us"], row["us"], row["spread"])
            found.setdefault(f"{row['kernel']}, {row['chip']}", []).append(point)
    return {name: family for name, family in found.items() if len(family) > 1}


def apart(one: Point, other: Point) -> float:
    """How far two published times are apart, as a share."""
    return max(one.published, other.published) / min(one.published, other.published) - 1


def ordered(family: Family) -> list[tuple[Point, Point]]:
    """The pairs that what was published can order."""
    return [
        (one, other)
        for one, other in itertools.combinations(family, 2)
        if apart(one, other) > max(one.spread, other.spread)
    ]


def same_order(one: Point, other: Point) -> bool:
    """Two that are the same to us and not to the device count as the other order."""
    return (one.published - other.published) * (one.ours - other.ours) > 0


def counts(family: Family) -> tuple[int, int]:
    """Pairs in the same order, and in the other."""
    same = [same_order(*pair) for pair in ordered(family)]
    return sum(same), len(same) - sum(same)


def every_pair(family: Family) -> Family:
    """As if what was published were certain."""
    return [point._replace(spread=0.0) for point in family]


def tau(known: Sequence[Family]) -> float:
    """(same − other) / pairs that count, inside each family: Kendall's tau."""
    same, other = (sum(each) for each in zip(*map(counts, known), strict=True))
    return (same - other) / (same + other) if same + other else float("nan")


def table() -> str:
    lines = [
        "| variants of | points | uncertain, up to | pairs, of them ties | in the other order | Kendall's tau |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    known = families()

    def line(name: str, mine: list[Family], spread: str, bold: str = "") -> None:
        same, other = (sum(each) for each in zip(*map(counts, mine), strict=True))
        every = sum(len(family) * (len(family) - 1) // 2 for family in mine)
        points = sum(map(len, mine))
        lines.append(
            f"| {bold}{name}{bold} | {points} | {spread} | {every}, {every - same - other} | {other} | "
            f"{bold}{tau(mine):.2f}{bold} |"
        )

    for name, family in known.items():
        most = max(point.spread for point in family)
        line(name, [family], f"{most:.0%}" if most else "-")
    line("all pairs inside a family", list(known.values()), "", "**")
    line("the same, every pair counted", [every_pair(family) for family in known.values()], "")
    return "\n".join(lines) + "\n"


def close_calls() -> list[tuple[str, float]]:
    """Pairs that count and that the model orders otherwise, and how far the published times are apart, relative."""
    return [
        (name, apart(*pair))
        for name, family in families().items()
        for pair in ordered(family)
        if not same_order(*pair)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="into docs/judge.md")
    options = parser.parse_args()
    text = table()
    print(text, end="")
    for name, gap in close_calls():
        print(f"ordered otherwise: {name}, published times {gap:.1%} apart")
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        page, count = re.subn(r"(?s)\| variants of \|.*?\n(?=\n)", text, page)
        assert count == 1
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
