"""Small vector kernels that are wrong on purpose, each with its fixed twin.

A line that begins with + stands in the fixed kernel only, one with - in the wrong one only. `//!` marks the line
at which the finding must stand, followed by its category. The kernels of one chip are one source: the scalar in
slot 3 chooses.
"""

from dataclasses import dataclass

PRELUDE = """\
    LineTile t0, t1, t2, t3;
    TASSIGN(t0, 0x0);
    TASSIGN(t1, 0x1000);
    TASSIGN(t2, 0x2000);
    TASSIGN(t3, 0x3000);
    Line in0(data_in(args, 0)), in1(data_in(args, 1)), out(data_in(args, 2));
"""
LOADED = """\
    TLOAD(t0, in0);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
"""
STORED = """\
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(out, t1);
"""
BOTH = ("a2a3", "a5")


@dataclass(frozen=True)
class WrongKernel:
    name: str
    body: str
    targets: tuple[str, ...] = BOTH
    plain: bool = True  # the tiles and tensors of PRELUDE
    lanes: int = 1  # vector cores of a mix
    blocks: int = 1

    def lines(self, fixed: bool) -> list[str]:
        """The kernel's own lines, of one of the two twins."""
        drop = "-" if fixed else "+"
        text = (PRELUDE if self.plain else "") + self.body
        return [line[1:] if line[:1] in "+-" else line for line in text.splitlines() if line[:1] != drop]


def flag(source: str, target: str, event: int = 0, mark: str = "") -> str:
    """A set and its wait, each line marked as asked."""
    pipes = f"PIPE_{source}, PIPE_{target}, EVENT_ID{event}"
    return f"{mark}    set_flag({pipes});\n{mark}    wait_flag({pipes});\n"


