"""Small kernels on several cores that are wrong on purpose, each with its fixed twin (see wrong_vector_kernels).

A mix is one source for the cube core and its vector core; `CUBE` and `VECTOR` say which lines are whose. Kernels of
blocks run on the vector cores of two blocks.
"""

from tests.check.wrong_cube_kernels import HEAD as CUBE_HEAD
from tests.check.wrong_vector_kernels import WrongKernel, flag

HEAD = (
    CUBE_HEAD
    + """\
using Square = Tile<TileType::Vec, float, kSide, kSide>;
using HalfSquare = Tile<TileType::Vec, half, kSide, kSide>;
#if defined(PTO_NPU_ARCH_A5)
#define SIGNAL(pipe, id) set_intra_block(pipe, id)
#define AWAIT(pipe, id) wait_intra_block(pipe, id)
using ToVector = TPipe<0, Direction::DIR_C2V_GM, kSide * kSide * 4, 2>;
using ToCube = TPipe<2, Direction::DIR_V2C_GM, kSide * kSide * 4, 2>;
#else
#define SIGNAL(pipe, id) ffts_cross_core_sync(pipe, 1 | 2 << 4 | (id) << 8)
#define AWAIT(pipe, id) wait_flag_dev(id)
using ToVector = TPipe<0, Direction::DIR_C2V, kSide * kSide * 4, 2>;
using ToCube = TPipe<2, Direction::DIR_V2C, kSide * kSide * 4, 2>;
#endif
#if defined(__DAV_CUBE__)
// The product of slots 0 and 1 is in the accumulator when the fixpipe goes on.
inline void make_product(__gm__ int64_t *args, TileAcc<float, kSide, kSide, kSide, kSide> &sum) {
    Halves a_in(halves_in(args, 0)), b_in(halves_in(args, 1));
    MatTile a_mat, b_mat;
    TileLeft<half, kSide, kSide, kSide, kSide> a;
    TileRight<half, kSide, kSide, kSide, kSide> b;
    TASSIGN(a_mat, 0x0);
    TASSIGN(b_mat, 0x4000);
    TASSIGN(a, 0x0);
    TASSIGN(b, 0x0);
    TASSIGN(sum, 0x0);
    TLOAD(a_mat, a_in);
    TLOAD(b_mat, b_in);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID7);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID7);
    TMOV(a, a_mat);
    TMOV(b, b_mat);
    set_flag(PIPE_MTE1, PIPE_M, EVENT_ID7);
    wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID7);
    TMATMUL(sum, a, b);
    set_flag(PIPE_M, PIPE_FIX, EVENT_ID7);
    wait_flag(PIPE_M, PIPE_FIX, EVENT_ID7);
}
#endif
"""
)

_BOTH = """\
    Floats ring(data_in(args, 4)), out(data_in(args, 2));
"""
_CUBE = """\
#if defined(__DAV_CUBE__)
    TileAcc<float, kSide, kSide, kSide, kSide> sum;
    make_product(args, sum);
"""
_VECTOR = """\
#else
    Square t0, t1;
    TASSIGN(t0, 0x0);
    TASSIGN(t1, 0x4000);
"""
_COMPUTE = (
    flag("MTE2", "V") + "    TADDS(t1, t0, 1.0f);\n" + flag("V", "MTE3", 1) + "    TSTORE(out, t1);\n#endif\n"
)


def _mix(name: str, body: str, targets: tuple[str, ...] = ("a2a3", "a5"), lanes: int = 1) -> WrongKernel:
    return WrongKernel(name, _BOTH + body, targets, plain=False, lanes=lanes)


