"""Checks the events of a timeline against what Insight draws."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from insight_trace.errors import InputError
from insight_trace.insight.events import ANY_EVENTS, HEAD, WINDOW, opening_of, read_events
from insight_trace.insight.lanes import COUNTER_PROCESS
from insight_trace.insight.rules import Broken
from insight_trace.limits import cut
from insight_trace.reading import open_regular
from insight_trace.recording.kinds import CROSS_CORE_NAMES, FLAG_NAMES, SET_NAMES

_PHASES = frozenset("XBEstMC")
_BETWEEN_PIPES = re.compile(r"\w+To\w+|")  # the category of a flag's arrow
_FREE = "arrow of another category"
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
_TAIL = 1 << 16
_SET, _WAIT, _CROSS_CORE = "SET", "WAIT", "flag between cores"
_MOST = 20  # complaints of one kind about one file


class EventCheck(Struct):
    """What was seen so far in one document."""

    where: str
    whole: bool = True  # False: a core's own trace, whose ids and names follow other rules
    broken: list[Broken] = field(default_factory=list)
    processes: set[str] = field(default_factory=set)
    events: int = 0
    # how often an id comes: by what it is on (SET, WAIT, _CROSS_CORE) and phase, and by phase of a flow
    flags: dict[tuple[str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    flows: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    free: set[str] = field(default_factory=set)  # ids of arrows that belong to no flag
    first: dict[str, int] = field(default_factory=dict)  # by id, the event at which it came first
    told: Counter[str] = field(default_factory=Counter)

    def report(self, rule: str, number: int | None, what: str) -> None:
        self.told[rule] += 1
        if self.told[rule] <= _MOST:
            where = self.where if number is None else f"{self.where} event {number}"
            self.broken.append(Broken(rule, where, what))

    def _count(self, name: str, phase: str, ids: list[str]) -> None:
        if phase in "st":
            self.flows[phase].update(ids)
            if name == _FREE:
                self.free.update(ids)
        else:
            on = _CROSS_CORE if name in CROSS_CORE_NAMES else _SET if name in SET_NAMES else _WAIT
            self.flags[on, phase].update(ids)

    def _one(self, name: str, phase: str, key: str, number: int) -> None:
        if self.whole:
            self._count(name, phase, [key])
            self.first.setdefault(key, number)

    def look_at(self, events: list[Any]) -> None:
        for event in events:
            number = self.events
            self.events += 1
            if not isinstance(event, dict):
                self.report("trace-object", number, "is not an object")
                continue
            phase = event.get("ph")
            if not isinstance(phase, str) or phase not in _PHASES:
                if phase == "f":
                    self.report("flow-end", number, "a flow ends with f, which is ignored; write t")
                else:
                    self.report("event-phase", number, f"ph is {cut(repr(phase))}")
                continue
            if "args" in event and next(iter(event)) != "args" and _late_args(event):
                self.report("trace-object", number, "args stand after ph")
            if phase == "X":
                self._slice(number, event)
            elif phase in "BE":
                self._flag(number, event, phase)
            elif phase in "st":
                between = _BETWEEN_PIPES.fullmatch(str(event.get("cat", "")))
                self._one("" if between else _FREE, phase, str(event.get("id", "")), number)

    def _slice(self, number: int, event: dict[str, Any]) -> None:
        process = event.get("pid", "")
        if process == "" or event.get("tid", "") == "":
            self.report("event-place", number, "a slice without pid or tid is dropped")
        elif isinstance(process, str):
            self.processes.add(process)

    def _flag(self, number: int, event: dict[str, Any], phase: str) -> None:
        name, key = event.get("name"), cut(str(event.get("id", "")))
        name = name if isinstance(name, str) else repr(name)
        if name in CROSS_CORE_NAMES:
            self._one(name, phase, key, number)
        elif name not in FLAG_NAMES:
            self.report("flag-pairs", number, f"{phase} event {name!r} vanishes, only flags may be B and E")
        elif key == "":
            self.report("flag-pairs", number, f"{name} has no id")
        else:
            self._one(name, phase, key, number)
            if event.get("pid", "") == "" or event.get("tid", "") == "":
                self.report("event-place", number, "a flag without pid or tid is dropped")
            elif isinstance(event.get("pid"), str):
                self.processes.add(event["pid"])

    def finish(self) -> None:
        """What only the whole document tells."""
        if self.events == 0:
            self.report("empty-timeline", None, "there is no event")
        ids = {key for counted in self.flags.values() for key in counted}
        for kind in (_SET, _WAIT):
            begins, finishes = self.flags[kind, "B"], self.flags[kind, "E"]
            for key in _uneven(begins, finishes):
                begun, ended = begins[key], finishes[key]
                if begun > 1 or ended > 1:
                    self.report(
                        "flag-pairs", self.first.get(key), f"id {key!r} is used by {begun} {kind} flags"
                    )
                else:
                    what = f"id {key!r}: a {kind} flag has B or E but not both"
                    self.report("flag-pairs", self.first.get(key), what)
        starts, ends = self.flows["s"], self.flows["t"]
        for key in _uneven(starts, ends):
            what = f"id {key!r} has {starts[key]} flow starts and {ends[key]} ends; one of each is drawn"
            self.report("flow-pairs", self.first.get(key), what)
        for key in sorted((starts.keys() & ends.keys()) - ids - self.free):
            self.report("flow-pairs", self.first.get(key), f"id {key!r} is on no flag")


def _uneven(one: Counter[str], other: Counter[str]) -> list[str]:
    """Ids that do not come once in each."""
    if one.keys() == other.keys() and {*one.values(), *other.values()} <= {1}:
        return []
    return sorted(key for key in one.keys() | other.keys() if (one[key], other[key]) != (1, 1))


def _late_args(event: dict[str, Any]) -> bool:
    for key in event:
        if key == "args":
            return False
        if key == "ph":
            return True
    return False


def check_timeline(path: Path, start: int, size: int, where: str, *, whole: bool, sample: bool) -> EventCheck:
    """Checks a document that lies in a file. `sample` looks at its beginning and end only."""
    check = EventCheck(where, whole)
    with open_regular(path) as file:
        try:
            opening = opening_of(file, start, size, where)
        except InputError as error:
            check.report("trace-object", None, error.what)
            return check
        if opening.array:
            check.report("trace-object", None, "an array, where Insight wants an object with traceEvents")
        file.seek(start)
        head = file.read(min(size, HEAD))
        bracket = head.find(b"[")
        if b'"profilingType"' not in head[: bracket if bracket >= 0 else len(head)]:
            check.report("profiling-type", None, "profilingType does not stand before the first [")
        file.seek(start + max(0, size - _TAIL))
        _check_tail(check, file.read(min(size, _TAIL)))
        length = size - opening.start
        try:
            for events in read_events(file, start + opening.start, length, where, ANY_EVENTS):
                check.look_at(events)
                if sample and length > 2 * WINDOW:
                    break
        except InputError as error:
            check.report("trace-object", None, error.what)
            return check
    if whole and not (sample and length > 2 * WINDOW):
        check.finish()
    check.processes.discard(COUNTER_PROCESS)
    return check


def _check_tail(check: EventCheck, tail: bytes) -> None:
    last = tail.rfind(b'"ph"')
    if last < 0:
        return
    after = tail[last:]
    for text in _STRING.findall(after):
        if b"{" in text or b"}" in text:
            shown = text[:60].decode("utf-8", "replace")
            check.report("trace-object", None, f"a brace stands in a string after the last ph: {shown}")
            return
    if not after.rstrip().endswith((b"}", b"]")):
        check.report("trace-object", None, "the document is cut off")
