"""Builds that differ and are as good: numbered, ordered, placed or scheduled otherwise, made by program."""

import random
import re
from collections.abc import Iterator
from pathlib import Path

from tests.guard.regressions import REGRESSIONS
from tests.guard.small_builds import SmallKernel

_ASSIGN = re.compile(r"^(\s*)TASSIGN\((\w+), (0x[0-9a-f]+)\);$", re.MULTILINE)
_EVENT = re.compile(r"EVENT_ID([0-7])")
_FLAG_PAIR = re.compile(
    r"( *)set_flag\((PIPE_\w+), (PIPE_\w+), EVENT_ID\d\);\n *wait_flag\(\2, \3, EVENT_ID\d\);\n"
)


def renumbered(kernel: SmallKernel, draw: random.Random) -> str:
    """Other numbers for every value, upwards or downwards."""
    return kernel.cpp(first_number=draw.randrange(2, 400), order=draw.choice((1, -1)))


def reordered(kernel: SmallKernel, draw: random.Random) -> str:
    """Tiles are placed in another order."""
    text = kernel.cpp(first_number=3)
    found = _ASSIGN.findall(text)
    order = draw.sample(found, len(found))
    if order == found:
        order = found[::-1]
    new = iter([f"{indent}TASSIGN({name}, {address});" for indent, name, address in order])
    return _ASSIGN.sub(lambda _: next(new), text)


def moved(kernel: SmallKernel, draw: random.Random) -> str:
    """All tiles of UB or L1 lie further up."""
    by = draw.randrange(1, 8) * 0x1000
    on_chip = kernel.kind == "vector"

    def place(match: re.Match[str]) -> str:
        there = int(match[3], 16) + (by if on_chip else 0x8000 if "b" in match[2] else 0)
        return f"{match[1]}TASSIGN({match[2]}, 0x{there:x});"

    text = "\n".join(kernel.lines(second=False))
    body = _ASSIGN.sub(place, text)
    return SmallKernel(kernel.name, kernel.parameters, body, kernel.kind).cpp(first_number=7)


def other_events(kernel: SmallKernel, draw: random.Random) -> str:
    """Every event under another id."""
    ids = draw.sample(range(8), 8)
    return _EVENT.sub(lambda match: f"EVENT_ID{ids[int(match[1])]}", kernel.cpp(first_number=2))


def rescheduled(kernel: SmallKernel, draw: random.Random) -> str:
    """One more pair of flags between two pipes that has nothing to order, or a set earlier than its wait."""
    text = kernel.cpp(first_number=4)
    pairs = list(_FLAG_PAIR.finditer(text))
    if not pairs:
        return text.replace(
            "    pipe_barrier(PIPE_ALL);\n}", "    pipe_barrier(PIPE_V);\n    pipe_barrier(PIPE_ALL);\n}"
        )
    at = draw.choice(pairs)
    again = re.sub(r"EVENT_ID\d", "EVENT_ID7", at[0])
    return text[: at.end()] + again + text[at.end() :]


KINDS = (renumbered, reordered, moved, other_events, rescheduled)


def harmless_pairs(count: int, seed: int = 20261117) -> Iterator[tuple[str, SmallKernel, str]]:
    """What was changed, the kernel, and the text of the second build."""
    draw = random.Random(seed)
    for number in range(count):
        kernel = REGRESSIONS[(number // len(KINDS)) % len(REGRESSIONS)]
        change = KINDS[number % len(KINDS)]
        yield change.__name__, kernel, change(kernel, draw)


def write_harmless(folder: Path, count: int) -> tuple[Path, Path, list[str]]:
    """Two builds of as many kernels; names in the second are shifted by one, as where a kernel was added before."""
    changes = []
    for number, (change, kernel, text) in enumerate(harmless_pairs(count)):
        changes.append(change)
        for side, source, shift in (("A", kernel.cpp(), 0), ("B", text, 1)):
            name = f"main_incore_{number + shift}"
            place = folder / side / "ptoas"
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{name}.cpp").write_text(source.replace(f"void {kernel.name}(", f"void {name}("))
            (place / f"{name}.pto").write_text(kernel.pto().replace(f"@{kernel.name}(", f"@{name}("))
    return folder / "A", folder / "B", changes
