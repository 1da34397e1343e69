"""Pipes and cores: their order, their names, and which lanes are one unit."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from insight_trace.model import Pipe

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# The engine's numbers (abi.hpp PipeId), and the same as operands spell them.
ENGINE_PIPES = (Pipe.SCALAR, Pipe.VECTOR, Pipe.CUBE, Pipe.MTE1, Pipe.MTE2, Pipe.MTE3, Pipe.ALL, Pipe.FIXP)
PIPE_TEXT = ("SCALAR", "VEC", "CUBE", "MTE1", "MTE2", "MTE3", "ALL", "FIXP")
KERNEL_PIPES = ("S", "V", "M", "MTE1", "MTE2", "MTE3", "ALL", "FIX")  # as kernels write them

# From the load of a tile to its store; what follows them never moves a tile.
DATAFLOW = (
    Pipe.MTE2, Pipe.MTE1, Pipe.CUBE, Pipe.VECTOR, Pipe.RVECLD, Pipe.RVECEX, Pipe.RVECST, Pipe.RVECLP,
    Pipe.RVECSU, Pipe.FIXP, Pipe.MTE3,
)  # fmt: skip
# The 950 shows its one vector unit on several lanes: what is pushed, and what loads, computes and stores.
VECTOR_LANES = (Pipe.PUSHQ, Pipe.RVECLD, Pipe.RVECEX, Pipe.RVECST, Pipe.RVECLP, Pipe.RVECSU)
# Where arithmetic of the vector unit is shown: one pipe, or on the 950 one of its lanes.
VECTOR_ARITHMETIC = (Pipe.VECTOR, Pipe.RVECEX)
ORDER: dict[int, int] = {int(pipe): place for place, pipe in enumerate(DATAFLOW)}
for _pipe in Pipe:
    ORDER.setdefault(int(_pipe), len(DATAFLOW) + int(_pipe))

_OTHER_NAMES = {
    name: pipe for names in (PIPE_TEXT, KERNEL_PIPES) for name, pipe in zip(names, ENGINE_PIPES, strict=True)
}


def pipe_name(pipe: int) -> str:
    """The pipe as people say it; a code that no pipe has stays a number."""
    try:
        return "FIXPIPE" if pipe == Pipe.FIXP else Pipe(pipe).name
    except ValueError:
        return f"PIPE {pipe}"


def named_pipe(text: str) -> str:
    """The same for a pipe as operands spell it; a name that nobody knows stays as it is."""
    return pipe_name(_OTHER_NAMES[text]) if text in _OTHER_NAMES else text


def units(pipe: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The unit that each lane belongs to: every lane of the 950's vector unit is VECTOR, others are themselves."""
    import numpy as np

    unit = np.arange(256, dtype=np.uint8)
    unit[list(VECTOR_LANES)] = Pipe.VECTOR
    return unit[pipe]


def core_order(core: str) -> tuple[tuple[str, int], ...]:
    """Sorts core2 before core10."""
    return tuple((text, int(number or 0)) for text, number in re.findall(r"(\D*)(\d*)", core))
