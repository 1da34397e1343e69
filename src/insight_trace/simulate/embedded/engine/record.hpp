// What a run leaves on disk, row by row; simulate/embedded/records.py reads these as structured arrays.
//
// An instruction is one Record. Its operands are the rows of the operand table from `operands` up to those of
// the next record. What repeats in loops is interned: the geometry of an instruction (Geometry), the bytes
// that an operand touches around its address (Footprint), and the tile that it belongs to (Tile).
#pragma once

#include <cstdint>

namespace insight_trace::engine {

// What `a` means, and which part of its geometry an instruction uses.
enum class Form : uint8_t {
    Plain = 0,   // a: value
    Flag = 1,    // a: from pipe, to pipe, event packed
    Barrier = 2, // a: pipe
    Vector = 3,  // strides, repeat, mask, active elements
    Transfer =
        4,     // repeat: bursts; burst_bytes, gm_step; bytes moved; a: requests of L2, and above them misses
    Local = 5, // repeat; bytes moved on chip
    Multiply = 6, // m, k, n
    Scalar = 7,   // a: address or value
    Function = 8, // a: loops, and above them rows
};

struct Record {
    int64_t issue; // thousandths of a cycle
    int64_t start;
    int64_t end;
    uint64_t a;
    uint32_t site;
    uint32_t partner; // row of the set that ended a wait
    uint32_t geometry;
    uint32_t operands; // first row in the operand table
    uint32_t call;     // the tile op that issued it
    uint16_t core;
    uint8_t stall;
    uint8_t form;
    uint32_t read_conflict; // cycles lost to banks
    uint32_t write_conflict;
};
static_assert(sizeof(Record) == 64, "records.py reads 64 bytes a row");

struct OperandRow {
    uint64_t address; // byte offset in its memory; an address of global memory
    uint32_t footprint;
    uint32_t tile;
};
static_assert(sizeof(OperandRow) == 16);

struct CallRow {
    uint16_t op;
    uint16_t core;
    uint32_t tiles; // place in the tile lists: a count, and as many tiles
};
static_assert(sizeof(CallRow) == 8);

struct Geometry {
    // counted: of a vector instruction in count mode; atomic: a store that adds to what is there
    uint8_t form = 0, type = 0, counted = 0, atomic = 0;
    uint16_t block_stride[3] = {}, repeat_stride[3] = {}; // dst, src0, src1; blocks of 32 bytes
    uint32_t repeat = 0, elements = 0;                    // elements: active in all repeats together
    uint64_t mask[2] = {};                                // active lanes of one repeat; 0 in count mode
    int64_t bytes = 0;
    uint32_t m = 0, k = 0, n = 0;
    uint16_t unit_flag = 0;      // of an accumulator: 0 none, 2 waits for it, 3 waits for it and flips it
    uint16_t looks_at_words = 0; // a load of words that cores leave for each other
    int64_t burst_bytes = 0, gm_step = 0;
};
static_assert(sizeof(Geometry) == 80);

enum Role : uint8_t { kReads = 1, kWrites = 2, kReadsAndWrites = 3 };

// Pieces of `run` bytes at offset + i0 * step[0] + … + i3 * step[3], in that order, i0 outermost. Of each i0
// only the first `lead` bytes of the order count (0: all) and the elements that `mask` has (0: all); of the
// whole only the first `total` bytes (0: all).
struct Traversal {
    int64_t offset = 0;
    int64_t step[4] = {0, 0, 0, 0};
    uint32_t count[4] = {1, 1, 1, 1};
    uint32_t run = 0, lead = 0, total = 0, reserved = 0;
    uint64_t mask[2] = {0, 0};
};
static_assert(sizeof(Traversal) == 88);

struct Footprint {
    uint8_t memory = 0, role = 0, type = 0, which = 0; // which: 0 dst, 1 src0, 2 src1, 3 further ones
    uint8_t exact = 1;                                 // 0: somewhere in there, the data decide
    uint8_t owner =
        0; // whose memory: 0 this core's, 1 that of the block's cube core, 2 + lane of a vector core
    uint8_t reserved[2] = {0, 0};
    Traversal walk;
};
static_assert(sizeof(Footprint) == 96);

struct TileRow {
    uint64_t address = 0;
    int32_t rows = 0, cols = 0, valid_rows = 0, valid_cols = 0;
    uint8_t memory = 0, type = 0, row_major = 0, inner = 0, compact = 0, layout = 0, reserved[2] = {0, 0};
    int32_t fractal = 0, reserved2 = 0;
    int64_t shape[5] = {}, stride[5] = {}; // of a tensor in global memory
};
static_assert(sizeof(TileRow) == 120);

constexpr uint32_t kNoPartner = 0xffffffffu, kNoTile = 0xffffffffu, kNoCall = 0xffffffffu,
                   kNoGeometry = 0xffffffffu;

} // namespace insight_trace::engine
