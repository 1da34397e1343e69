"""Does the model order variants of a kernel as a device does? Kendall's tau by family, as the table in docs/judge.md.

    python benchmarks/rank_correlation.py [--write]

From benchmarks/whole_kernels.json: our times and the published ones of the same kernels. A family is a kernel on a chip.
Pairs of one family are compared, never pairs of two kernels.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "whole_kernels.json"
PAGE = ROOT / "docs" / "judge.md"

Times = list[tuple[float, float]]  # published, ours


def families(path: Path = RESULTS) -> dict[str, Times]:
    """By kernel and chip, those with at least two variants."""
    found: dict[str, Times] = {}
    for row in json.loads(path.read_text(encoding="utf-8")):
        if not row["problem"]:
            found.setdefault(f"{row['kernel']}, {row['chip']}", []).append((row["published_us"], row["us"]))
    return {name: times for name, times in found.items() if len(times) > 1}


def pairs(times: Times) -> tuple[int, int, int]:
    """Pairs in the same order, in the other, and pairs of which one side is a tie."""
    same = other = ties = 0
    for (a, x), (b, y) in itertools.combinations(times, 2):
        sign = (a - b) * (x - y)
        same, other, ties = same + (sign > 0), other + (sign < 0), ties + (sign == 0)
    return same, other, ties


def tau(times: Sequence[Times]) -> float:
    """(same − other) / all pairs: Kendall's tau a, over the pairs inside each family."""
    counts = [pairs(list(each)) for each in times]
    every = sum(sum(each) for each in counts)
    return (
        (sum(each[0] for each in counts) - sum(each[1] for each in counts)) / every if every else float("nan")
    )


def table() -> str:
    lines = [
        "| variants of | points | pairs | in the other order or tied | Kendall's tau |",
        "|---|---:|---:|---:|---:|",
    ]
    known = families()
    for name, times in known.items():
        same, other, ties = pairs(times)
        lines.append(
            f"| {name} | {len(times)} | {same + other + ties} | {other + ties} | {tau([times]):.2f} |"
        )
    every = [pairs(times) for times in known.values()]
    total, off = sum(sum(each) for each in every), sum(each[1] + each[2] for each in every)
    points = sum(map(len, known.values()))
    lines.append(
        f"| **all pairs inside a family** | {points} | {total} | {off} | **{tau(list(known.values())):.2f}** |"
    )
    return "\n".join(lines) + "\n"


def close_calls() -> list[tuple[str, float]]:
    """Pairs that the model orders otherwise, and how far the published times are apart, relative."""
    return [
        (name, abs(a / b - 1))
        for name, times in families().items()
        for (a, x), (b, y) in itertools.combinations(times, 2)
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
        print(f"ordered otherwise or tied: {name}, published times {apart:.1%} apart")
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        page, count = re.subn(r"(?s)\| variants of \|.*?\n(?=\n)", text, page)
        assert count == 1
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
