"""Rooflines of a run for Insight's Details page: what its bytes and operations allow on this chip."""

from __future__ import annotations

from collections import defaultdict

from insight_trace.chips import Chip, find_chip
from insight_trace.insight import details_page as page
from insight_trace.trace.stats import Stats
from insight_trace.trace.work import Arithmetic

# Titles are fixed: Insight draws no others.
_CHIP = "GM/L2"
_PATHS = {"cube": "Memory Transfer(Cube)", "vector": "Memory Transfer(Vector)"}
_INSIDE = {"cube": "Memory Unit(Cube)", "vector": "Memory Unit(Vector)"}
_PIPELINE = {"cube": "Pipeline(Cube)", "vector": "Pipeline(Vector)"}
# What each mover of a core carries, by the unit that it serves.
_MOVERS: dict[str, dict[str, tuple[str, ...]]] = {
    "cube": {"MTE1": ("L1_TO_L0A", "L1_TO_L0B"), "MTE2": ("GM_TO_L1",), "MTE3": ("L1_TO_GM",),
             "FIXP": ("L0C_TO_GM", "L0C_TO_L1")},
    "vector": {"MTE2": ("GM_TO_UB",), "MTE3": ("UB_TO_GM",)},
}  # fmt: skip
# Which unit a path serves, and for paths inside a core the instruction whose rate is its ceiling.
_UNIT = {
    "GM_TO_L1": "cube",
    "L1_TO_GM": "cube",
    "L0C_TO_GM": "cube",
    "GM_TO_UB": "vector",
    "UB_TO_GM": "vector",
}
_RATES = {"L1_TO_L0A": ("cube", "LOAD_L1_TO_L0A_2D"), "L1_TO_L0B": ("cube", "LOAD_L1_TO_L0B_2D")}


def roofline(figures: Stats, advice: str) -> page.Roofline | None:
    """Charts of the chip's memory, of the paths to it and of those inside a core; None without arithmetic."""
    chip = find_chip(figures.soc_version) if figures.soc_version else None
    moved: dict[str, int] = defaultdict(int)
    users: dict[str, int] = defaultdict(int)
    for used in figures.paths:
        moved[used.path] += used.bytes
        users[used.path] += 1
    charts: dict[str, list[page.Roof]] = defaultdict(list)
    for item in figures.arithmetic:
        if chip is not None:
            charts[_CHIP] += _of_chip(chip, figures, item)
        for path, unit in _UNIT.items():
            ceiling = figures.roofs.bandwidth.get(path)
            if unit == item.unit and ceiling and moved[path]:
                charts[_PATHS[unit]].append(_roof(item, path, ceiling * users[path], moved[path]))
        for path, rate in _inside(chip, figures, item.unit).items():
            if moved[path]:
                charts[_INSIDE[item.unit]].append(_roof(item, path, rate * users[path], moved[path]))
        charts[_PIPELINE[item.unit]] += _of_movers(item, moved, users, ceilings(figures))
    drawn = [page.RoofChart(title, lines) for title, lines in charts.items() if lines]
    return page.Roofline(advice, drawn) if drawn else None


def ceilings(figures: Stats) -> dict[str, float]:
    """GB/s of one core over every path whose ceiling is known, inside the core and out of it."""
    chip = find_chip(figures.soc_version) if figures.soc_version else None
    inside = {unit: _inside(chip, figures, unit) for unit in ("cube", "vector")}
    return {**inside["cube"], **inside["vector"], **figures.roofs.bandwidth}


def _of_movers(
    item: Arithmetic, moved: dict[str, int], users: dict[str, int], known: dict[str, float]
) -> list[page.Roof]:
    """Each mover of the unit: its ceiling is that of its paths, weighted by what each of them carried."""
    found = []
    for mover, paths in _MOVERS[item.unit].items():
        used = [path for path in paths if moved[path]]
        if used and all(path in known for path in used):
            carried = sum(moved[path] for path in used)
            seconds = sum(moved[path] / (known[path] * users[path]) for path in used)
            found.append(_roof(item, mover, carried / seconds, carried))
    return found


def _of_chip(chip: Chip, figures: Stats, item: Arithmetic) -> list[page.Roof]:
    """Memory and L2 of the whole chip, where the run says what it asked of them."""
    memory = figures.memory
    if memory is None:
        return []
    found = []
    for name, key, moved in (
        ("HBM", "gm.chip_rate", memory.fetched + memory.written_back),
        ("L2", "l2.chip_rate", memory.asked),
    ):
        if moved and key in chip.table["value"]:
            found.append(_roof(item, name, chip.value(key) * figures.mhz / 1e3, moved))
    return found


def _inside(chip: Chip | None, figures: Stats, unit: str) -> dict[str, float]:
    """GB/s of one core's paths between its memories and its unit."""
    if unit == "vector":
        rate = figures.roofs.vector_bytes_per_cycle * figures.mhz / 1e3
        return {"UB_TO_VEC": rate, "VEC_TO_UB": rate}
    if chip is None:
        return {}
    rates = {}
    for path, (of, instruction) in _RATES.items():
        rate = chip.table["move"].get(instruction, {}).get("rate")
        if of == unit and rate:
            rates[path] = float(rate) * figures.mhz / 1e3
    return rates


def _roof(item: Arithmetic, name: str, gb_per_s: float, moved: int) -> page.Roof:
    intensity = item.operations / moved
    allowed = min(item.roof_giga_per_s, intensity * gb_per_s)
    return page.Roof(
        bw=gb_per_s / 1e3,
        bw_name=name.replace("_TO_", "→"),
        computility=item.roof_giga_per_s / 1e3,
        computility_name=item.unit.capitalize(),
        point=[intensity, item.giga_per_s / 1e3],
        ratio=round(item.giga_per_s / allowed, 4),
    )
