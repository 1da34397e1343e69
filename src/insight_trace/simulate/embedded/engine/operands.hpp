// Operands of hardware instructions: where they lie, and which bytes an instruction touches there.
#pragma once

#include <cstdint>

#include "insight_trace/abi.hpp"
#include "parameters.hpp"
#include "record.hpp"

namespace insight_trace::engine {

// A vector operand: where it lies and how it advances, in blocks of 32 bytes. Most instructions touch as many
// lanes of it as their mask has; where an op knows better it says so.
struct VectorOperand {
    uint32_t address = 0;
    uint16_t block_stride = 1;  // between the eight blocks of one repeat
    uint16_t repeat_stride = 8; // between repeats
    bool used = false;
    bool typed = false, unseen = false;
    Type element = Type::F32;         // where it is not the instruction's
    uint32_t piece = 0, distance = 0; // bytes of each repeat, and between the repeats' pieces
    uint64_t mask = 0;                // lanes that are active, when those are not the first ones

    VectorOperand() = default;
    VectorOperand(uint64_t address_, int64_t repeat_stride_ = 8, int64_t block_stride_ = 1)
        : address(static_cast<uint32_t>(address_)), block_stride(static_cast<uint16_t>(block_stride_)),
          repeat_stride(static_cast<uint16_t>(repeat_stride_)), used(true) {}

    // Elements of another type than the instruction's.
    VectorOperand of(Type type) const {
        VectorOperand other = *this;
        other.typed = true;
        other.element = type;
        return other;
    }
    // Each repeat touches `bytes` of it, `apart` bytes from those of the one before.
    VectorOperand pieces(uint32_t bytes, uint32_t apart) const {
        VectorOperand other = *this;
        other.piece = bytes;
        other.distance = apart;
        return other;
    }
    // All repeats together touch `bytes` of it, one after the other.
    VectorOperand spanning(int64_t bytes) const { return pieces(static_cast<uint32_t>(bytes), 0); }
    VectorOperand masked(uint64_t lanes) const {
        VectorOperand other = *this;
        other.mask = lanes;
        return other;
    }
    // Its bytes are told apart (Core::also).
    VectorOperand elsewhere() const {
        VectorOperand other = *this;
        other.unseen = true;
        return other;
    }
};

// An operand of a move, a transfer or a product.
struct Area {
    static constexpr int kMost = 9;
    uint64_t address;
    int parts = 0;     // 0: the bytes that the instruction moves, one after the other
    uint8_t owner = 0; // as in Footprint
    union {
        Traversal walk[kMost]; // set up to `parts`
    };

    Area(uint64_t address_ = 0) : address(address_) {}
    Area(const Area &other) { *this = other; }
    Area &operator=(const Area &other) { // most have one part of the nine
        address = other.address;
        parts = other.parts;
        owner = other.owner;
        for (int i = 0; i < parts; ++i) walk[i] = other.walk[i];
        return *this;
    }
    Traversal &add() { return walk[parts++] = Traversal{}; }
};

// The same in the memory of another core of the block: its cube core, or a vector core by its lane.
constexpr uint8_t kCubeCore = 1;
inline uint8_t vector_core(int64_t lane) { return static_cast<uint8_t>(2 + lane); }
Area in_core(uint8_t owner, Area area);
// The same bytes, named by another address.
Area named_at(uint64_t address, Area area);
// `rows` x `cols` elements of a tile from (row, col) on.
Area part_of(const TileRef &tile, int64_t row, int64_t col, int64_t rows, int64_t cols);
Area whole_of(const TileRef &tile);
Area valid_of(const TileRef &tile);
// `count` pieces of `run` bytes, `step` bytes apart.
Area lines_at(uint64_t address, int64_t count, int64_t step, int64_t run);
// The lines of `length` elements that a tensor is made of: its rows, or its columns (DN).
Area lines_of_tensor(const GlobalRef &g, bool columns, int64_t length);

// How an instruction's repeats run over its operands.
struct Repeats {
    Instr instr;
    Type type;
    int64_t repeat, elements;
    bool counted;
    int lanes; // of one repeat: the widest operand decides
};
// The bytes of one operand around its address; run 0 when it touches none.
Traversal walk_of(const Repeats &repeats, int which, const VectorOperand &operand);
Role role_of(Instr instr, int which);

// The memories of a move's result and source.
struct Ends {
    Space to, from;
};
Ends ends_of(Instr instr);

} // namespace insight_trace::engine
