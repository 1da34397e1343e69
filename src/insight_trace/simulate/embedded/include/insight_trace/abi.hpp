// What a compiled kernel and the engine agree on: plain data, no templates, no library types.
//
// A tile op in a kernel becomes one call of insight_trace_op() with its operands described; the engine, which
// lives in the runner, does the arithmetic and issues the hardware instructions. So a kernel compiles in a
// fraction of a second, and every op has one implementation for all element types.
#pragma once

#include <cstdint>

namespace insight_trace {

// Element types. 0..14 are the codes of the tensor descriptor; the rest never stand in a descriptor.
enum class Type : uint8_t {
    F32 = 0,
    F16 = 1,
    I32 = 2,
    I16 = 3,
    I8 = 4,
    U8 = 5,
    BF16 = 6,
    I64 = 7,
    U64 = 8,
    U16 = 9,
    U32 = 10,
    Bool = 11,
    F8E4M3 = 12,
    F8E8M0 = 13,
    F4E2M1 = 14,
    F8E5M2 = 15,
    HiF8 = 16,
    F4E1M2 = 17,
    I4 = 18,
};

// Memories of one core, in the order of pto::TileType, then global memory.
enum class Space : uint8_t { UB, L1, L0A, L0B, L0C, Bias, Scaling, ScaleLeft, ScaleRight, Ctrl, GM };

// Pipes as kernels name them (PIPE_S … PIPE_ALL).
enum class PipeId : uint8_t { S, V, M, MTE1, MTE2, MTE3, ALL, FIX, COUNT };

// A line of kernel source. The text lives in the kernel's own read-only data.
struct Site {
    const char *file;
    uint32_t line;
    // As a default argument: the place of the call that leaves it out.
    static constexpr Site here(const char *file = __builtin_FILE(), uint32_t line = __builtin_LINE()) {
        return {file, line};
    }
};

struct TileRef {
    uint32_t address; // byte offset in its space
    int32_t rows, cols;
    int32_t valid_rows, valid_cols;
    Space space;
    Type type;
    uint8_t row_major; // outer layout: 1 row major, 0 column major
    uint8_t inner;     // inner layout: 0 none, 1 row major boxes, 2 column major boxes
    uint8_t compact;   // pto::CompactMode
    uint8_t dynamic;   // valid size known only at run time: 1 rows, 2 columns (ops choose instructions by it)
    uint8_t unit_flag; // of an accumulator, in this call: 0 none, 2 waits for it, 3 waits for it and flips it
    uint8_t reserved;
    int32_t fractal; // bytes of an inner box: 512, 1024 or 32
    uint64_t pad;    // pto::PadValue: 0 null, 1 zero, 2 max, 3 min, bit 32 set: the low 32 bits are the value
};

struct GlobalRef {
    uint64_t address;
    int64_t shape[5];
    int64_t stride[5]; // elements
    Type type;
    uint8_t layout; // pto::Layout
};

struct ScalarRef {
    uint64_t bits; // raw bits of the value in its own type
    Type type;
};

struct Operand {
    enum Kind : uint8_t { None, Tile, Global, Scalar, Option } kind;
    union {
        TileRef tile;
        GlobalRef global;
        ScalarRef scalar;
        int64_t option; // an enumerator or index: RoundMode, CmpMode, a row, a column
    };
};

// One number per tile op: the row of its name in ops.def.
enum class Op : uint16_t {
#define TILE_OP(name, ...) name,
#include "insight_trace/ops.def"
#undef TILE_OP
    COUNT
};

// Scalar-unit and control intrinsics that are not tile ops.
enum class Intrinsic : uint16_t {
    Dcci,
    Dsb,
    SetMaskNorm,
    SetMaskCount,
    SetVectorMask,
    SetCtrl,
    GetCtrl,
    SetAtomicNone,
    SetAtomicAdd,
    GetSysCnt,
    GetBlockIdx,
    GetBlockNum,
    GetSubBlockId,
    GetSubBlockDim,
    GetCoreId,
    LoadDev,
    StoreDev,
    AtomicAdd,      // a: address, b: bytes, c: bits
    SetStoreAtomic, // a: element type of scalar atomic stores, b: what they do
    WaitSignal,     // a: address, b: pto::comm::WaitCmp, c: value
    TestSignal,
    DmaCopy, // by an engine beside the core. a: where to, b: where from, c: bytes
    SetCrossCore,
    WaitFlagDev,
    SetIntraBlock,
    WaitIntraBlock,
    GetBuffer,
    ReleaseBuffer,
    SetFftsBase,
    GetFftsBase,
    SetSpr, // a: Spr, b: value, c: the pipe that it belongs to
    GetSpr, // a: Spr
    SetVa,  // a: first of eight addresses for scatter_vnchwconv, b: where the eight words lie; c: 1 in UB
    Nop,
    Trap,
    Unsupported, // a: text of what was called
    SetAtomicOp, // a: 0 add, 1 max, 2 min; of stores to global memory
    LocalBase,   // a: Space. The address of its first byte in this core. b: 1 where pointers to every memory
                 // stand on this one's
    Print,       // a: a text of the kernel's
    LookAtWords, // from here on, or no more: loads look at words that cores leave for each other
};

// Instructions that a kernel issues itself, below the tile ops. An address is a byte offset in its memory, or
// what the data() of a tile gave.
enum class Raw : uint16_t {
    Copy,   // dst space, dst address, src space, src address, pieces, bytes of one, dst step, src step, lane,
            // bytes of padding before and behind each piece, element bytes, Filling
    Fill,   // space, address, pieces, bytes of one, step, pattern, bytes of the pattern
    Vector, // VectorRow, types (result, sources; eight bits each), dst, src0, src1 or a number's bits,
            // repeats, steps of blocks (3) and of repeats (3) in blocks, an option of the instruction
    ToBoxes, // dst, src, matrices, rows, columns, elements from matrix to matrix and from row to row, blocks
             // from column to column of boxes and from row to row, elements between matrices, element bytes
    LoadBoxes, // L0 space, dst, src, first box, boxes, step between them, gap behind each, turned, bytes,
               // 1 where sources go down, gap behind each box of a square, boxes of a square
    Multiply,  // acc (the bias in its high half), left, right, m, k, n, type, MultiplyBits
    StoreAcc,  // dst space, dst address, acc, words of the instruction (2), type of the result, type of the
               // acc, and to UB: MatrixEnd bits
    LoadImage, // L0 space, dst, src, words of the instruction (2), element bytes
    LoadTable, // table space, dst, src, pieces, bytes of one, dst step, src step, 1 where halves become
               // floats, 2 where bfloat16 does
    Merge,     // type, dst, lists (4), lengths (4 of 16 bits), how (vmrgsort4)
    Matrices,  // 950, into boxes: dst, src, bytes from line to line and from matrix to matrix, rows, columns,
               // element bytes, 1 where the source lies column by column
    LoadMatrix, // 950: L0 space, dst, src, first row and column and how many of boxes (4), steps of columns
                // of boxes in L1 and L0, turned, half bytes of an element
    LoadScales, // 950: scale space, dst, src, first row and column and how many of groups (4), steps (2)
    NdCopy,     // 950, GM to UB: dst, src, counts of five dimensions, padding before and behind the first, 1
                // where padding is constant, element bytes
    LoadSparse, // to L0B: dst, src (in its high half the choices), first box, boxes
};
constexpr uint32_t raw_values(Raw which) {
    constexpr uint32_t counts[] = {13, 7, 13, 11, 13, 8, 8, 6, 8, 8, 8, 11, 9, 11, 4};
    return counts[static_cast<int>(which)];
}
// What a copy does with the rest of a block: nothing, or fills it up.
// Looped: as the 950 does, which also repeats the whole copy as the loop registers say.
enum class Filling : uint8_t { None, Aligned, Looped, LoopedPadded };
// Bits of a product: its unit flag, K in whole steps of 16, what it starts from.
constexpr uint64_t kUnitFlagBits = 3, kWholeSteps = 4, kFromBias = 8, kFromZero = 16, kNoRow = 32,
                   kScaled = 64, // 950: a row is a matrix of one row; factors for groups of 32 elements
    kSparse = 128;               // of four elements along k two are chosen
// Of the way out to UB: to both vector cores, half of the rows or of the columns each; else to the second.
constexpr uint64_t kSplitRows = 1, kSplitColumns = 2, kSecondCore = 4;

// Vector instructions by the names of the device compiler.
enum class VectorRow : uint16_t {
#define VECTOR(name, ...)     name,
#define CONVERT(name, ...)    name,
#define REQUANTISE(name, ...) name,
#define NARROW(name, ...)     name,
#include "insight_trace/isa/vector.def"
#undef VECTOR
#undef CONVERT
#undef REQUANTISE
#undef NARROW
    COUNT
};

// Instructions on vector registers (950), by the names of the device compiler.
enum class RegisterRow : uint16_t {
#define REGISTER(name, ...) name,
#include "insight_trace/isa/register.def"
#undef REGISTER
    COUNT
};
constexpr uint32_t kBytesOfRegister = 256;
// What a register begins with: nothing was written to one that still does. Kernels ask for its size, so it
// has no room for more than its bytes.
constexpr uint64_t kUnwrittenRegister[4] = {0x9d3f51c2a8e6047b, 0x61b8d0f7352ea94c, 0xe27405bc9f18d36a,
                                            0x4ac9167de083fb52};
// One bit for each byte of a register; an element's is that of its first byte.
struct Predicate {
    uint64_t bits[4];
};
// What one of them is, in a word. Options: by row, see registers.hpp.
struct RegisterWord {
    RegisterRow row;
    Type to, from;
    uint8_t merges; // lanes that are off keep what they hold, else they become 0
    uint8_t option[3];
};
// What a store to any address keeps of its last block until the next one, or until it is flushed.
struct AlignRegister {
    uint64_t end = 0; // where the next byte goes
    uint32_t count = 0;
    uint8_t bytes[32];
};

enum class Spr : uint16_t {
#define SPR(name)        name,
#define SPR_RESULT(name) name,
#include "insight_trace/isa/special_registers.def"
#undef SPR
#undef SPR_RESULT
    COUNT
};
constexpr uint32_t kSprCount = static_cast<uint32_t>(Spr::COUNT);
// Those that the scalar unit writes; they come first.
constexpr uint32_t kIssuedSprCount = 0
#define SPR(name) +1
#define SPR_RESULT(name)
#include "insight_trace/isa/special_registers.def"
#undef SPR
#undef SPR_RESULT
    ;

} // namespace insight_trace

