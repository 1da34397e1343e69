"""Checks the events of a timeline against what Insight draws."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from insight_trace.errors import InputError
from insight_trace.insight.events import ANY_EVENTS, HEAD, WINDOW, opening_of, read_events
from insight_trace.insight.fast_events import SLICE, KnownForm, UnknownForm
from insight_trace.insight.lanes import COUNTER_PROCESS
from insight_trace.insight.rules import Broken
from insight_trace.limits import cut
from insight_trace.recording.kinds import CROSS_CORE_NAMES, FLAG_NAMES, SET_NAMES

_PHASES = frozenset("XBEstMC")
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
_TAIL = 1 << 16
_MOST = 20  # complaints of one kind about one file


@dataclass
class EventCheck:
    """What was seen so far in one document."""

    where: str
    whole: bool = True  # False: a core's own trace, whose ids and names follow other rules
    broken: list[Broken] = field(default_factory=list)
    processes: set[str] = field(default_factory=set)
    events: int = 0
    flags: Counter[tuple[bool, str, str]] = field(default_factory=Counter)
    flows: Counter[tuple[str, str]] = field(default_factory=Counter)
    first: dict[str, int] = field(default_factory=dict)
    told: Counter[str] = field(default_factory=Counter)
    form: KnownForm = field(default_factory=KnownForm)

    def report(self, rule: str, number: int | None, what: str) -> None:
        self.told[rule] += 1
        if self.told[rule] <= _MOST:
            where = self.where if number is None else f"{self.where} event {number}"
            self.broken.append(Broken(rule, where, what))

    def take(self, data: bytes) -> int:
        """The same for events of the form that is read many at a time; 0 where one needs a closer look."""
        try:
            events = self.form.read(data)
        except UnknownForm:
            return 0
        said = self.form.closings.said
        used = [said[number] for number in np.flatnonzero(np.bincount(events.closing)).tolist()]
        odd = any(process == "" or thread == "" for _, process, thread, phase in used if phase in "XBE")
        names = FLAG_NAMES | CROSS_CORE_NAMES
        if odd or any(phase in "BE" and name not in names for name, _, _, phase in used):
            return 0
        tied = np.flatnonzero(events.kind != SLICE)
        ids = [events.own[place] for place in tied.tolist()]
        closings = [said[number] for number in events.closing[tied].tolist()]
        if any(key == "" and phase in "BE" for key, (_, _, _, phase) in zip(ids, closings, strict=True)):
            return 0
        for key, number in zip(ids, (tied + self.events).tolist(), strict=True):
            self.first.setdefault(key, number)
        for key, (name, _, _, phase) in zip(ids, closings, strict=True):
            if phase in "st":
                self.flows[key, phase] += 1
            elif name in CROSS_CORE_NAMES:
                self.flags[False, key, "X"] += 1
            else:
                self.flags[name in SET_NAMES, key, phase] += 1
        kept = (p for name, p, _, phase in used if phase == "X" or (phase in "BE" and name in FLAG_NAMES))
        self.processes.update(kept)
        self.events += len(events)
        return len(events)

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
                key = str(event.get("id", ""))
                self.flows[key, phase] += 1
                self.first.setdefault(key, number)

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
            self.first.setdefault(key, number)
            self.flags[False, key, "X"] += 1
        elif name not in FLAG_NAMES:
            self.report("flag-pairs", number, f"{phase} event {name!r} vanishes, only flags may be B and E")
        elif key == "":
            self.report("flag-pairs", number, f"{name} has no id")
        else:
            self.flags[name in SET_NAMES, key, phase] += 1
            self.first.setdefault(key, number)
            if event.get("pid", "") == "" or event.get("tid", "") == "":
                self.report("event-place", number, "a flag without pid or tid is dropped")
            elif isinstance(event.get("pid"), str):
                self.processes.add(event["pid"])

    def finish(self) -> None:
        """What only the whole document tells."""
        if self.events == 0:
            self.report("empty-timeline", None, "there is no event")
        ids = {key for _, key, _ in self.flags}
        for setting in (True, False):
            for key in ids:
                begun, ended = self.flags[setting, key, "B"], self.flags[setting, key, "E"]
                kind = "SET" if setting else "WAIT"
                if begun > 1 or ended > 1:
                    self.report("flag-pairs", self.first[key], f"id {key!r} is used by {begun} {kind} flags")
                elif begun != ended:
                    self.report(
                        "flag-pairs", self.first[key], f"id {key!r}: a {kind} flag has B or E but not both"
                    )
        for key in {key for key, _ in self.flows}:
            starts, ends = self.flows[key, "s"], self.flows[key, "t"]
            if (starts, ends) != (1, 1):
                what = f"id {key!r} has {starts} flow starts and {ends} ends; one of each is drawn"
                self.report("flow-pairs", self.first[key], what)
            elif key not in ids:
                self.report("flow-pairs", self.first[key], f"id {key!r} is on no flag")


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
    with path.open("rb") as file:
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
            taken = None if sample else check.take
            pieces = read_events(file, start + opening.start, length, where, ANY_EVENTS, taken=taken)
            for events in pieces:
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