VECTOR = (
    WrongKernel(
        "a vector op on a tile that is still being loaded",
        "    TLOAD(t0, in0);\n"
        + flag("MTE2", "V", mark="+")
        + "    TADDS(t1, t0, 1.0f); //! race\n"
        + STORED,
    ),
    WrongKernel(
        "a store of a tile that is still being computed",
        LOADED
        + "    TADDS(t1, t0, 1.0f);\n"
        + flag("V", "MTE3", mark="+")
        + "    TSTORE(out, t1); //! race\n",
    ),
    WrongKernel(
        "a tile overwritten while it is being stored",
        LOADED
        + "    TADDS(t1, t0, 1.0f);\n"
        + STORED
        + flag("MTE3", "V", 1, "+")
        + "    TMULS(t1, t0, 2.0f); //! race //? race-same-pipe\n"
        + STORED.replace("ID0", "ID2").replace("(out,", "(in1,"),
    ),
    WrongKernel(
        "a tile loaded anew while it is being read",
        LOADED
        + "    TADDS(t1, t0, 1.0f);\n"
        + STORED
        + flag("V", "MTE2", 1, "+")
        + "    TLOAD(t0, in1); //! race\n"
        + flag("MTE2", "V", 2)
        + "+    pipe_barrier(PIPE_ALL);\n-    pipe_barrier(PIPE_ALL);\n"
        + "    TADDS(t1, t0, 1.0f);\n"
        + flag("V", "MTE3", 3)
        + "    pipe_barrier(PIPE_MTE3);\n    TSTORE(out, t1);\n",
    ),
    WrongKernel(
        "a fill that a load on its way may overwrite",
        "    TLOAD(t0, in0);\n"
        + flag("MTE2", "V", mark="+")
        + "    TEXPANDS(t0, 1.0f); //! race\n    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);\n"
        + "    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);\n    TSTORE(out, t0); //? race\n",
    ),
    WrongKernel(
        "a vector op that needs the result of the one before it",
        LOADED
        + "    TADDS(t2, t0, 1.0f);\n+    pipe_barrier(PIPE_V);\n    TMULS(t1, t2, 2.0f); //! race-same-pipe\n"
        + STORED,
        targets=("a2a3",),
    ),
    WrongKernel(
        "two vector ops that write the same tile",
        LOADED
        + "    TADDS(t1, t0, 1.0f);\n+    pipe_barrier(PIPE_V);\n    TMULS(t1, t0, 2.0f); //! race-same-pipe\n"
        + STORED,
        targets=("a2a3",),
    ),
    WrongKernel(
        "a vector op that overwrites what the one before it reads",
        LOADED
        + "    TADDS(t1, t0, 1.0f);\n+    pipe_barrier(PIPE_V);\n    TEXPANDS(t0, 3.0f); //! race-same-pipe\n"
        + STORED
        + flag("V", "MTE3", 1)
        + "    TSTORE(in1, t0);\n",
        targets=("a2a3",),
    ),
    WrongKernel(
        "a barrier of another pipe",
        LOADED
        + "    TADDS(t2, t0, 1.0f);\n-    pipe_barrier(PIPE_MTE2);\n+    pipe_barrier(PIPE_V);\n"
        + "    TMULS(t1, t2, 2.0f); //! race-same-pipe\n"
        + STORED,
        targets=("a2a3",),
    ),
    WrongKernel(
        "two loads into the same tile",
        "    TLOAD(t0, in0);\n+    pipe_barrier(PIPE_MTE2);\n    TLOAD(t0, in1); //! race-same-pipe\n"
        + flag("MTE2", "V")
        + "    TADDS(t1, t0, 1.0f);\n"
        + STORED,
    ),
    WrongKernel(
        "two stores to the same place",
        LOADED
        + "    TADDS(t1, t0, 1.0f);\n    TMULS(t2, t0, 2.0f);\n"
        + STORED
        + "+    pipe_barrier(PIPE_MTE3);\n    TSTORE(out, t2); //! race-same-pipe\n",
    ),
    WrongKernel(
        "a load of what is still being stored",
        LOADED
        + "    TADDS(t1, t0, 1.0f);\n"
        + STORED
        + flag("MTE3", "MTE2", 1, "+")
        + "    TLOAD(t2, out); //! race\n"
        + flag("MTE2", "V", 2)
        + "    TADDS(t3, t2, 1.0f);\n"
        + flag("V", "MTE3", 3)
        + "    TSTORE(in1, t3);\n",
    ),
    WrongKernel(
        "a scalar read of what the vector unit computes",
        LOADED
        + "    TADDS(t1, t0, 1.0f);\n"
        + flag("V", "S", 1, "+")
        + "    float seen = t1.GetValue(3); //! race\n    TMULS(t2, t0, seen);\n"
        + flag("V", "MTE3", 2)
        + "    TSTORE(out, t2);\n",
    ),
    WrongKernel(
        "a scalar read of what is being loaded",
        "    TLOAD(t0, in0);\n"
        + flag("MTE2", "S", 1, "+")
        + "    float seen = t0.GetValue(0); //! race\n    TEXPANDS(t1, seen);\n"
        + STORED,
    ),
    WrongKernel(
        "a vector op on what the scalar unit writes",
        LOADED
        + flag("V", "S", 4)
        + "    t0.SetValue(5, 2.0f);\n"
        + flag("S", "V", 1, "+")
        + "    TADDS(t1, t0, 1.0f); //! race\n"
        + STORED,
    ),
    WrongKernel(
        "a store of what the scalar unit writes",
        LOADED
        + "    TADDS(t1, t0, 1.0f);\n"
        + flag("V", "S", 1)
        + "    t1.SetValue(5, 2.0f);\n"
        + flag("S", "MTE3", 2, "+")
        + flag("V", "MTE3", 3)
        + "    TSTORE(out, t1); //! race\n",
    ),
    WrongKernel(
        "a loop whose next load overwrites what is still read",
        "    for (int i = 0; i < 4; ++i) {\n"
        + "+        if (i > 0) wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID1);\n"
        + "        TLOAD(t0, in0); //! race\n        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);\n"
        + "        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0); //? double-set\n"
        + "+        if (i > 0) wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID2);\n"
        + "-        if (i > 0) wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID2);\n"
        + "        TADDS(t1, t0, 1.0f);\n"
        + "+        if (i < 3) set_flag(PIPE_V, PIPE_MTE2, EVENT_ID1);\n"
        + "        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);\n        wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);\n"
        + "        pipe_barrier(PIPE_MTE3);\n        TSTORE(out, t1);\n"
        + "        if (i < 3) set_flag(PIPE_MTE3, PIPE_V, EVENT_ID2);\n    }\n",
    ),
    WrongKernel(
        "a flag that covers the first load only",
        "    TLOAD(t0, in0);\n-    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);\n    TLOAD(t2, in1);\n"
        + "+    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);\n    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);\n"
        + "    TADD(t1, t0, t2); //! race\n"
        + STORED,
    ),
    WrongKernel(
        "a wait that stands behind its use",
        "    TLOAD(t0, in0);\n    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);\n"
        + "+    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);\n    TADDS(t1, t0, 1.0f); //! race\n"
        + "-    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);\n"
        + STORED,
    ),
    WrongKernel(
        "a flag inside a loop that runs zero times",
        "    TLOAD(t0, in0);\n    const int turns = static_cast<int>(args[4]);\n"
        + "+    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID1);\n+    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID1);\n"
        + "    for (int i = 0; i < turns; ++i) {\n        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);\n"
        + "        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);\n    }\n    TADDS(t1, t0, 1.0f); //! race\n"
        + STORED,
    ),
    WrongKernel(
        "tiles that overlap by half a line",
        "    TASSIGN(t2, 0x80);\n"
        + LOADED
        + "    TADDS(t1, t0, 1.0f);\n"
        + STORED
        + flag("V", "MTE2", 1, "+")
        + "    TLOAD(t2, in1); //! race\n"
        + flag("MTE2", "V", 2)
        + "    pipe_barrier(PIPE_ALL);\n    TMULS(t3, t2, 2.0f);\n"
        + flag("V", "MTE3", 3)
        + "    TSTORE(out, t3);\n",
    ),
    WrongKernel(
        "a set that nobody waits for",
        LOADED
        + "    TADDS(t1, t0, 1.0f);\n-    set_flag(PIPE_V, PIPE_MTE2, EVENT_ID5); //! set-without-wait\n"
        + STORED,
    ),
    WrongKernel(
        "an event set twice before its wait",
        "    TLOAD(t0, in0);\n    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);\n    TLOAD(t2, in1);\n"
        + "-    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0); //! double-set\n+    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID1);\n"
        + "    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);\n-    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);\n"
        + "+    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID1);\n    TADD(t1, t0, t2);\n"
        + STORED,
    ),
)

