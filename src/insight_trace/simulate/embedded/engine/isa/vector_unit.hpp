// The vector unit: what an instruction does to the bytes of UB. One table (by Instr) of functions; masks,
// repeats, strides and saturation are handled once, in the walk over lanes (lanes.cpp).
//
// A repeat reads all its sources before it writes anything, and repeats follow each other in order, so that
// an instruction may add to its own result (a repeat stride of 0).
#pragma once

#include "core.hpp"

namespace insight_trace::engine {

constexpr int kBytesOfRepeat = 256, kBytesOfBlock = 32, kBlocksOfRepeat = 8;
constexpr int kMaximumLanes = 256;

// The lanes of a repeat that take part: bits, or a number of elements that all repeats together work on.
struct LaneMask {
    std::array<uint64_t, 4> bits{~0ull, ~0ull, ~0ull, ~0ull}; // the register has the first two
    bool counts = false;
    int64_t count = 0;

    static LaneMask first(int64_t lanes);
    static LaneMask of_count(int64_t elements) { return {{}, true, elements}; }
    bool has(int64_t repeat, int lane, int lanes) const {
        if (counts) return repeat * lanes + lane < count;
        return bits[size_t(lane) / 64] >> (lane % 64) & 1;
    }
    // Lanes from the first on when those are all that are active, else -1.
    int prefix(int lanes) const;
    int last(int lanes) const; // of a repeat that is not cut short by a count; -1: none
};

// One instruction as the vector unit decodes it.
struct VectorInstruction {
    Instr instr;
    uint8_t mode = 0;      // of conversions, comparisons, reductions, selections: see below
    Type type = Type::F32; // of the lanes: the wider one where types differ
    Type to = Type::F32, from = Type::F32, second = Type::F32;
    int64_t repeats = 0; // as the repeat field says; ignored where the mask counts
    LaneMask mask;
    VectorOperand dst, src0, src1;
    uint64_t number = 0; // of a scalar operand, as the bits of its type
};

// Modes; that of a conversion is a Round (isa/rounding.hpp).
enum class Compare : uint8_t { LT, GT, EQ, LE, GE, NE };
// Of comparisons of the 950: zeros behind the last bit, up to 16 bytes, or to 32.
constexpr uint8_t kWholeWords = 8, kWideWords = 16;
enum class Order : uint8_t { ValueIndex, IndexValue, OnlyValue, OnlyIndex };

// CTRL bits that arithmetic reads.
inline bool keeps_infinities(uint64_t control) { return control >> 48 & 1; } // else held at the largest
inline bool cuts_integers(uint64_t control) { return control >> 59 & 1; }    // else held at the largest
inline bool saturates_sums(uint64_t control) { return control >> 53 & 1; }   // of integers; else they wrap

inline bool on_bits(Instr instr) {
    return instr == Instr::VAND || instr == Instr::VOR || instr == Instr::VNOT || instr == Instr::VXOR;
}

using VectorSemantics = void (*)(Core &core, const VectorInstruction &instruction);
// What an instruction does; null where it has no meaning here.
VectorSemantics vector_semantics(Instr instr);
// Executes it, or fails where it has no meaning for these types.
void execute(Core &core, const VectorInstruction &instruction);

// --- the walk over lanes
// A run of lanes: results, and the elements of up to two sources, one after the other.
using LaneOp = void (*)(void *to, const void *a, const void *b, int64_t count);

struct LaneWork {
    LaneOp op;
    int to_size, a_size, b_size;   // bytes of an element; 0: there is no such source
    bool reads_result = false;     // the result is an input
    bool number = false;           // the second source is the instruction's number
    bool swapped = false;          // the second source is the first operand
    const void *context = nullptr; // takes the place of the second source
    Type saturates = Type::U8;     // F16, BF16: results are held at the largest number unless CTRL says else
};
void walk_lanes(Core &core, const VectorInstruction &instruction, const LaneWork &work);

// One operand over the bytes that it may touch, checked against the memory.
struct LaneOperand {
    uint8_t *base = nullptr;
    int64_t size = 0, block = 0, repeat = 0; // bytes
    LaneOperand() = default;
    LaneOperand(Core &core, const VectorOperand &operand, int size, int64_t repeats, int last);
    int64_t offset(int lane) const {
        const int64_t byte = lane * size;
        return byte / kBytesOfBlock * block + byte % kBytesOfBlock;
    }
    uint8_t *at(int64_t r, int lane) const { return base + r * repeat + offset(lane); }
    // The lanes of a repeat up to `count`, one after the other.
    void read(int64_t r, int count, uint8_t *into) const;
};

// Halves and bfloat16 that are infinite become the largest number, and NaN becomes 0. On chips with vector
// functions CTRL[48] counts only where CTRL[60] says that it is for all instructions.
void hold_numbers(Type type, void *numbers, int64_t count);
inline bool holds_numbers(const Core &core, Type type) {
    const bool counts = !core.function || core.control >> 60 & 1;
    return (type == Type::F16 || type == Type::BF16) && counts && !keeps_infinities(core.control);
}

// The vector unit has a conversion for the pair.
bool has_conversion(Type from, Type to);

// --- by kind; null where an instruction does not take the type
// On registers (950) quotients, exponentials, logarithms and roots give 0 for subnormal numbers, and take
// those of floats as 0, with their sign. Tile ops of the bundled headers do not say by which algorithm, and
// keep them.
enum class Subnormals : uint8_t { Kept, Flushed };
LaneOp arithmetic(Instr instr, Type type, Subnormals subnormals = Subnormals::Kept);
void execute_arithmetic(Core &core, const VectorInstruction &instruction);
void execute_copy(Core &core, const VectorInstruction &instruction);
void execute_fill(Core &core, const VectorInstruction &instruction);
void execute_narrowing(Core &core, const VectorInstruction &instruction);
void execute_requantisation(Core &core, const VectorInstruction &instruction);
void execute_conversion(Core &core, const VectorInstruction &instruction);
void execute_reduction(Core &core, const VectorInstruction &instruction);
void execute_block_reduction(Core &core, const VectorInstruction &instruction);
void execute_pair_sums(Core &core, const VectorInstruction &instruction);
void execute_comparison(Core &core, const VectorInstruction &instruction);
void execute_selection(Core &core, const VectorInstruction &instruction);
void execute_block_spread(Core &core, const VectorInstruction &instruction);
void execute_gather(Core &core, const VectorInstruction &instruction);
void execute_block_gather(Core &core, const VectorInstruction &instruction);
void execute_squeeze(Core &core, const VectorInstruction &instruction);
void execute_sequence(Core &core, const VectorInstruction &instruction);
void execute_interleaving(Core &core, const VectorInstruction &instruction);
void execute_remainder(Core &core, const VectorInstruction &instruction);
void execute_sort(Core &core, const VectorInstruction &instruction);
void execute_transposition(Core &core, const VectorInstruction &instruction);
void execute_square_transposition(Core &core, const VectorInstruction &instruction);

// Up to four lists of pairs (score, index), each in falling order, into one; of equal scores those of the
// earlier list come first. `valid`: lists as bits; `stops` when one list is used up.
struct MergeResult {
    int64_t pairs = 0, taken[4] = {};
};
MergeResult merge_sorted(Core &core, Type type, uint64_t dst, const uint64_t (&lists)[4],
                         const int64_t (&lengths)[4], int64_t repeats, int valid, bool stops);
// The merge unit's time goes with the data: a repeat is what four lists of 32 pairs are.
inline int merge_repeats(int64_t pairs) {
    return static_cast<int>(std::max<int64_t>(1, (pairs + 127) / 128));
}

} // namespace insight_trace::engine