extern "C" {
void insight_trace_raw(insight_trace::Raw which, const uint64_t *values, insight_trace::Site at);
// An instruction on registers, inside of a vector function. Registers lie in the kernel's own memory.
void insight_trace_register(insight_trace::RegisterWord word, void *dst, const void *a, const void *b,
                            const insight_trace::Predicate *mask, uint64_t number);
// A vector function begins, and ends.
void insight_trace_begin_function(insight_trace::Site at);
void insight_trace_end_function();
void insight_trace_op(insight_trace::Op op, const insight_trace::Operand *operands, uint32_t count,
                      insight_trace::Site at);
void insight_trace_set_flag(insight_trace::PipeId from, insight_trace::PipeId to, int64_t event,
                            insight_trace::Site at);
void insight_trace_wait_flag(insight_trace::PipeId from, insight_trace::PipeId to, int64_t event,
                             insight_trace::Site at);
void insight_trace_barrier(insight_trace::PipeId pipe, insight_trace::Site at);
uint64_t insight_trace_intrinsic(insight_trace::Intrinsic which, uint64_t a, uint64_t b, uint64_t c,
                                 insight_trace::Site at);
// Host address of a byte of the running core's memory; checked against its size.
void *insight_trace_local(insight_trace::Space space, uint64_t address, uint64_t bytes,
                          insight_trace::Site at);
// A scalar read or write of on-chip memory, recorded as the scalar unit's load or store.
uint64_t insight_trace_get_value(const insight_trace::TileRef *tile, uint64_t index, insight_trace::Site at);
void insight_trace_set_value(const insight_trace::TileRef *tile, uint64_t index, uint64_t bits,
                             insight_trace::Site at);
}
