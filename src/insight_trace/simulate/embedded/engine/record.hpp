// One executed instruction on its way to disk: 64 bytes, read by NumPy as a structured array (records.py).
#pragma once

#include <cstdint>

namespace insight_trace::engine {

// How `detail` is spelled for a row, and what the packed fields mean.
enum class Form : uint8_t {
    Plain = 0,    // a: value
    Flag = 1,     // a: from pipe, to pipe, event packed
    Barrier = 2,  // a: pipe
    Vector = 3,   // dst, src0, src1, repeat; a: block and repeat strides; bytes: active elements
    Transfer = 4, // a: GM address; dst or src0: on-chip address; repeat: bursts; bytes moved
    Local = 5,    // dst, src0; repeat; bytes moved on chip in a
    Multiply = 6, // dst, src0, src1; a: m, k, n packed
    Scalar = 7,   // a: address
    Function = 8, // a: loops, and above them rows
};

struct Record {
    int64_t issue;
    int64_t start;
    int64_t end;
    uint32_t site;
    uint16_t core;
    uint8_t stall;
    uint8_t form;
    uint32_t partner; // row of the set that ended a wait; of a vector instruction: its write-conflict cycles
    uint32_t bytes;   // to or from GM; of a vector instruction: its active elements
    uint64_t a;
    uint32_t dst;  // on-chip address in the low 24 bits; of dst, the element type above
    uint32_t src0; // of src0, the space above (Local)
    uint32_t src1;
    uint16_t repeat;
    uint16_t read_conflict;
};
static_assert(sizeof(Record) == 64, "records.py reads 64 bytes a row");

constexpr uint32_t kNoPartner = 0xffffffffu;

} // namespace insight_trace::engine
