"""Small cube kernels that are wrong on purpose, each with its fixed twin (see wrong_vector_kernels)."""

from tests.check.wrong_vector_kernels import WrongKernel, flag

HEAD = """\
constexpr int kSide = 32;
using Halves = GlobalTensor<half, Shape<1, 1, 1, kSide, kSide>, Stride<1, 1, 1, kSide, 1>>;
using Floats = GlobalTensor<float, Shape<1, 1, 1, kSide, kSide>, Stride<1, 1, 1, kSide, 1>>;
using MatTile = Tile<TileType::Mat, half, kSide, kSide, BLayout::ColMajor, kSide, kSide, SLayout::RowMajor, 512>;
inline __gm__ half *halves_in(__gm__ int64_t *args, int slot) {
    return reinterpret_cast<__gm__ half *>(tensor_in(args, slot)->buffer.addr);
}
"""
PRELUDE = """\
    Halves a_in(halves_in(args, 0)), b_in(halves_in(args, 1));
    Floats out(data_in(args, 2));
    MatTile a_mat, b_mat;
    TileLeft<half, kSide, kSide, kSide, kSide> a;
    TileRight<half, kSide, kSide, kSide, kSide> b;
    TileAcc<float, kSide, kSide, kSide, kSide> sum;
    TASSIGN(a_mat, 0x0);
    TASSIGN(b_mat, 0x4000);
    TASSIGN(a, 0x0);
    TASSIGN(b, 0x0);
    TASSIGN(sum, 0x0);
"""
LOAD = "    TLOAD(a_mat, a_in);\n    TLOAD(b_mat, b_in);\n"
MOVE = "    TMOV(a, a_mat);\n    TMOV(b, b_mat);\n"


def _kernel(name: str, body: str, targets: tuple[str, ...] = ("a2a3", "a5")) -> WrongKernel:
    return WrongKernel(name, PRELUDE + body, targets, plain=False)