MIX = (
    _mix(
        "a vector core loads what the cube core stores without a flag",
        _CUBE
        + "    TSTORE(ring, sum);\n+    SIGNAL(PIPE_FIX, 0);\n"
        + _VECTOR
        + "+    AWAIT(PIPE_MTE2, 0);\n    TLOAD(t0, ring); //! race-cores\n"
        + _COMPUTE,
    ),
    _mix(
        "a flag that is raised on another pipe than the store",
        _CUBE
        + "    TSTORE(ring, sum);\n-    SIGNAL(PIPE_M, 0);\n+    SIGNAL(PIPE_FIX, 0);\n"
        + _VECTOR
        + "    AWAIT(PIPE_MTE2, 0);\n    TLOAD(t0, ring); //! race-cores\n"
        + _COMPUTE,
    ),
    _mix(
        "a flag that is raised before the store",
        _CUBE
        + "-    SIGNAL(PIPE_FIX, 0);\n    TSTORE(ring, sum);\n+    SIGNAL(PIPE_FIX, 0);\n"
        + _VECTOR
        + "    AWAIT(PIPE_MTE2, 0);\n    TLOAD(t0, ring); //! race-cores\n"
        + _COMPUTE,
    ),
    _mix(
        "a wait for the cube core behind the load",
        _CUBE
        + "    TSTORE(ring, sum);\n    SIGNAL(PIPE_FIX, 0);\n"
        + _VECTOR
        + "+    AWAIT(PIPE_MTE2, 0);\n    TLOAD(t0, ring); //! race-cores\n-    AWAIT(PIPE_MTE2, 0);\n"
        + _COMPUTE,
    ),
    _mix(
        "a cube core loads what the vector core stores without a flag",
        "#if defined(__DAV_CUBE__)\n    MatTile mat;\n    TASSIGN(mat, 0x8000);\n"
        + "    Halves half_ring(halves_in(args, 4));\n"
        + "+    AWAIT(PIPE_MTE2, 1);\n-    TLOAD(mat, half_ring);\n+    TLOAD(mat, half_ring);\n#else\n"
        + "    HalfSquare h0;\n    TASSIGN(h0, 0x0);\n    Halves from(halves_in(args, 0)), half_ring(halves_in(args, 4));\n"
        + "    TLOAD(h0, from);\n"
        + flag("MTE2", "MTE3")
        + "    TSTORE(half_ring, h0); //! race-cores\n+    SIGNAL(PIPE_MTE3, 1);\n#endif\n",
    ),
    _mix(
        "a slot that is filled again while it is being read",
        _CUBE
        + "    TSTORE(ring, sum);\n    SIGNAL(PIPE_FIX, 0);\n+    AWAIT(PIPE_FIX, 1);\n    TSTORE(ring, sum);\n"
        + "    SIGNAL(PIPE_FIX, 0);\n"
        + _VECTOR
        + "    AWAIT(PIPE_MTE2, 0);\n    TLOAD(t0, ring); //! race-cores\n+    SIGNAL(PIPE_MTE2, 1);\n"
        + "    AWAIT(PIPE_MTE2, 0);\n    TLOAD(t1, ring);\n"
        + flag("MTE2", "V")
        + "    TADD(t1, t0, t1);\n"
        + flag("V", "MTE3", 1)
        + "    TSTORE(out, t1);\n#endif\n",
    ),
    _mix(
        "a flag for the vector core that it never takes",
        _CUBE
        + "    TSTORE(ring, sum);\n    SIGNAL(PIPE_FIX, 0);\n-    SIGNAL(PIPE_FIX, 3); //! set-without-wait\n"
        + _VECTOR
        + "    AWAIT(PIPE_MTE2, 0);\n    TLOAD(t0, ring);\n"
        + _COMPUTE,
    ),
    _mix(
        "a flag for the cube core that it never takes",
        _CUBE
        + "    TSTORE(ring, sum);\n    SIGNAL(PIPE_FIX, 0);\n"
        + _VECTOR
        + "    AWAIT(PIPE_MTE2, 0);\n    TLOAD(t0, ring);\n-    SIGNAL(PIPE_MTE2, 1); //! set-without-wait\n"
        + _COMPUTE,
    ),
    _mix(
        "more flags under way than the counter holds",
        _CUBE
        + "    TSTORE(ring, sum);\n-    for (int i = 0; i < 20; ++i)\n+    for (int i = 0; i < 10; ++i)\n"
        + "        SIGNAL(PIPE_FIX, 0); //! flag-overflow\n"
        + _VECTOR
        + "-    for (int i = 0; i < 20; ++i)\n+    for (int i = 0; i < 10; ++i)\n        AWAIT(PIPE_MTE2, 0);\n"
        + "    TLOAD(t0, ring);\n"
        + _COMPUTE,
    ),
    _mix(
        "two rings on the same slots",
        "-    constexpr int kSecond = 0;\n+    constexpr int kSecond = 2 * kSide * kSide;\n"
        + "    ToVector down(data_in(args, 4), 0x10000, 0x10000);\n"
        + "    ToCube up(data_in(args, 4) + kSecond, 0x10000, 0x10000);\n"
        + _CUBE
        + "    TPUSH<ToVector, decltype(sum), TileSplitAxis::TILE_NO_SPLIT>(down, sum);\n"
        + "    MatTile mat;\n    TPOP<ToCube, MatTile, TileSplitAxis::TILE_NO_SPLIT>(up, mat); //? race-cores\n"
        + _VECTOR
        + "    HalfSquare h0;\n    TASSIGN(h0, 0x8000);\n    Halves from(halves_in(args, 0));\n    TLOAD(h0, from);\n"
        + flag("MTE2", "MTE3", 2)
        + "    TPUSH<ToCube, HalfSquare, TileSplitAxis::TILE_NO_SPLIT>(up, h0); //! race-cores\n"
        + "    TPOP<ToVector, Square, TileSplitAxis::TILE_NO_SPLIT>(down, t0); //? race-cores //? race\n"
        + _COMPUTE,
    ),
    _mix(
        "a tile of the ring given back before it is read",
        "#if !defined(PTO_NPU_ARCH_A5)\n#define OnChip ToVector\n#else\n"
        + "    using OnChip = TPipe<0, Direction::DIR_C2V, kSide * kSide * 4, 2>;\n#endif\n"
        + "    OnChip down(data_in(args, 4), 0x10000, 0x10000);\n"
        + _CUBE
        + "    for (int i = 0; i < 4; ++i)\n"
        + "        TPUSH<OnChip, decltype(sum), TileSplitAxis::TILE_NO_SPLIT>(down, sum); //! race-cores\n"
        + _VECTOR
        + "    for (int i = 0; i < 4; ++i) {\n"
        + "        TPOP<OnChip, Square, TileSplitAxis::TILE_NO_SPLIT>(down, t0);\n"
        + "        if (i > 0) wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID2);\n"
        + "-        TFREE<OnChip, TileSplitAxis::TILE_NO_SPLIT>(down);\n"
        + "        TADDS(t1, t0, 1.0f); //? race-cores\n"
        + "+        TFREE<OnChip, TileSplitAxis::TILE_NO_SPLIT>(down);\n"
        + "        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID1);\n        wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID1);\n"
        + "        pipe_barrier(PIPE_MTE3);\n        TSTORE(out, t1);\n"
        + "        if (i < 3) set_flag(PIPE_MTE3, PIPE_V, EVENT_ID2);\n    }\n#endif\n",
        targets=("a5",),
    ),
    _mix(
        "a store of a tile that was given back to the ring",
        "    using OnChip = TPipe<0, Direction::DIR_C2V, kSide * kSide * 4, 2>;\n"
        + "    OnChip down(data_in(args, 4), 0x10000, 0x10000);\n"
        + _CUBE
        + "    for (int i = 0; i < 4; ++i)\n"
        + "        TPUSH<OnChip, decltype(sum), TileSplitAxis::TILE_NO_SPLIT>(down, sum); //! race-cores\n"
        + _VECTOR
        + "    for (int i = 0; i < 4; ++i) {\n"
        + "        TPOP<OnChip, Square, TileSplitAxis::TILE_NO_SPLIT>(down, t0);\n"
        + "        TADDS(t0, t0, 1.0f);\n"
        + "        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID1); //? double-set\n"
        + "        wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID1);\n"
        + "        pipe_barrier(PIPE_MTE3);\n        TSTORE(out, t0);\n"
        + "+        set_flag(PIPE_MTE3, PIPE_V, EVENT_ID2);\n+        wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID2);\n"
        + "        TFREE<OnChip, TileSplitAxis::TILE_NO_SPLIT>(down);\n    }\n#endif\n",
        targets=("a5",),
    ),
    _mix(
        "a flag that only one of two vector cores raises",
        "#if defined(__DAV_CUBE__)\n"
        + "+    AWAIT(PIPE_MTE2, 1);\n    pipe_barrier(PIPE_ALL);\n#else\n"
        + "-    if (get_sub_block_id(args) == 0)\n        SIGNAL(PIPE_MTE3, 1); //! set-without-wait\n#endif\n",
        targets=("a2a3",),
        lanes=2,
    ),
    _mix(
        "the cube core waits for a flag that comes after its own",
        _CUBE
        + "-    AWAIT(PIPE_FIX, 1); //! deadlock\n    TSTORE(ring, sum);\n    SIGNAL(PIPE_FIX, 0);\n"
        + "+    AWAIT(PIPE_FIX, 1);\n"
        + _VECTOR
        + "    AWAIT(PIPE_MTE2, 0);\n    TLOAD(t0, ring);\n    SIGNAL(PIPE_MTE2, 1);\n"
        + _COMPUTE,
    ),
)

