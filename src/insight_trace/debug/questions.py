"""What can be asked at a moment: commands of the prompt and flags of the command line, one table for both."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from insight_trace.debug.breaks import Break, parse_break, search
from insight_trace.debug.debug_session import Session
from insight_trace.debug.journal import GM
from insight_trace.debug.moment import Moment, Shown
from insight_trace.debug.tile_layout import Tile, as_double, is_number, type_name
from insight_trace.dtypes import TILE_ONLY_TYPES, dtype_named
from insight_trace.errors import RequestError, did_you_mean
from insight_trace.recording.operands import MEMORIES
from insight_trace.storage import whole_file

Answer = dict[str, Any]
_SHAPE = re.compile(r"(?P<rows>\d+)x(?P<cols>\d+)")


def tile_named(moment: Moment, name: str) -> Tile:
    """`dst` or `src0` of the op at a moment."""
    tiles = dict(moment.tiles())
    if name not in tiles:
        has = ", ".join(tiles) if tiles else "none: it belongs to no tile op"
        raise RequestError(f"instruction {moment.row} has no tile '{name}'", hint=f"it has {has}")
    return tiles[name]


def number(text: str, what: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise RequestError(f"'{text}' is no {what}") from None


def memory_named(text: str) -> int:
    names = [name.casefold().replace(" ", "_") for name in MEMORIES]
    if text.casefold() not in names:
        raise RequestError(f"there is no memory '{text}'", hint=", ".join(names))
    return names.index(text.casefold())


class Questions:
    """A place in a session that is moved by commands, each of which gives an answer."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.moment = session.moment(-1)
        self.before = self.moment
        self.core: int | None = None
        self.breaks: list[Break] = []

    def do(self, name: str, words: list[str]) -> Answer:
        """One command; what it says is plain data."""
        if name not in COMMANDS:
            hint = did_you_mean(name, COMMANDS, "did you mean {}?") or "help"
            raise RequestError(f"there is no command '{name}'", hint=hint)
        _, _, body = COMMANDS[name]
        return {"command": " ".join([name, *words]), **body(self, words)}

    # --- moving ----------------------------------------------------------------------------------------------

    def _to(self, moment: Moment) -> Answer:
        self.before, self.moment = self.moment, moment
        return self.where([])

    def _nth(self, rows: Any, words: list[str], what: str) -> Answer:
        count = number(words[0], "number") if words else 1
        if not 1 <= count <= len(rows):
            hint = (
                f"1 to {len(rows)} are possible"
                if len(rows)
                else "`insight-trace stats WORKSPACE` lists what is executed"
            )
            raise RequestError(f"{what} is executed {len(rows)} times, not {count}", hint=hint)
        return self._to(self.session.moment(int(rows[count - 1])))

    def _own(self) -> Any:
        core = self.session.instructions.core
        return np.arange(len(core)) if self.core is None else np.flatnonzero(core == self.core)

    def go(self, words: list[str]) -> Answer:
        return self._to(self.session.moment(number(_one(words, "instruction"), "instruction")))

    def start(self, _words: list[str]) -> Answer:
        return self._to(self.session.moment(-1))

    def end(self, _words: list[str]) -> Answer:
        return self._to(self.session.moment(int(self._own()[-1])))

    def line(self, words: list[str]) -> Answer:
        wanted = number(_one(words, "line"), "line")
        stream = self.session.instructions
        lines = np.array([int(s.split("\n")[0].rpartition(":")[2] or 0) if s else 0 for s in stream.stacks])
        rows = self._own()
        return self._nth(rows[lines[stream.stack[rows]] == wanted], words[1:], f"line {wanted}")

    def op(self, words: list[str]) -> Answer:
        name = _one(words, "tile op").upper()
        operands, rows = self.session.operands, []
        for call in np.flatnonzero(np.array(operands.ops)[operands.calls["op"]] == name).tolist():
            last = self.session.call_rows(call)[1]
            if last >= 0 and (self.core is None or int(operands.calls["core"][call]) == self.core):
                rows.append(last)
        return self._nth(rows, words[1:], name)

    def cycle(self, words: list[str]) -> Answer:
        when = number(_one(words, "cycle"), "cycle")
        rows = self._own()
        ended = rows[self.session.instructions.end[rows] <= when]
        if not len(ended) or when > int(self.session.instructions.end.max()):
            raise RequestError(
                f"cycle {when} lies outside the run, which ends at {int(self.session.instructions.end.max())}"
            )
        return self._to(self.session.moment(int(ended.max())))

    def finding(self, words: list[str]) -> Answer:
        which = number(_one(words, "finding"), "finding")
        findings = self.session.recording.findings
        if not 1 <= which <= len(findings):
            raise RequestError(
                f"the recording has {len(findings)} findings", hint="replay with --check keeps what it finds"
            )
        places = findings[which - 1].get("places", ()) if isinstance(findings[which - 1], dict) else ()
        rows = [place["row"] for place in places if place.get("row", -1) >= 0]
        if not rows:
            raise RequestError(f"finding {which} names no instruction")
        return self._to(self.session.moment(rows[-1]))

    def step(self, words: list[str]) -> Answer:
        return self._to(self.moment.step(_count(words)))

    def back(self, words: list[str]) -> Answer:
        return self._to(self.moment.step(-_count(words)))

    def next_op(self, words: list[str]) -> Answer:
        return self._by_op(_count(words))

    def previous_op(self, words: list[str]) -> Answer:
        return self._by_op(-_count(words))

    def _by_op(self, count: int) -> Answer:
        """The end of the op so many ops further."""
        operands = self.session.operands
        core = self.core if self.core is not None else self.moment.core
        ends = sorted(
            last
            for call in np.flatnonzero(operands.calls["core"] == core).tolist()
            if (last := self.session.call_rows(call)[1]) >= 0
        )
        place = int(np.searchsorted(ends, self.moment.row, "right" if count > 0 else "left"))
        place += count - 1 if count > 0 else count
        if not 0 <= place < len(ends):
            raise RequestError("there is no tile op there: this is the first or the last")
        return self._to(self.session.moment(ends[place]))

    def next_line(self, words: list[str]) -> Answer:
        return self._by_line(1, _count(words))

    def previous_line(self, words: list[str]) -> Answer:
        return self._by_line(-1, _count(words))

    def _by_line(self, way: int, count: int) -> Answer:
        moment = self.moment
        for _ in range(count):
            here = self.session.place_of(moment.row) if moment.row >= 0 else ("", 0)
            moment = moment.step(way)
            while moment.row >= 0 and self.session.place_of(moment.row) == here:
                moment = moment.step(way)
        return self._to(moment)

    def choose_core(self, words: list[str]) -> Answer:
        cores = self.session.instructions.cores
        text = _one(words, "core")
        found = [i for i, name in enumerate(cores) if text in (name, str(i))]
        if not found:
            raise RequestError(f"there is no core '{text}'", hint=", ".join(cores[:12]))
        self.core = found[0]
        return {"core": cores[self.core]}

    def set_break(self, words: list[str]) -> Answer:
        if words:
            self.breaks.append(parse_break(self, words))
        return {"breaks": [one.text for one in self.breaks]}

    def forget(self, _words: list[str]) -> Answer:
        self.breaks.clear()
        return {"breaks": []}

    def go_on(self, _words: list[str]) -> Answer:
        return self._search(1)

    def reverse(self, _words: list[str]) -> Answer:
        return self._search(-1)

    def _search(self, way: int) -> Answer:
        found = search(self.session, self.breaks, self.moment.row, way)
        if found is None:
            return {"stopped": False, "text": "nothing that was asked for happens there"}
        return {"stopped": True, "at": found[1]} | self._to(self.session.moment(found[0]))

    # --- looking ---------------------------------------------------------------------------------------------

    def where(self, _words: list[str]) -> Answer:
        moment, stream = self.moment, self.session.instructions
        if moment.row < 0:
            return {"row": -1, "text": "before the first instruction"}
        file, line = self.session.place_of(moment.row)
        call = moment.call
        return {
            "row": moment.row, "core": stream.cores[moment.core], "instruction": stream.names[stream.name[moment.row]],
            "detail": stream.detail[moment.row], "op": self.session.op_name(call) if call is not None else "",
            "file": file, "line": line, "source": self.session.line_text(moment.row), "cycle": int(stream.end[moment.row]),
            "start": int(stream.start[moment.row]),
        }  # fmt: skip

    def tiles(self, _words: list[str]) -> Answer:
        return {"tiles": [{"name": name, **_facts(tile)} for name, tile in self.moment.tiles()]}

    def _shown(self, words: list[str], moment: Moment | None = None) -> Shown:
        moment = moment or self.moment
        if len(words) <= 1:
            return moment.show(tile_named(self.moment, words[0] if words else "dst"), self._owner())
        if len(words) != 4:
            raise RequestError(
                "a place in memory is MEMORY ADDRESS TYPE ROWSxCOLUMNS", hint="show UB 0x2000 f32 16x64"
            )
        shape = _SHAPE.fullmatch(words[3])
        kind = dtype_named(words[2])
        code = kind.code if kind is not None else TILE_ONLY_TYPES.get(words[2].casefold(), -1)
        if shape is None or code < 0:
            raise RequestError(f"'{words[2]} {words[3]}' is no element type and shape", hint="f32 16x64")
        rows, cols = int(shape["rows"]), int(shape["cols"])
        tile = Tile(memory_named(words[0]), number(words[1], "address"), rows, cols, rows, cols, code)
        return moment.show(tile, self._owner())

    def _owner(self) -> int:
        return self.core if self.core is not None else self.moment.core

    def show(self, words: list[str]) -> Answer:
        shown = self._shown(words)
        return {
            "name": shown.name,
            **_facts(shown.tile),
            "values": shown.values,
            "statistics": shown.statistics(),
        }

    def stats(self, words: list[str]) -> Answer:
        shown = self._shown(words)
        return {"name": shown.name, "statistics": shown.statistics()}

    def diff(self, words: list[str]) -> Answer:
        """The tile now and before this instruction's op."""
        call = self.moment.call
        first = self.session.call_rows(call)[0] if call is not None else self.moment.row
        earlier = self.session.moment(max(-1, first - 1))
        now, then = self._shown(words), self._shown(words, earlier)
        kind = np.dtype(f"u{now.values.dtype.itemsize}")
        unlike = np.ascontiguousarray(now.values).view(kind) != np.ascontiguousarray(then.values).view(kind)
        places = np.argwhere(unlike)
        changes = [
            {
                "element": [int(r), int(c)],
                "before": plain(then.values[r, c]),
                "after": plain(now.values[r, c]),
            }
            for r, c in places[:64].tolist()
        ]
        return {
            "name": now.name,
            "from": earlier.row,
            "to": self.moment.row,
            "changed": len(places),
            "changes": changes,
        }

    def export(self, words: list[str]) -> Answer:
        if len(words) < 2:
            raise RequestError("export takes a tile and a file", hint="export dst tile.npy")
        shown, path = self._shown(words[:-1]), Path(words[-1])
        values = shown.values
        if values.dtype.kind not in "iufb":
            values = as_double(values).astype(np.float32)  # NumPy files know no bfloat16
        with whole_file(path) as beside:
            np.save(beside, values, allow_pickle=False)
        return {"file": str(path), "dtype": str(values.dtype), "shape": list(values.shape)}

    def bytes(self, words: list[str]) -> Answer:
        if len(words) != 3:
            raise RequestError("bytes takes a memory, an address and a count", hint="bytes UB 0x0 64")
        begin, count = number(words[1], "address"), number(words[2], "count")
        memory = memory_named(words[0])
        if count < 1 or count > 1 << 20:
            raise RequestError("from 1 byte to 1 MiB at a time")
        content = self.moment.bytes(self._owner(), memory, begin, begin + count)
        known = self.session.journal().pages(begin, begin + count) if memory == GM else None
        return {"memory": MEMORIES[memory], "address": begin, "hex": content.tobytes().hex(),
                "untouched": int((~known).sum()) if known is not None else 0}  # fmt: skip

    def flags(self, _words: list[str]) -> Answer:
        return {"flags": self.moment.flags(self.core)}

    def pipes(self, _words: list[str]) -> Answer:
        stream = self.session.instructions
        found = self.moment.pipes(self.core)
        for pipe in found:
            pipe["works_on"] = [f"{row} {stream.names[stream.name[row]]}" for row in pipe.pop("rows")]
        return {"cycle": int(stream.end[self.moment.row]) if self.moment.row >= 0 else 0, "pipes": found}

    def registers(self, _words: list[str]) -> Answer:
        return {"registers": self.moment.registers(self.core)}

    def changed(self, _words: list[str]) -> Answer:
        cores = self.session.instructions.cores
        return {
            "changed": [
                {
                    "core": "" if memory == GM else cores[core],
                    "memory": MEMORIES[memory],
                    "begin": begin,
                    "end": end,
                }
                for core, memory, begin, end in self.moment.changed()
            ]
        }