CUBE = (
    _kernel(
        "a move into L0 of what is still being loaded",
        LOAD
        + flag("MTE2", "MTE1", mark="+")
        + "    TMOV(a, a_mat); //! race\n    TMOV(b, b_mat); //? race\n"
        + flag("MTE1", "M")
        + "    TMATMUL(sum, a, b);\n"
        + flag("M", "FIX")
        + "    TSTORE(out, sum);\n",
    ),
    _kernel(
        "a matmul of what is still being moved",
        LOAD
        + flag("MTE2", "MTE1")
        + MOVE
        + flag("MTE1", "M", mark="+")
        + "    TMATMUL(sum, a, b); //! race\n"
        + flag("M", "FIX")
        + "    TSTORE(out, sum);\n",
    ),
    _kernel(
        "a store of a product that is still being made",
        LOAD
        + flag("MTE2", "MTE1")
        + MOVE
        + flag("MTE1", "M")
        + "    TMATMUL(sum, a, b);\n"
        + flag("M", "FIX", mark="+")
        + "    TSTORE(out, sum); //! race\n",
    ),
    _kernel(
        "a matmul that overwrites what is being stored",
        LOAD
        + flag("MTE2", "MTE1")
        + MOVE
        + flag("MTE1", "M")
        + "    TMATMUL(sum, a, b);\n"
        + flag("M", "FIX")
        + "    TSTORE(out, sum);\n"
        + flag("FIX", "M", 1, "+")
        + "    TMATMUL(sum, a, b); //! race\n"
        + flag("M", "FIX", 2)
        + "    pipe_barrier(PIPE_FIX);\n    TSTORE(out, sum);\n",
    ),
    _kernel(
        "a move that overwrites what is being multiplied",
        LOAD
        + flag("MTE2", "MTE1")
        + MOVE
        + flag("MTE1", "M")
        + "    TMATMUL(sum, a, b);\n"
        + flag("M", "MTE1", 1, "+")
        + "    TMOV(a, b_mat); //! race\n"
        + flag("MTE1", "M", 2)
        + "    TMATMUL_ACC(sum, sum, a, b);\n"
        + flag("M", "FIX")
        + "    TSTORE(out, sum);\n",
    ),
    _kernel(
        "a load that overwrites what is being moved",
        LOAD
        + flag("MTE2", "MTE1")
        + MOVE
        + flag("MTE1", "MTE2", 1, "+")
        + "    TLOAD(a_mat, b_in); //! race\n"
        + flag("MTE2", "MTE1", 2)
        + flag("MTE1", "M")
        + "    TMATMUL(sum, a, b);\n"
        + flag("M", "MTE1", 3)
        + "    TMOV(a, a_mat);\n"
        + flag("MTE1", "M", 4)
        + "    TMATMUL_ACC(sum, sum, a, b);\n"
        + flag("M", "FIX")
        + "    TSTORE(out, sum);\n",
    ),
    _kernel(
        "an accumulation onto what nothing initialised",
        LOAD
        + flag("MTE2", "MTE1")
        + MOVE
        + flag("MTE1", "M")
        + "-    TMATMUL_ACC(sum, sum, a, b); //! accumulator-unset\n+    TMATMUL(sum, a, b);\n"
        + flag("M", "FIX")
        + "    TSTORE(out, sum);\n",
    ),
    _kernel(
        "a loop over K without the way back to the load",
        "    for (int i = 0; i < 3; ++i) {\n+        if (i > 0) wait_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID1);\n"
        + "        TLOAD(a_mat, a_in); //! race\n        TLOAD(b_mat, b_in); //? race\n"
        + "        set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);\n        wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);\n"
        + "        if (i > 0) wait_flag(PIPE_M, PIPE_MTE1, EVENT_ID2);\n"
        + "        TMOV(a, a_mat);\n        TMOV(b, b_mat);\n"
        + "+        if (i < 2) set_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID1);\n"
        + "        set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);\n        wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);\n"
        + "        if (i == 0)\n            TMATMUL(sum, a, b);\n        else\n            TMATMUL_ACC(sum, sum, a, b);\n"
        + "        if (i < 2) set_flag(PIPE_M, PIPE_MTE1, EVENT_ID2);\n    }\n"
        + flag("M", "FIX")
        + "    TSTORE(out, sum);\n",
    ),
    _kernel(
        "an L0 address off its box",
        "-    TASSIGN(a, 0x100);\n"
        + LOAD
        + flag("MTE2", "MTE1")
        + "    TMOV(a, a_mat); //! contract\n    TMOV(b, b_mat);\n"
        + flag("MTE1", "M")
        + "    TMATMUL(sum, a, b); //? contract\n"
        + flag("M", "FIX")
        + "    TSTORE(out, sum);\n",
    ),
    _kernel(
        "half of L1 that nobody loaded",
        "    TLOAD(a_mat, a_in);\n+    TLOAD(b_mat, b_in);\n"
        + flag("MTE2", "MTE1")
        + "    TMOV(a, a_mat);\n    TMOV(b, b_mat); //! unwritten-read\n"
        + flag("MTE1", "M")
        + "    TMATMUL(sum, a, b);\n"
        + flag("M", "FIX")
        + "    TSTORE(out, sum);\n",
    ),
    _kernel(
        "a product of an L0 memory that nobody filled",
        LOAD
        + flag("MTE2", "MTE1")
        + "    TMOV(a, a_mat);\n+    TMOV(b, b_mat);\n"
        + flag("MTE1", "M")
        + "    TMATMUL(sum, a, b); //! unwritten-read\n"
        + flag("M", "FIX")
        + "    TSTORE(out, sum);\n",
    ),
    _kernel(
        "two products on the way to the same place",
        LOAD
        + flag("MTE2", "MTE1")
        + MOVE
        + flag("MTE1", "M")
        + "    TMATMUL(sum, a, b);\n"
        + flag("M", "FIX")
        + "    TSTORE(out, sum);\n+    pipe_barrier(PIPE_FIX);\n    TSTORE(out, sum); //! race-same-pipe\n",
        targets=("a2a3",),
    ),
    _kernel(
        "vector work on a cube core",
        "-    Tile<TileType::Vec, float, 1, 64> line;\n-    TASSIGN(line, 0x0);\n-    TEXPANDS(line, 1.0f); //! contract\n"
        + LOAD
        + flag("MTE2", "MTE1")
        + MOVE
        + flag("MTE1", "M")
        + "    TMATMUL(sum, a, b);\n"
        + flag("M", "FIX")
        + "    TSTORE(out, sum);\n",
    ),
    _kernel(
        "a product that unit flags hand over before its last part",
        LOAD
        + flag("MTE2", "MTE1")
        + MOVE
        + flag("MTE1", "M")
        + "    TMATMUL<AccPhase::Partial>(sum, a, b);\n"
        + "-    TMATMUL_ACC<AccPhase::Partial>(sum, a, b);\n+    TMATMUL_ACC<AccPhase::Final>(sum, a, b);\n"
        + "    TSTORE<STPhase::Final>(out, sum); //! race\n",
    ),
    _kernel(
        "a store that takes no part in the unit flag of its product",
        LOAD
        + flag("MTE2", "MTE1")
        + MOVE
        + flag("MTE1", "M")
        + "    TMATMUL<AccPhase::Final>(sum, a, b);\n"
        + "-    TSTORE(out, sum); //! race\n+    TSTORE<STPhase::Final>(out, sum);\n",
    ),
    _kernel(
        "a product that overwrites what is being stored, in spite of its unit flag",
        LOAD
        + flag("MTE2", "MTE1")
        + MOVE
        + flag("MTE1", "M")
        + "    TMATMUL<AccPhase::Final>(sum, a, b);\n    TSTORE<STPhase::Final>(out, sum);\n"
        + "-    TMATMUL(sum, a, b); //! race\n+    TMATMUL<AccPhase::Final>(sum, a, b);\n"
        + "    pipe_barrier(PIPE_FIX);\n-"
        + flag("M", "FIX").replace("\n    ", "\n-    ")
        + "    TSTORE<STPhase::Final>(out, sum);\n",
    ),
)
