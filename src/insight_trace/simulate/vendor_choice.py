"""What `--simulator auto` means, for replay and profile alike.

The vendor's simulator where CANN is named, by an option or by CANN_SET_ENV or ASCEND_HOME_PATH, and works; the embedded
one everywhere else. An installation that only the environment names and that does not work is passed over with a
warning; one that the user named is an error. A chip's name says nothing about CANN, as both simulators know it; a chip
file is the embedded simulator's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from insight_trace.errors import InsightTraceError, RequestError

T = TypeVar("T")

SIMULATORS = ("embedded", "msprof")
_VARIABLES = ("CANN_SET_ENV", "ASCEND_HOME_PATH")


def require_known(simulator: str) -> str:
    """The name, if it is one that `--simulator` takes."""
    if simulator not in ("auto", *SIMULATORS):
        raise RequestError(
            f"there is no simulator '{simulator}'", hint=f"there are: auto, {', '.join(SIMULATORS)}"
        )
    return simulator


def vendor_or(
    prepare_vendor: Callable[[], T],
    environ: Mapping[str, str],
    *,
    named: Iterable[Path | None],
    chip: str | None,
    warn: Callable[[str], None],
) -> T | None:
    """What `auto` takes: the vendor's simulator made ready, or None for the embedded one.

    `named` are the options that only the vendor's simulator reads, `chip` is what --soc-version says.
    """
    if chip and chip.endswith(".toml"):
        return None
    given = any(named)
    if not given and not any(environ.get(name) for name in _VARIABLES):
        return None
    try:
        return prepare_vendor()
    except InsightTraceError as error:
        if given:
            raise
        warn(f"CANN is not used: {error}")
        return None