_LINES = """\
    LineTile t0, t1, t2, t3;
    TASSIGN(t0, 0x0);
    TASSIGN(t1, 0x1000);
    TASSIGN(t2, 0x2000);
    TASSIGN(t3, 0x3000);
    const int block = get_block_idx(args);
    Line mine(data_in(args, 4) + 64 * block), theirs(data_in(args, 4) + 64 * (1 - block));
    Line in0(data_in(args, 0)), first(data_in(args, 4)), out(data_in(args, 2) + 64 * block);
    auto *word = reinterpret_cast<__gm__ int32_t *>(data_in(args, 4) + 1024);
    TLOAD(t0, in0);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TADDS(t1, t0, 1.0f);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
"""
_DONE = flag("MTE3", "S", 3)
_READ = flag("MTE2", "V", 4) + "    TADDS(t3, t2, 2.0f);\n" + flag("V", "MTE3", 5) + "    TSTORE(out, t3);\n"


def _blocks(name: str, body: str, targets: tuple[str, ...] = ("a2a3", "a5")) -> WrongKernel:
    return WrongKernel(name, _LINES + body, targets, plain=False, blocks=2)


_POLL = "        while (ld_dev(word, 0) != 1) {\n        }\n"
BLOCKS = (
    _blocks(
        "two blocks that store to the same place",
        "-    TSTORE(first, t1); //! race-cores\n+    TSTORE(mine, t1);\n",
    ),
    _blocks(
        "two blocks whose stores overlap by half a line",
        "-    Line half_off(data_in(args, 4) + 32 * block);\n+    Line half_off(data_in(args, 4) + 64 * block);\n"
        + "    TSTORE(half_off, t1); //! race-cores\n",
    ),
    _blocks(
        "a block that loads what the other one stores",
        "    TSTORE(mine, t1); //? race-cores\n"
        + "+    SYNCALL<SyncCoreType::AIVOnly>();\n"
        + flag("MTE3", "V", 1)
        + "    TLOAD(t2, theirs); //! race-cores\n"
        + _READ,
    ),
    _blocks(
        "a meeting of all blocks before the store has ended",
        "    TSTORE(mine, t1); //? race-cores\n"
        + "-    ffts_cross_core_sync(PIPE_V, 1 | 0 << 4 | 5 << 8);\n"
        + "+    ffts_cross_core_sync(PIPE_MTE3, 1 | 0 << 4 | 5 << 8);\n"
        + "    wait_flag_dev(5);\n"
        + flag("MTE3", "V", 1)
        + "    TLOAD(t2, theirs); //! race-cores\n"
        + _READ,
        targets=("a2a3",),
    ),
    _blocks(
        "a meeting of all blocks that nobody waits for",
        "    TSTORE(mine, t1);\n-    ffts_cross_core_sync(PIPE_MTE3, 1 | 0 << 4 | 5 << 8); //! set-without-wait\n",
        targets=("a2a3",),
    ),
    _blocks(
        "an atomic store and a plain one of two blocks",
        "    if (block == 0)\n-        TSTORE(first, t1); //? atomic-mix\n"
        + "+        TSTORE<LineTile, Line, AtomicType::AtomicAdd>(first, t1);\n"
        + "    else\n        TSTORE<LineTile, Line, AtomicType::AtomicAdd>(first, t1); //! atomic-mix\n",
    ),
    _blocks(
        "a signal in global memory that overtakes the store",
        "    if (block == 0) {\n        TSTORE(first, t1);\n"
        + "+        set_flag(PIPE_MTE3, PIPE_S, EVENT_ID3);\n+        wait_flag(PIPE_MTE3, PIPE_S, EVENT_ID3);\n"
        + "        st_dev(1, word);\n    } else {\n"
        + _POLL
        + "        TLOAD(t2, first); //! race-cores\n    }\n    if (block == 0) return;\n"
        + _READ,
    ),
    _blocks(
        "a load that does not wait for the signal",
        "    if (block == 0) {\n        TSTORE(first, t1);\n"
        + _DONE
        + "        st_dev(1, word);\n    } else {\n+"
        + _POLL.replace("\n        }", "\n+        }")
        + "        TLOAD(t2, first); //! race-cores\n    }\n    if (block == 0) return;\n"
        + _READ,
    ),
    _blocks(
        "a scalar store that stays in its cache",
        "    if (block == 0) {\n        word[16] = 7;\n"
        + "+        dcci(word + 16, SINGLE_CACHE_LINE);\n+        dsb(DSB_DDR);\n"
        + "        st_dev(1, word);\n    } else {\n"
        + _POLL
        + "        dcci(word + 16, SINGLE_CACHE_LINE);\n"
        + "        TEXPANDS(t3, static_cast<float>(word[16])); //! missing-dcci\n"
        + flag("V", "MTE3", 6)
        + "        TSTORE(out, t3);\n    }\n",
    ),
    _blocks(
        "a transfer of what the scalar unit has in its cache",
        "    auto *values = reinterpret_cast<__gm__ float *>(word) + 128 + 64 * block;\n    Line here(values);\n"
        + "    values[0] = 3.0f;\n+    dcci(values, SINGLE_CACHE_LINE);\n+    dsb(DSB_DDR);\n"
        + "    set_flag(PIPE_S, PIPE_MTE2, EVENT_ID6);\n    wait_flag(PIPE_S, PIPE_MTE2, EVENT_ID6);\n"
        + "    TLOAD(t2, here); //! missing-dcci\n"
        + _READ,
    ),
)
