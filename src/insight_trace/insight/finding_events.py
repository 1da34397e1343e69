"""What the checker found, as marks in the timeline: a slice on the lane of user marks over each instruction it names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from insight_trace.insight.encoding import floats, json_text, micros
from insight_trace.insight.prepared import Prepared

MOST_EVENTS = 2000  # a timeline with more marks than this shows nothing any more


def finding_events(prepared: Prepared, findings: Sequence[Mapping[str, Any]]) -> Iterator[bytes]:
    """`findings` as a recording keeps them; places that name no row of the recording are left out."""
    columns = prepared.instructions
    written = 0
    for finding in findings:
        places = finding.get("places", ())
        lines = "\n".join(f"{place['file']}:{place['line']}" for place in places if place.get("file"))
        args = {
            "code": lines,
            "count": finding.get("count", 1),
            "severity": str(finding["severity"]),
            "to mend it": finding.get("mend", ""),
            "what": finding["message"],
        }
        for place in places:
            row = int(place.get("row", -1))
            if not 0 <= row < len(columns) or written == MOST_EVENTS:
                continue
            written += 1
            start, lasting = int(columns.start[row]), max(1, int(columns.end[row] - columns.start[row]))
            ts, dur = floats(micros(np.array([start, lasting]), prepared.mhz))
            yield (
                b'{"args":%s,"cname":"terrible","dur":%s,"name":"%s","ph":"X","pid":"%s","tid":"USERMARK","ts":%s},'
                % (
                    msgspec.json.encode(args),
                    dur,
                    json_text(str(finding["category"])),
                    json_text(columns.cores[columns.core[row]]),
                    ts,
                )
            )
