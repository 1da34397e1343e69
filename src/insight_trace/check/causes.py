"""One mistake, one finding: what follows from a missing wait is folded into it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from insight_trace.finding import Finding, Place, Severity

_LEFT_OVER, _RACE, _DOUBLE_SET = "set-without-wait", "race", "double-set"
_ORDER = {
    severity: number for number, severity in enumerate((Severity.ERROR, Severity.WARNING, Severity.NOTE))
}


def lead_with_causes(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """A flag that is set and never waited for comes first, with the accesses that it would have ordered.

    Without it nothing that comes after is ordered through its pipes, so the races of its core, and flags that are set
    again meanwhile, are counted as what follows from it. Of races that one flag would order, the first speaks for all.
    """
    rest = list(findings)
    found: list[Finding] = []
    for flags in _left_over(findings):
        races = [one for one in rest if one.category == _RACE and one.severity is Severity.ERROR]
        races = [one for one in races if one.places[-1].core == flags[0].places[-1].core]
        if not races:
            rest = [one for one in rest if one not in flags[1:]]
            continue
        races.sort(key=lambda race: not _ordered_by(flags[0].places[-1], race))
        follows = [*races, *(one for one in rest if one.category == _DOUBLE_SET)]
        rest = [one for one in rest if one not in follows and one not in flags]
        found.append(_missing_wait(flags, follows))
    return tuple(sorted((*found, *_folded(rest)), key=lambda one: _ORDER[one.severity]))


def _left_over(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Flags of one core that are set at one line and never waited for: one of a loop has several events."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        if finding.category == _LEFT_OVER and finding.places and finding.places[-1].flag:
            place = finding.places[-1]
            groups.setdefault((place.core, place.line, place.flag[:2] if place.flag else ""), []).append(
                finding
            )
    return list(groups.values())


def _ordered_by(place: Place, race: Finding) -> bool:
    """Whether the flag is between the pipes of the two accesses."""
    return place.flag is not None and set(race.pipes) == set(place.flag[:2])


def _missing_wait(flags: Sequence[Finding], follows: Sequence[Finding]) -> Finding:
    place, lead = flags[0].places[-1], follows[0]
    source, target, event = place.flag or ("", "", "")
    events = sorted({one.places[-1].flag[2] for one in flags if one.places[-1].flag}) or [event]
    names = ", ".join(f"PIPE_{source}, PIPE_{target}, EVENT_ID{each}" for each in events[:1])
    also = f" (and EVENT_ID{', EVENT_ID'.join(events[1:])})" if len(events) > 1 else ""
    waits = [at.line for one in follows for at in one.places if at.pipe == target and one.category == _RACE]
    before = f" before line {min(waits)}" if waits else ""
    return replace(
        lead,
        message=f"nothing waits for the flag {names}{also} that line {place.line} sets, so nothing holds {target} back: "
        f"{lead.message}{_more(follows)}",
        fix=f"wait_flag({names}){before}",
        places=(*lead.places, place),
    )


def _more(follows: Sequence[Finding]) -> str:
    """How many others there are, and their lines."""
    if len(follows) < 2:
        return ""
    lines = sorted({line for one in follows[1:] for line in one.lines} - set(follows[0].lines))
    where = f" (lines {', '.join(map(str, lines))})" if lines else ""
    what = "conflict that follows" if len(follows) == 2 else "conflicts that follow"
    return f"; {len(follows) - 1} more {what} from it{where}"


def _folded(findings: Sequence[Finding]) -> list[Finding]:
    """Races that the same pair of set and wait would order, as the first of them."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for number, finding in enumerate(findings):
        key: tuple[object, ...] = (number,)
        if finding.category == _RACE and len(finding.places) == 2:
            first, second = finding.places
            key = (finding.severity, first.pipe, second.pipe, second.core, second.line)
        groups.setdefault(key, []).append(finding)
    return [
        replace(group[0], message=f"{group[0].message}{_more(group)}") if len(group) > 1 else group[0]
        for group in groups.values()
    ]