# The same two missing edges around ops whose instructions touch memory in their own ways.
_OPS = {
    **{op: f"{op}(t1, t0, t2);" for op in ("TADD", "TSUB", "TMUL", "TMAX", "TMIN", "TDIV")},
    **{op: f"{op}(t1, t0, 3.0f);" for op in ("TADDS", "TSUBS", "TMULS", "TMAXS", "TMINS", "TDIVS", "TLRELU")},
    **{
        op: f"{op}(t1, t0);"
        for op in ("TEXP", "TLOG", "TSQRT", "TRSQRT", "TRECIP", "TABS", "TNEG", "TRELU", "TMOV")
    },
    "TCVT": "TCVT(whole, t0, RoundMode::CAST_RINT); //",
}
_SECOND = "    TLOAD(t2, in1);\n"
_EXTRA = """\
    Tile<TileType::Vec, int32_t, 1, 64, BLayout::RowMajor, 1, 64> whole;
    TASSIGN(whole, 0x1000);
"""


def _around(op: str, call: str) -> tuple[WrongKernel, WrongKernel]:
    loads = _EXTRA + _SECOND + flag("MTE2", "V", 1) + "    pipe_barrier(PIPE_ALL);\n"
    late = _EXTRA + _SECOND + flag("MTE2", "V", 1) + "    TLOAD(t0, in0);\n"
    done = "    TSTORE(out, t1);\n"
    return (
        WrongKernel(
            f"{op} on a tile that is still being loaded",
            late + flag("MTE2", "V", 2, "+") + f"    {call} //! race\n" + flag("V", "MTE3", 3) + done,
        ),
        WrongKernel(
            f"a store of what {op} still computes",
            loads
            + "    TLOAD(t0, in0);\n"
            + flag("MTE2", "V", 2)
            + f"    {call}\n"
            + flag("V", "MTE3", 3, "+")
            + "    TSTORE(out, t1); //! race\n",
        ),
    )


