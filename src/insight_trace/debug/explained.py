"""Why a number is what it is, or which line made an output wrong: the answer with all that it rests on."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from insight_trace.debug.chain import chain, link_data
from insight_trace.debug.debug_session import Session
from insight_trace.debug.journal import GM
from insight_trace.debug.mismatch import addresses_in, named_element
from insight_trace.debug.questions import tile_named
from insight_trace.debug.slices import Backward, Slice
from insight_trace.debug.why import Mismatch, first_mismatch, why_element
from insight_trace.errors import RequestError
from insight_trace.results import Result


@dataclass(frozen=True, eq=False, repr=False)
class Explained(Result):
    """The lines behind an element, or behind outputs that are wrong."""

    session: Session
    slice: Slice
    element: str = ""
    value: Any = None
    mismatch: Mismatch | None = None  # where it is about outputs that differ from the recording

    def summary(self) -> str:
        if self.mismatch is None:
            return f"{self.element} = {self.value} · {len(chain(self.session, self.slice))} steps"
        suspects = self.mismatch.suspects
        first = f"{suspects[0].file}:{suspects[0].line} {suspects[0].op}" if suspects else "no suspect"
        return f"{sum(len(one.flat) for one in self.mismatch.wrong):,} elements are wrong · {first}"

    def columns(self) -> Mapping[str, Any]:
        """One row per step on the way back to the inputs."""
        links = [link_data(link) for link in chain(self.session, self.slice)]
        return {name: [link.get(name) for link in links] for name in (links[0] if links else ())}

    def data(self) -> dict[str, Any]:
        found = self.slice
        about = {
            "chain": [link_data(link) for link in chain(self.session, found)],
            "inputs": {str(slot): len(offsets) for slot, offsets in sorted(found.inputs.items())},
            "unwritten": found.unwritten + sum(step.unwritten for step in found.steps.values()),
            "cut": found.cut,
            "remarks": list(self.session.remarks),
        }
        if self.mismatch is None:
            return {"element": self.element, "value": self.value} | about
        return _mismatch_data(self.mismatch) | about


def explain(session: Session, element: str | None, seconds: float) -> Explained:
    """What made an element, or without one what made outputs differ from the recording."""
    if element is None:
        found = first_mismatch(session, seconds)
        return Explained(session, found.slice, mismatch=found)
    of_tile = re.fullmatch(r"(?P<row>\d+):(?P<tile>dst|src\d+)\[(?P<r>\d+),\s*(?P<c>\d+)\]", element.strip())
    if of_tile is not None:
        moment = session.moment(int(of_tile["row"]))
        tile = tile_named(moment, of_tile["tile"])
        row, col = int(of_tile["r"]), int(of_tile["c"])
        shown = moment.show(tile)
        if row >= shown.values.shape[0] or col >= shown.values.shape[1]:
            raise RequestError(f"element [{row},{col}] lies outside the tile, {list(shown.values.shape)}")
        address = np.array([tile.address + int(tile.offsets()[row, col])], np.int64)
        slice_ = Backward(session).slice(moment.core, tile.memory, address, moment.row + 1)
        return Explained(session, slice_, element, plain_number(shown.values[row, col]))
    tensor, index = named_element(session, element)
    flat = np.array([np.ravel_multi_index(index, tensor.shape) if index else 0], np.int64)
    address = addresses_in(session, tensor, flat)
    last = session.moment(len(session.instructions) - 1)
    raw = last.bytes(0, GM, int(address[0]), int(address[0]) + tensor.dtype.size)
    value = plain_number(raw.view(tensor.dtype.numpy)[0])
    return Explained(session, why_element(session, tensor, index), element, value)


def plain_number(value: Any) -> Any:
    plain = value.item() if value.dtype.kind in "iufb" else float(value)
    return plain if not isinstance(plain, float) or math.isfinite(plain) else str(plain)


def _mismatch_data(found: Mismatch) -> dict[str, Any]:
    return {
        "wrong": [
            {"slot": one.tensor.slot, "first": list(one.first), "wrong": len(one.flat), "compared": one.tensor.numel,
             "got": plain_number(one.got[one.first]), "expected": plain_number(one.want[one.first]),
             "tolerated": one.tolerated}
            for one in found.wrong
        ],
        "suspects": [
            {"file": s.file, "line": s.line, "op": s.op, "reasons": list(s.reasons), "fix": s.fix,
             "explained": s.explained, "exact": s.exact}
            for s in found.suspects
        ],
        "runs": found.runs,
    }  # fmt: skip
