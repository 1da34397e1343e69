"""Does the model order variants of a kernel as a device does? Kendall's tau by family, as the table in docs/judge.md.

    python benchmarks/rank_correlation.py [--write]

From benchmarks/whole_kernels.json: our times and the published ones of the same kernels. A family is a kernel on a chip.
Pairs of one family are compared, never pairs of two kernels. A publication that measured a point twice, or that has a
shorter time for more of the same work, shows how far its times spread: pairs that are no further apart than the largest
such contradiction of their table cannot be ordered by it and are ties, which do not count. One that shows none has none.
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

Times = list[tuple[float, float]]  # published, ours


class Family(NamedTuple):
    times: Times
    spread: float = 0.0  # of what was published, as a share


def families(path: Path = RESULTS) -> dict[str, Family]:
    """By kernel and chip, those with at least two variants."""
    found: dict[str, Times] = {}
    spread: dict[str, float] = {}
    for row in json.loads(path.read_text(encoding="utf-8")):
        if row["problem"]:
            continue
        name = f"{row['kernel']}, {row['chip']}"
        found.setdefault(name, []).append((row["published_us"], row["us"]))
        spread[name] = max(spread.get(name, 0.0), row["spread"])
    return {name: Family(times, spread[name]) for name, times in found.items() if len(times) > 1}


def ordered(family: Family) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """The pairs that what was published can order."""
    return [
        (one, other)
        for one, other in itertools.combinations(family.times, 2)
        if max(one[0], other[0]) / min(one[0], other[0]) - 1 > family.spread
    ]


def counts(family: Family) -> tuple[int, int]:
    """Pairs in the same order, and in the other or the same to us."""
    signs = [(a - b) * (x - y) for (a, x), (b, y) in ordered(family)]
    return sum(sign > 0 for sign in signs), sum(sign <= 0 for sign in signs)


def tau(known: Sequence[Family]) -> float:
    """(same − other) / pairs that count, inside each family: Kendall's tau."""
    same, other = (sum(each) for each in zip(*map(counts, known), strict=True))
    return (same - other) / (same + other) if same + other else float("nan")


def table() -> str:
    lines = [
        "| variants of | points | published times spread | pairs, of them ties | in the other order | Kendall's tau |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    known = families()

    def line(name: str, mine: list[Family], spread: str, bold: str = "") -> None:
        same, other = (sum(each) for each in zip(*map(counts, mine), strict=True))
        every = sum(len(family.times) * (len(family.times) - 1) // 2 for family in mine)
        points = sum(len(family.times) for family in mine)
        lines.append(
            f"| {bold}{name}{bold} | {points} | {spread} | {every}, {every - same - other} | {other} | "
            f"{bold}{tau(mine):.2f}{bold} |"
        )

    for name, family in known.items():
        line(name, [family], f"{family.spread:.0%}" if family.spread else "-")
    line("all pairs inside a family", list(known.values()), "", "**")
    plain = [Family(family.times) for family in known.values()]
    line("the same, every pair counted", plain, "")
    return "\n".join(lines) + "\n"


def close_calls() -> list[tuple[str, float]]:
    """Pairs that count and that the model orders otherwise, and how far the published times are apart, relative."""
    return [
        (name, max(a, b) / min(a, b) - 1)
        for name, family in families().items()
        for (a, x), (b, y) in ordered(family)
        if (a - b) * (x - y) <= 0
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="into docs/judge.md")
    options = parser.parse_args()
    text = table()
    print(text, end="")
    for name, apart in close_calls():
        print(f"ordered otherwise: {name}, published times {apart:.1%} apart")
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        page, count = re.subn(r"(?s)\| variants of \|.*?\n(?=\n)", text, page)
        assert count == 1
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