_ROWS = """\
    Tile<TileType::Vec, float, 16, 64> wide, sums, kept;
    Tile<TileType::Vec, float, 16, 1, BLayout::ColMajor> thin;
    TASSIGN(wide, 0x4000);
    TASSIGN(sums, 0x6000);
    TASSIGN(thin, 0x7000);
    TEXPANDS(t0, 0.0f);
"""
VECTOR = (
    *VECTOR,
    *(kernel for op, call in _OPS.items() for kernel in _around(op, call)),
    WrongKernel(
        "an event id that the hardware cuts",
        LOADED.replace("EVENT_ID0", "static_cast<event_t>(NUMBER)")
        .replace(
            "    set_flag(PIPE_MTE2, PIPE_V, static_cast<event_t>(NUMBER));",
            "-    set_flag(PIPE_MTE2, PIPE_V, static_cast<event_t>(9)); //! event-id\n"
            "+    set_flag(PIPE_MTE2, PIPE_V, static_cast<event_t>(1));",
        )
        .replace(
            "    wait_flag(PIPE_MTE2, PIPE_V, static_cast<event_t>(NUMBER));",
            "-    wait_flag(PIPE_MTE2, PIPE_V, static_cast<event_t>(9)); //! event-id\n"
            "+    wait_flag(PIPE_MTE2, PIPE_V, static_cast<event_t>(1));",
        )
        + "    TADDS(t1, t0, 1.0f);\n"
        + STORED,
    ),
    WrongKernel(
        "a load past the end of its tensor",
        "-    Line far(data_in(args, 0) + 32);\n+    Line far(data_in(args, 0));\n"
        + "    TLOAD(t0, far); //! gm-out-of-bounds\n"
        + flag("MTE2", "V")
        + "    TADDS(t1, t0, 1.0f);\n"
        + STORED,
    ),
    WrongKernel(
        "a store past the end of its tensor",
        LOADED
        + "    TADDS(t1, t0, 1.0f);\n-    Line far(data_in(args, 2) + 16);\n+    Line far(data_in(args, 2));\n"
        + flag("V", "MTE3")
        + "    TSTORE(far, t1); //! gm-out-of-bounds\n",
    ),
    WrongKernel(
        "a tile of which half was never written",
        "-    TADDS(t1, t3, 1.0f); //! unwritten-read\n"
        + "+    TLOAD(t3, in0);\n+    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID1);\n"
        + "+    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID1);\n+    TADDS(t1, t3, 1.0f);\n"
        + STORED,
    ),
    WrongKernel(
        "a load that misses the vector unit's alignment",
        "-    TASSIGN(t0, 0x10);\n    TLOAD(t0, in0); //! misaligned\n"
        + flag("MTE2", "V")
        + "    TADDS(t1, t0, 1.0f); //? misaligned\n"
        + STORED,
    ),
    WrongKernel(
        "a store from an address off its block",
        LOADED
        + "-    TASSIGN(t1, 0x1010);\n    TADDS(t1, t0, 1.0f); //? misaligned\n"
        + STORED.replace("TSTORE(out, t1);", "TSTORE(out, t1); //! misaligned"),
    ),
    WrongKernel(
        "a barrier of the scalar unit",
        LOADED + "    TADDS(t1, t0, 1.0f);\n-    pipe_barrier(PIPE_S); //! barrier-scalar\n" + STORED,
    ),
    WrongKernel(
        "a tile that does not fit into its memory",
        "-    TASSIGN(t0, 256 * 1024 - 64);\n    TLOAD(t0, in0); //! on-chip-out-of-bounds\n"
        + flag("MTE2", "V")
        + "    TADDS(t1, t0, 1.0f);\n"
        + STORED,
    ),
    WrongKernel(
        "a load far behind its argument",
        "-    Line far(data_in(args, 0) + (1 << 24));\n+    Line far(data_in(args, 0));\n"
        + "    TLOAD(t0, far); //! gm-out-of-bounds\n"
        + flag("MTE2", "V")
        + "    TADDS(t1, t0, 1.0f);\n"
        + STORED,
    ),
    WrongKernel(
        "a wait that nothing ends",
        LOADED
        + "-    wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID6); //! wait-without-set\n    TADDS(t1, t0, 1.0f);\n"
        + STORED,
    ),
    WrongKernel(
        "two pipes that wait for each other",
        "-    wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID3); //! deadlock\n    TLOAD(t0, in0);\n"
        + "    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);\n"
        + "    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0); //? deadlock\n"
        + "    TADDS(t1, t0, 1.0f);\n-    set_flag(PIPE_V, PIPE_MTE2, EVENT_ID3);\n"
        + STORED,
    ),
    WrongKernel(
        "a chain of waits whose first cause is far away",
        "-    wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID2); //! wait-without-set\n    TLOAD(t0, in0);\n"
        + flag("MTE2", "V")
        + "    TADDS(t1, t0, 1.0f);\n"
        + STORED,
    ),
    WrongKernel(
        "the root of a negative number",
        LOADED
        + "    TADDS(t2, t0, 1.0f);\n    pipe_barrier(PIPE_V);\n-    TSUBS(t3, t2, 5.0f);\n+    TSUBS(t3, t2, 1.0f);\n"
        + "    pipe_barrier(PIPE_V);\n    TSQRT(t1, t3); //! nan-born\n"
        + STORED,
        targets=("a2a3",),
    ),
    WrongKernel(
        "a logarithm of a negative number",
        LOADED
        + "-    TSUBS(t3, t0, 5.0f);\n+    TADDS(t3, t0, 5.0f);\n    TLOG(t1, t3); //! nan-born\n"
        + STORED,
        targets=("a5",),
    ),
    WrongKernel(
        "a quotient by zero",
        LOADED
        + "-    TSUBS(t3, t0, 1.0f);\n+    TADDS(t3, t0, 1.0f);\n    pipe_barrier(PIPE_ALL);\n"
        + "    TDIV(t1, t0, t3); //! inf-born\n"
        + STORED,
    ),
    WrongKernel(
        "a number too large for its type",
        LOADED
        + "-    TMULS(t3, t0, 3.0e38f);\n+    TMULS(t3, t0, 3.0f);\n    pipe_barrier(PIPE_ALL);\n"
        + "    TADD(t1, t3, t3); //! inf-born\n"
        + STORED,
    ),
    WrongKernel(
        "a tile that another one overwrites while it is still needed",
        "-    TASSIGN(t3, 0x1080);\n"
        + LOADED
        + "    TADDS(t1, t0, 1.0f);\n    pipe_barrier(PIPE_ALL);\n    TMULS(t3, t0, 2.0f);\n    pipe_barrier(PIPE_ALL);\n"
        + "    TADD(t2, t1, t3); //! tile-overlap\n"
        + flag("V", "MTE3")
        + "    TSTORE(out, t2);\n",
    ),
    WrongKernel(
        "columns that an earlier pass left in a tile",
        LOADED
        + "    for (int pass = 0; pass < 2; ++pass) {\n"
        + "        Tile<TileType::Vec, float, 1, 64, BLayout::RowMajor, DYNAMIC, DYNAMIC> from(1, pass ? 32 : 64);\n"
        + "        Tile<TileType::Vec, float, 1, 64, BLayout::RowMajor, DYNAMIC, DYNAMIC> part(1, pass ? 32 : 64);\n"
        + "        TASSIGN(from, 0x0);\n        TASSIGN(part, 0x2000);\n"
        + "+        TEXPANDS(t2, 0.0f);\n+        pipe_barrier(PIPE_ALL);\n"
        + "        TADDS(part, from, 1.0f);\n        pipe_barrier(PIPE_ALL);\n"
        + "        TMULS(t1, t2, 2.0f); //! stale-read\n        pipe_barrier(PIPE_ALL);\n    }\n"
        + STORED,
    ),
    WrongKernel(
        "a scalar read that nothing but a barrier of all pipes orders",
        LOADED
        + "    TADDS(t1, t0, 1.0f);\n+    pipe_barrier(PIPE_ALL);\n"
        + "    const float seen = t1.GetValue(0); //! race\n+    pipe_barrier(PIPE_ALL);\n"
        + "    TADDS(t1, t0, seen); //? race //? race-same-pipe\n"
        + STORED,
    ),
    WrongKernel(
        "a tile in the scratch of the tile library",
        _ROWS
        + "-    TASSIGN(kept, 184 * 1024);\n+    TASSIGN(kept, 0x8000);\n"
        + "    TEXPANDS(kept, 1.0f);\n    TEXPANDS(wide, 2.0f);\n"
        + "    TEXPANDS(thin, 3.0f);\n    pipe_barrier(PIPE_ALL);\n    TROWEXPANDADD(sums, wide, thin);\n"
        + "    pipe_barrier(PIPE_ALL);\n    TADD(wide, sums, kept); //! library-scratch\n    pipe_barrier(PIPE_ALL);\n"
        + "    TMULS(t1, t0, 1.0f); //? unwritten-read\n",
        targets=("a2a3",),
    ),
    WrongKernel(
        "a tile whose valid size is larger than the tile",
        "-    Tile<TileType::Vec, float, 1, 64, BLayout::RowMajor, DYNAMIC, DYNAMIC> tall(2, 64);\n"
        + "+    Tile<TileType::Vec, float, 1, 64, BLayout::RowMajor, DYNAMIC, DYNAMIC> tall(1, 64);\n"
        + "    TASSIGN(tall, 0x1000);\n    TEXPANDS(tall, 1.0f); //! contract\n"
        + flag("V", "MTE3")
        + "    TSTORE(out, t1);\n",
    ),
    WrongKernel(
        "half of a tile that nobody wrote",
        "-    Tile<TileType::Vec, float, 1, 64, BLayout::RowMajor, DYNAMIC, DYNAMIC> half_tile(1, 32);\n"
        + "+    Tile<TileType::Vec, float, 1, 64, BLayout::RowMajor, DYNAMIC, DYNAMIC> half_tile(1, 64);\n"
        + "    TASSIGN(half_tile, 0x0);\n    TEXPANDS(half_tile, 1.0f);\n    pipe_barrier(PIPE_ALL);\n"
        + "    TADDS(t1, t0, 1.0f); //! unwritten-read\n"
        + STORED,
    ),
    WrongKernel(
        "two events that are one in three bits",
        "    TLOAD(t0, in0);\n    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);\n    TLOAD(t2, in1);\n"
        + "-    set_flag(PIPE_MTE2, PIPE_V, static_cast<event_t>(8)); //! double-set //! event-id\n"
        + "+    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID1);\n    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);\n"
        + "-    wait_flag(PIPE_MTE2, PIPE_V, static_cast<event_t>(8)); //! event-id\n"
        + "+    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID1);\n    TADD(t1, t0, t2);\n"
        + STORED,
    ),
    WrongKernel(
        "an index tile that the scalar unit reads too early",
        "    Tile<TileType::Vec, int32_t, 1, 64, BLayout::RowMajor, 1, 64> index;\n    TASSIGN(index, 0x0);\n"
        + "    TLOAD(t0, in0);\n+    set_flag(PIPE_MTE2, PIPE_S, EVENT_ID1);\n"
        + "+    wait_flag(PIPE_MTE2, PIPE_S, EVENT_ID1);\n"
        + "    const int row = index.GetValue(2) & 0; //! race\n    Line chosen(data_in(args, 1) + row);\n"
        + "    TLOAD(t2, chosen);\n"
        + flag("MTE2", "V", 2)
        + "    TADDS(t1, t2, 1.0f);\n"
        + STORED,
    ),
    WrongKernel(
        "a sequence that is stored while it is being made",
        "    Tile<TileType::Vec, int32_t, 1, 64, BLayout::RowMajor, 1, 64> sequence;\n    TASSIGN(sequence, 0x1000);\n"
        + "    TCI<decltype(sequence), int32_t, 0>(sequence, 0);\n"
        + flag("V", "MTE3", 1, "+")
        + flag("S", "MTE3", 2, "+")
        + "    TSTORE(out, t1); //! race\n",
    ),
    WrongKernel(
        "an index that is loaded once and overwritten inside the loop",
        "-    TASSIGN(t3, 0x2080);\n    TLOAD(t2, in1);\n"
        + LOADED
        + "    for (int i = 0; i < 3; ++i) {\n        TADD(t1, t0, t2); //! tile-overlap\n        pipe_barrier(PIPE_ALL);\n"
        + "        TMULS(t3, t1, 2.0f);\n        pipe_barrier(PIPE_ALL);\n    }\n"
        + flag("V", "MTE3", 4)
        + "    TSTORE(out, t3);\n",
    ),
    WrongKernel(
        "a load whose tile nobody reads",
        LOADED + "-    TLOAD(t2, in1); //! unread-write\n    TADDS(t1, t0, 1.0f);\n" + STORED,
    ),
    WrongKernel(
        "a result that nobody reads",
        LOADED + "    TADDS(t1, t0, 1.0f);\n-    TADDS(t2, t0, 2.0f); //! unread-write\n" + STORED,
        targets=("a2a3",),
    ),
    WrongKernel(
        "a flag to the scalar unit that is set twice before its wait",
        "    TLOAD(t0, in0);\n    set_flag(PIPE_MTE2, PIPE_S, EVENT_ID0);\n+    wait_flag(PIPE_MTE2, PIPE_S, EVENT_ID0);\n"
        + "    TLOAD(t2, in1);\n    set_flag(PIPE_MTE2, PIPE_S, EVENT_ID0); //! double-set\n"
        + "    wait_flag(PIPE_MTE2, PIPE_S, EVENT_ID0);\n-    wait_flag(PIPE_MTE2, PIPE_S, EVENT_ID0);\n"
        + "    TADD(t1, t0, t2);\n"
        + STORED,
    ),
)