def plain(value: Any) -> Any:
    """An element as JSON has it."""
    if value.dtype.kind in "iub":
        return int(value)
    as_float = float(np.float64(value) if value.dtype.kind == "f" else np.float32(value))
    return as_float if np.isfinite(as_float) else str(as_float)


def _facts(tile: Tile) -> Answer:
    rows, cols = tile.valid
    layout = "ND" if tile.inner == 0 and tile.row_major else "DN" if tile.inner == 0 else (
        ("Z" if tile.row_major else "N") + ("Z" if tile.inner == 1 else "N")
    )  # fmt: skip
    return {"memory": MEMORIES[tile.memory], "address": tile.address, "dtype": type_name(tile.type), "valid": [rows, cols],
            "layout": layout, "numbers": is_number(tile.type)}  # fmt: skip


def _one(words: list[str], what: str) -> str:
    if not words:
        raise RequestError(f"which {what}?")
    return words[0]


def _count(words: list[str]) -> int:
    count = number(words[0], "number") if words else 1
    if count < 1:
        raise RequestError("a count is 1 or more")
    return count


Body = Callable[[Questions, list[str]], Answer]
# name -> what it takes, what it does, how
COMMANDS: dict[str, tuple[str, str, Body]] = {
    "go": ("ROW", "to an instruction", Questions.go),
    "start": ("", "before the first instruction", Questions.start),
    "end": ("", "to the last instruction", Questions.end),
    "line": ("LINE [N]", "to the Nth instruction of a source line", Questions.line),
    "op": ("NAME [N]", "to the end of the Nth execution of a tile op", Questions.op),
    "cycle": ("C", "to what had ended at a cycle", Questions.cycle),
    "finding": ("N", "to what a finding of the checker names", Questions.finding),
    "step": ("[N]", "an instruction forward", Questions.step),
    "back": ("[N]", "an instruction back", Questions.back),
    "next-op": ("[N]", "to the end of the next tile op", Questions.next_op),
    "previous-op": ("[N]", "to the end of the tile op before", Questions.previous_op),
    "next-line": ("[N]", "to another line, forward", Questions.next_line),
    "previous-line": ("[N]", "to another line, back", Questions.previous_line),
    "core": ("NAME", "look at this core only", Questions.choose_core),
    "break": (
        "line N | op NAME | write TILE | write MEMORY ADDRESS [BYTES] | nan",
        "stop there",
        Questions.set_break,
    ),
    "forget": ("", "no more stops", Questions.forget),
    "continue": ("", "forward to the next stop", Questions.go_on),
    "reverse": ("", "back to the stop before", Questions.reverse),
    "where": ("", "the instruction, its line and its op", Questions.where),
    "tiles": ("", "tiles of the op", Questions.tiles),
    "show": ("[TILE | MEMORY ADDRESS TYPE RxC]", "a tile as a matrix", Questions.show),
    "stats": ("[TILE]", "how many, least, largest, NaN", Questions.stats),
    "diff": ("[TILE]", "what the op changed in a tile", Questions.diff),
    "export": ("TILE FILE.npy", "a tile as a NumPy file", Questions.export),
    "bytes": ("MEMORY ADDRESS COUNT", "raw bytes", Questions.bytes),
    "changed": ("", "all that the instruction changed", Questions.changed),
    "flags": ("", "flags that are set and not waited for", Questions.flags),
    "pipes": ("", "what each pipe does when the instruction ends", Questions.pipes),
    "registers": ("", "registers written last", Questions.registers),
}
