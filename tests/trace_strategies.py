"""Traces of any shape: overlapping, empty, backward, unpaired, with names that are markup."""

from hypothesis import strategies as st

from insight_trace.model import Pipe, Trace
from tests.synthetic_trace import TraceBuilder, flag_detail

PIPES = [Pipe.SCALAR, Pipe.MTE1, Pipe.CUBE, Pipe.FIXP, Pipe.MTE2, Pipe.VECTOR, Pipe.MTE3]
ODD_PIPES = [Pipe.CACHEMISS, Pipe.FLOWCTRL, Pipe.ALL, Pipe.USERMARK, Pipe.RVECEX]
NAMES = ["VADD", "MOV", "MMAD", "<script>alert(1)</script>", 'a"b\\c', "BAR", "\u2028é"]
FLAG_PIPES = {"MTE2": Pipe.MTE2, "VEC": Pipe.VECTOR, "MTE3": Pipe.MTE3, "SCALAR": Pipe.SCALAR}


@st.composite
def traces(draw: st.DrawFn, *, most: int = 40, backward: bool = True) -> Trace:
    builder = TraceBuilder()
    sets: list[tuple[int, str, str, int, str]] = []
    for _ in range(draw(st.integers(0, most))):
        core = draw(st.sampled_from(["core0.veccore0", "core0.cubecore0"]))
        start = draw(st.integers(-5, 60))
        length = draw(st.integers(-3 if backward else 0, 25))
        stack = draw(st.sampled_from(["", "k.cpp:3", "k.cpp:4\nmain.cpp:9"]))
        what = draw(st.sampled_from(["work", "work", "work", "set", "wait"]))
        if what == "work":
            builder.add(
                draw(st.sampled_from(PIPES + ODD_PIPES)),
                draw(st.sampled_from(NAMES)),
                start,
                start + length,
                core=core,
                stack=stack,
                detail=draw(st.sampled_from(["", "dtype:F32,XD:X0=0x10,", 'q"\\\n'])),
                moved=draw(st.sampled_from([-1, 0, 512])),
                issue=start - draw(st.integers(0, 4)),
                utilisation=draw(st.sampled_from([-1.0, 50.0, 100.0])),
                read_conflict=draw(st.sampled_from([-1, 0, 3])),
                pc=draw(st.integers(0, 2**40)),
            )
        elif what == "set":
            source, target = (
                draw(st.sampled_from(sorted(FLAG_PIPES))),
                draw(st.sampled_from(sorted(FLAG_PIPES))),
            )
            event = draw(st.integers(0, 1))
            row = builder.add(
                FLAG_PIPES[source], "SET_FLAG", start, start + 1, core=core, stack=stack,
                detail=flag_detail(source, target, event),
            )  # fmt: skip
            sets.append((row, source, target, event, core))
        else:
            partner, source, target, event, core = (
                sets.pop(0) if sets and draw(st.booleans()) else (-1, "VEC", "MTE2", 0, core)
            )
            builder.add(
                FLAG_PIPES[target], "WAIT_FLAG", start, start + max(0, length), core=core, partner=partner,
                stack=stack, detail=flag_detail(source, target, event),
            )  # fmt: skip
    return builder.build()
