"""Twelve regressions of compilers and assemblers, each a pair of builds written from its dated public report."""

from tests.guard.small_builds import SmallKernel

XY = "x:f32[16,64] y:f32[16,64]!"
TILES = """\
    Ub<float, 16, 64> t0, t1, t2;
    TASSIGN(t0, 0x0);
    TASSIGN(t1, 0x1000);
    TASSIGN(t2, 0x2000);
    Gm<float, 16, 64> src(x), dst(y);
"""


def flag(source: str, target: str, event: int = 0, mark: str = "") -> str:
    """A set and its wait."""
    pipes = f"PIPE_{source}, PIPE_{target}, EVENT_ID{event}"
    return f"{mark}    set_flag({pipes});\n{mark}    wait_flag({pipes});\n"


LOADED = TILES + "    TLOAD(t0, src);\n" + flag("MTE2", "V")
STORED = flag("V", "MTE3") + "    TSTORE(dst, t1);\n"

REGRESSIONS = (
    SmallKernel(
        "tci_wrong_pipe",
        "y:i32[1,64]!",
        "    Ub<int32_t, 1, 64> t0, t1;\n    TASSIGN(t0, 0x0);\n    TASSIGN(t1, 0x1000);\n    Gm<int32_t, 1, 64> dst(y);\n"
        "    TCI<Ub<int32_t, 1, 64>, Ub<int32_t, 1, 64>, int32_t, 0>(t0, 5, t1);\n"
        + flag("V", "MTE3", mark="+")
        + flag("S", "MTE3", mark="-")
        + "    TSTORE(dst, t0); //!\n",
        report="PTOAS 1499 and 1532, fixed 2026-09-20: TCI with a scratch tile runs on V, the flag was from S",
        cause="race",
        says="no longer waits for V (TCI",
    ),
    SmallKernel(
        "tci_other_form",
        "y:i32[1,64]!",
        "    Ub<int32_t, 1, 64> t0, t1;\n    TASSIGN(t0, 0x0);\n    TASSIGN(t1, 0x1000);\n    Gm<int32_t, 1, 64> dst(y);\n"
        "+    TCI<Ub<int32_t, 1, 64>, int32_t, 0>(t0, 5);\n"
        "-    TCI<Ub<int32_t, 1, 64>, Ub<int32_t, 1, 64>, int32_t, 0>(t0, 5, t1);\n"
        + flag("S", "MTE3")
        + "    TSTORE(dst, t0); //!\n",
        report="pypto 2558, 2563, 2650 (0.57 to 0.60): another form of TCI with the flags of the old one",
        cause="race",
        says="no longer waits for V (TCI",
    ),
    SmallKernel(
        "back_edge",
        "a:f16[64,256] c:f16[64,64]!",
        """\
    Mat<64, 64> b;
    Tile<TileType::Left, half, 64, 64, BLayout::RowMajor, 64, 64, SLayout::RowMajor, 512> left;
    TASSIGN(b, 0x0);
    TASSIGN(left, 0x0);
    GlobalTensor<half, pto::Shape<1, 1, 1, 64, 64>, pto::Stride<1, 1, 1, 64, 1>, pto::Layout::ND> dst(c);
+    set_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID1);
    for (int64_t k = 0; k < 4; k += 1) {
        GlobalTensor<half, pto::Shape<1, 1, 1, 64, 64>, pto::Stride<1, 1, 1, 256, 1>, pto::Layout::ND> src(a + k * 64);
+        wait_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID1);
        TLOAD(b, src); //!
        set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
        TEXTRACT(left, b, 0, 0);
+        set_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID1);
    }
+    wait_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID1);
""",
        kind="cube",
        report="PTOAS 564 (0.27 to 0.29): waits over the back edge of a loop are gone",
        cause="race",
        says="no longer waits for MTE1 (TEXTRACT",
    ),
    SmallKernel(
        "loop_of_no_turns",
        XY + " n:index",
        TILES
        + """\
    TLOAD(t0, src);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
+    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    for (int64_t i = 0; i < n; i += 1) {
-        if (i == 0) wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        TADDS(t2, t0, 1.0f);
        pipe_barrier(PIPE_V);
    }
    TMULS(t1, t0, 2.0f); //!
"""
        + flag("V", "MTE3", 1)
        + "    TSTORE(dst, t1);\n",
        report="PTOAS 533 (0.26): the wait stands in a loop that may turn no time",
        cause="race",
        says="(with ",
    ),
    SmallKernel(
        "hoisted_wait",
        XY + " n:index",
        TILES
        + """\
    set_flag(PIPE_V, PIPE_MTE2, EVENT_ID3);
    for (int64_t i = 0; i < 4; i += 1) {
-        wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID3); //!
        if (i % 2 == 0) {
+            wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID3);
            TLOAD(t0, src);
            set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
            wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
            TADDS(t1, t0, 1.0f);
            pipe_barrier(PIPE_V);
            set_flag(PIPE_V, PIPE_MTE2, EVENT_ID3);
        }
    }
+    wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID3);
"""
        + STORED,
        report="PTOAS 1149 (2026-08-05): a wait hoisted out of its branch",
        cause="failure",
        says="A runs to its end",
    ),
    SmallKernel(
        "untaken_branch",
        XY.replace("16", "8") + " n:index",
        LOADED.replace("16", "8")
        + """\
    TADDS(t1, t0, 1.0f);
+    pipe_barrier(PIPE_V);
    if (n > 0) {
        TADDS(t2, t0, 1.0f);
        pipe_barrier(PIPE_V);
    }
    TMULS(t1, t1, 2.0f); //!
"""
        + STORED,
        report="tilelang-ascend 1824 (2026-09-22): the barrier stands in the branch alone",
        cause="race-same-pipe",
        says="(with ",
    ),
    SmallKernel(
        "extra_barriers",
        XY,
        LOADED
        + "    TADDS(t1, t0, 1.0f);\n"
        + "-    pipe_barrier(PIPE_ALL); //!\n"
        + "    TADDS(t2, t0, 1.0f);\n-    pipe_barrier(PIPE_ALL);\n"
        + STORED
        + "-    pipe_barrier(PIPE_ALL);\n",
        report="tilelang-ascend 482 (2026-02-13), PTOAS 1569: a barrier for everything before every store",
        cause="slower",
        says="+pipe_barrier ALL",
    ),
    SmallKernel(
        "live_ub_reused",
        XY,
        """\
    Ub<float, 16, 64> t0, t1, t2;
    TASSIGN(t0, 0x0);
    TASSIGN(t1, 0x1000);
+    TASSIGN(t2, 0x2000);
-    TASSIGN(t2, 0x1800);
    Gm<float, 16, 64> src(x), dst(y);
    TLOAD(t0, src);
"""
        + flag("MTE2", "V")
        + "    TADDS(t1, t0, 1.0f);\n"
        + STORED
        + "    TMULS(t2, t0, 2.0f); //!\n",
        report="PTOAS 934, 935 (2026-07-14): two live tiles overlap",
        cause="race",
        says="MTE3 (TSTORE",
    ),
    SmallKernel(
        "scalar_reads_load",
        "x:i32[1,64] y:i32[1,64]!",
        """\
    Ub<int32_t, 1, 64> t0, t1;
    TASSIGN(t0, 0x0);
    TASSIGN(t1, 0x1000);
    Gm<int32_t, 1, 64> src(x), dst(y);
    TLOAD(t0, src);
+    set_flag(PIPE_MTE2, PIPE_S, EVENT_ID0);
+    wait_flag(PIPE_MTE2, PIPE_S, EVENT_ID0);
-    pipe_barrier(PIPE_MTE2);
    int32_t value = t0.GetValue(3); //!
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID1);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID1);
    TADDS(t1, t0, value);
"""
        + STORED,
        report="PTOAS 861 (2026-06-24): a barrier of MTE2 where the scalar unit reads what was loaded",
        cause="race",
        says="no longer waits for MTE2 (TLOAD",
    ),
    SmallKernel(
        "one_event_twice",
        XY,
        TILES
        + """\
    TLOAD(t0, src);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TADDS(t1, t0, 1.0f);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(dst, t1);
    set_flag(PIPE_MTE3, PIPE_V, EVENT_ID2);
+    wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID2);
-    wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID3); //!
    TMULS(t1, t0, 2.0f);
    pipe_barrier(PIPE_ALL);
    TSTORE(dst, t1);
""",
        report="PTOAS 823 (0.45): set and wait have different event ids",
        cause="failure",
        says="A runs to its end",
    ),
    SmallKernel(
        "lost_barrier",
        XY.replace("16", "8"),
        LOADED.replace("16", "8")
        + "    TADDS(t2, t0, 1.0f);\n+    pipe_barrier(PIPE_V);\n    TMULS(t1, t2, 2.0f); //!\n"
        + STORED,
        report="PTOAS 1111 (0.48 to 0.49): pairs of synchronisation are gone, no op has changed",
        cause="race-same-pipe",
        says="−pipe_barrier V",
    ),
    SmallKernel(
        "wrong_conversion",
        "x:f32[16,64] y:bf16[16,64]!",
        """\
    Ub<float, 16, 64> t0;
    Ub<bfloat16_t, 16, 64> t1;
    TASSIGN(t0, 0x0);
    TASSIGN(t1, 0x1000);
    Gm<float, 16, 64> src(x);
    Gm<bfloat16_t, 16, 64> dst(y);
    TLOAD(t0, src);
"""
        + flag("MTE2", "V")
        + "+    TCVT(t1, t0, RoundMode::CAST_RINT);\n-    TCVT(t1, t0, RoundMode::CAST_TRUNC); //!\n"
        + STORED,
        report="a conversion that rounds otherwise: values differ by less than a tolerance allows",
        cause="values",
        says="TCVT at line",
    ),
)
