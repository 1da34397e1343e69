"""Works out the clock of a timeline, which holds microseconds but not the frequency that made them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from insight_trace.chips import known_clocks, load_chip

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from insight_trace.insight.metrics import Lookup

_SAMPLE = 4096
_SNAP = 0.005


def infer_clock(
    begin: NDArray[np.float64],
    lasting: NDArray[np.float64],
    lookup: Lookup | None,
    whole: NDArray[np.bool_],
    warnings: list[str],
) -> float:
    """MHz: cycles of the tables over durations of the slices, else the known clock that fits every time."""
    if lookup is not None:
        once = lookup.known & whole & (lookup("Instructions Executed") == 1) & (lasting > 0)
        cycles = lookup("Cycles")
        usable = np.flatnonzero(once & (cycles > 0))
        if len(usable):
            longest = usable[np.argsort(cycles[usable])[-32:]]
            ratio = float(np.median(cycles[longest] / lasting[longest]))
            return _snapped(ratio)
    times = _sample(begin, lasting)
    fitting = [mhz for mhz in known_clocks() if _fits(times, mhz)]
    if len(times) and fitting:
        return fitting[0]
    mhz = load_chip().mhz
    warnings.append(
        f"the clock is not known; times were read as cycles of {mhz:g} MHz (give mhz= to change it)"
    )
    return mhz


def _snapped(ratio: float) -> float:
    nearest = min(known_clocks(), key=lambda mhz: abs(mhz - ratio))
    if abs(nearest - ratio) <= 1e-4 * ratio:
        return nearest
    if abs(ratio - round(ratio)) <= 1e-5 * ratio and round(ratio) > 0:
        return float(round(ratio))
    return nearest if abs(nearest - ratio) <= _SNAP * ratio else round(ratio, 3)


def _sample(begin: NDArray[np.float64], lasting: NDArray[np.float64]) -> NDArray[np.float64]:
    values = np.concatenate((begin[:_SAMPLE], lasting[:_SAMPLE]))
    return values[values > 0]


def _fits(times: NDArray[np.float64], mhz: float) -> bool:
    """Whether every time is a whole number of cycles, to the last bit of the float32 it was."""
    cycles: NDArray[Any] = np.rint(times * mhz)
    return bool(((cycles / mhz).astype(np.float32) == times.astype(np.float32)).all())
