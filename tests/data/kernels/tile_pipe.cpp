// out[i] = half(relu(a[i] @ b)) @ w for each of `tiles` blocks of 64 rows, through three TMPipes: from the cube core to
// the vector cores, back to the cube core, and out through the vector cores. WIDE products stand side by side in a
// tile of the vector cores, as in an attention; each of these cores has a half of the rows, WIDE times a part of it.
#include <cstdint>
#include <pto/pto-inst.hpp>

#include "intrinsic.h"
#include "tensor.h"

using namespace pto;

#ifndef WIDE
#define WIDE 1
#endif
#ifndef ON_CHIP // in the other core's memory instead of global memory
#define ON_CHIP 0
#endif
#ifndef LOCAL // places that pops through global memory go round; 0: the kernel says where
#define LOCAL 0
#endif
#ifndef UNIT // the unit flag between cube unit and FIXPIPE
#define UNIT 0
#endif

namespace {

constexpr int N = 64, kParts = WIDE, kDepth = 2, R = N / 2 / kParts;
using Square = Shape<1, 1, 1, N, N>;
using Rows = pto::Stride<N * N, N * N, N * N, N, 1>;
using Acc = TileAcc<float, N, N>;
using Mat = Tile<TileType::Mat, half, N, N, BLayout::ColMajor, N, N, SLayout::RowMajor, 512>;
using Scores = Tile<TileType::Vec, float, R, kParts * N>;
using Narrow = Tile<TileType::Vec, half, R, kParts * N>;
using Boxes = Tile<TileType::Vec, half, R, N, BLayout::ColMajor, R, N, SLayout::RowMajor, 512>;
using Half = Tile<TileType::Vec, float, N / 2, N>;

#if ON_CHIP
using ToVector = TMPipe<0, FIFOType::VEC_FIFO, kDepth, 1, Acc, Scores>;
using ToCube = TMPipe<2, FIFOType::MAT_FIFO, kDepth, 1, Boxes, Mat>;
using Out = TMPipe<4, FIFOType::VEC_FIFO, kDepth, 1, Acc, Half>;
#else
using ToVector = TMPipe<0, FIFOType::GM_FIFO, kDepth, 1, Acc, Scores, UNIT, LOCAL>;
using ToCube = TMPipe<2, FIFOType::GM_FIFO, kDepth, 1, Narrow, Mat, false, LOCAL>;
using Out = TMPipe<4, FIFOType::GM_FIFO, kDepth, 1, Acc, Half, UNIT, LOCAL>;
#endif

// Where what is popped lies: on chip and with local places, slot by slot.
constexpr uint32_t kScores = 0x0, kOut = 0x10000, kNarrow = 0x18000, kBoxes = 0x1c000;
constexpr uint32_t kPopped = 0x20000;

template <class T> T *data(int64_t slot) {
    auto *tensor = reinterpret_cast<ChipTensor *>(slot);
    return reinterpret_cast<T *>(tensor->buffer.addr) + tensor->start_offset;
}
// What a pipe is told of such places: the address of the first tile there, as kernels have it.
template <class T> uint32_t begin(uint32_t base) {
    T tile;
    TASSIGN(tile, base);
    return (uint32_t)(uint64_t)tile.data();
}
template <class T> void place(T &tile, uint32_t base, int i) {
    TASSIGN(tile, base + (i % kDepth) * static_cast<uint32_t>(T::Numel * sizeof(typename T::DType)));
}

template <pipe_t from, pipe_t to> void after() {
    set_flag(from, to, EVENT_ID0);
    wait_flag(from, to, EVENT_ID0);
}

// The next push or pop is of this part. A pipe says at its start that one place is free, and the first push of a tile
// does not ask for it: so two tiles may be on their way, and two such words are left at the end.
template <class End> void of_tile(End &end, int i, int part, int offset) {
    end.setTileId(i, part);
    end.setEntryOffset(offset);
}

#if defined(__DAV_CUBE__)
void product(Acc &acc, Mat &a, Mat &b, bool first, bool last) {
    TileLeft<half, N, N> left;
    TileRight<half, N, N> right;
    TASSIGN(left, 0x0);
    TASSIGN(right, 0x0);
    TASSIGN(acc, 0x0);
    after<PIPE_MTE2, PIPE_MTE1>();
    TMOV(left, a);
    TMOV(right, b);
    after<PIPE_MTE1, PIPE_M>();
    if (first && last)
        UNIT ? (void)TMATMUL<AccPhase::Final>(acc, left, right) : (void)TMATMUL(acc, left, right);
    else if (first)
        UNIT ? (void)TMATMUL<AccPhase::Partial>(acc, left, right) : (void)TMATMUL(acc, left, right);
    else
        UNIT ? (void)TMATMUL_ACC<AccPhase::Final>(acc, acc, left, right) : (void)TMATMUL_ACC(acc, acc, left, right);
    if (!UNIT) after<PIPE_M, PIPE_FIX>();
}

void cube(int64_t *args, int tiles) {
#if ON_CHIP
    ToVector to_vector(begin<Scores>(kScores));
    ToCube to_cube(begin<Mat>(kPopped));
    Out out(begin<Half>(kOut));
#else
    ToVector to_vector(data<float>(args[4]), begin<Scores>(kScores));
    ToCube to_cube(data<half>(args[5]), begin<Mat>(kPopped));
    Out out(data<float>(args[6]), begin<Half>(kOut));
#endif
    Mat a, b, w, p;
    Acc acc;
    TASSIGN(a, 0x0);
    TASSIGN(b, 0x8000);
    TASSIGN(w, 0x10000);
    for (int i = 0; i < tiles; ++i) {
        GlobalTensor<half, Square, Rows> a_global(data<half>(args[0]) + i * N * N);
        TLOAD(a, a_global);
        for (int part = 0; part < kParts; ++part) {
            GlobalTensor<half, Square, Rows> b_global(data<half>(args[1]) + part * N * N);
            TLOAD(b, b_global);
            product(acc, a, b, true, true);
            of_tile(to_vector.prod, i, part, part * N * N * sizeof(float));
            to_vector.prod.setAllocateStatus(i > 0 && part == 0);
            to_vector.prod.setRecordStatus(part == kParts - 1);
            TPUSH(acc, to_vector);
            pipe_barrier(PIPE_ALL);
        }
        for (int part = 0; part < kParts; ++part) {
            place(p, kPopped, ON_CHIP ? i : part);
            of_tile(to_cube.cons, i, part, part * N * N * sizeof(half));
            to_cube.cons.setWaitStatus(part == 0);
            to_cube.cons.setFreeStatus(part == kParts - 1);
            TPOP(p, to_cube);
            GlobalTensor<half, Square, Rows> w_global(data<half>(args[2]) + part * N * N);
            TLOAD(w, w_global);
            product(acc, p, w, part == 0, part == kParts - 1);
#if ON_CHIP
            TFREE(to_cube);
#endif
            if (part < kParts - 1) pipe_barrier(PIPE_ALL);
        }
        of_tile(out.prod, i, 0, 0);
        out.prod.setAllocateStatus(i > 0);
        TPUSH(acc, out);
        pipe_barrier(PIPE_ALL);
    }
    to_vector.prod.allocate();
    out.prod.allocate();
}
#else
void vector(int64_t *args, int tiles) {
#if ON_CHIP
    ToVector to_vector(begin<Scores>(kScores));
    ToCube to_cube(begin<Mat>(kPopped));
    Out out(begin<Half>(kOut));
#else
    ToVector to_vector(data<float>(args[4]), begin<Scores>(kScores));
    ToCube to_cube(data<half>(args[5]), begin<Mat>(kPopped));
    Out out(data<float>(args[6]), begin<Half>(kOut));
#endif
    const int lane = static_cast<int>(get_sub_block_id(args));
    Scores s;
    Narrow p;
    Half o;
    TASSIGN(p, kNarrow);
    for (int i = 0; i < tiles; ++i) {
        for (int part = 0; part < kParts; ++part) {
            const int row = lane * (N / 2) + part * R;
            place(s, kScores, ON_CHIP ? i : part);
            of_tile(to_vector.cons, i, part, ON_CHIP ? 0 : row * N * sizeof(float));
            to_vector.cons.setWaitStatus(part == 0);
            to_vector.cons.setFreeStatus(part == kParts - 1);
            TPOP(s, to_vector);
            after<PIPE_MTE2, PIPE_V>();
            TMAXS(s, s, 0.0f);
            pipe_barrier(PIPE_V);
            TCVT(p, s, RoundMode::CAST_RINT);
            of_tile(to_cube.prod, i, part, ON_CHIP ? 0 : row * N * sizeof(half));
            to_cube.prod.setAllocateStatus(i > 0 && part == 0);
            to_cube.prod.setRecordStatus(part == kParts - 1);
#if ON_CHIP
            Boxes boxes;
            TASSIGN(boxes, kBoxes);
            pipe_barrier(PIPE_V);
            TMOV(boxes, p);
            TFREE(to_vector);
            after<PIPE_V, PIPE_MTE3>();
            TPUSH(boxes, to_cube);
#else
            after<PIPE_V, PIPE_MTE3>();
            TPUSH(p, to_cube);
#endif
            pipe_barrier(PIPE_ALL);
        }
        place(o, kOut, i);
        of_tile(out.cons, i, 0, ON_CHIP ? 0 : lane * (N / 2) * N * sizeof(float));
        out.cons.setFreeStatus(!ON_CHIP);
        TPOP(o, out);
        after<PIPE_MTE2, PIPE_MTE3>();
        pipe_barrier(PIPE_ALL); // on chip it is the vector pipe that waits
        GlobalTensor<float, Shape<1, 1, 1, N / 2, N>, Rows> to(data<float>(args[3]) + i * N * N + lane * (N / 2) * N);
        TSTORE(to, o);
        pipe_barrier(PIPE_ALL);
#if ON_CHIP
        out.cons.setFreeStatus(true);
        TFREE(out);
#endif
    }
    to_cube.prod.allocate();
}
#endif

} // namespace

extern "C" void kernel_entry(int64_t *args) {
    const int tiles = static_cast<int>(args[7]);
#if defined(__DAV_CUBE__)
    cube(args, tiles);
#else
    vector(args, tiles);
#endif
}
