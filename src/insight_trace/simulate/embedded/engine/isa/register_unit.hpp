// Instructions on vector registers (950): a row of isa/register.def, its operands in the kernel's own memory,
// and what it does. Predicates are handled here once: an instruction computes all lanes, and `write` keeps
// those that are on.
#pragma once

#include <array>
#include <cstring>
#include <vector>

#include "core.hpp"
#include "elements.hpp"
#include "isa/vector_unit.hpp"

namespace insight_trace::engine {

constexpr int kRegister = static_cast<int>(kBytesOfRegister);
template <class T> const T *lanes_of(const uint8_t *reg) { return reinterpret_cast<const T *>(reg); }

struct RegisterCall {
    Core &core;
    RegisterWord word;
    uint8_t *dst;
    const uint8_t *a, *b;
    const Predicate *mask;
    uint64_t number;
    const void *caller;

    uint8_t option(int which) const { return word.option[which]; }
    int size() const { return type_size(word.to); }
    int lanes() const { return kRegister / size(); }
    uint8_t *second() const { return reinterpret_cast<uint8_t *>(number); } // the other result
    [[noreturn]] void unsupported(const char *what) const;
};

// Bits of a predicate that belong to elements of `size` bytes.
constexpr uint64_t element_bits(int size) {
    return size == 1   ? ~0ull
           : size == 2 ? 0x5555555555555555ull
           : size == 4 ? 0x1111111111111111ull
                       : 0x0101010101010101ull;
}
inline bool is_on(const Predicate &mask, int byte) { return mask.bits[byte >> 6] >> (byte & 63) & 1; }
inline void turn_on(Predicate &mask, int byte) { mask.bits[byte >> 6] |= 1ull << (byte & 63); }
// The number of lanes that are on where those are the first ones; -1 where they are not.
int first_lanes(const Predicate &mask, int size);
int64_t active_lanes(const Predicate &mask, int size);

// `computed` into a register: lanes that are off become 0, or keep what they hold. No mask: all lanes.
void write_lanes(void *dst, const void *computed, const Predicate *mask, int size, bool merges);
inline void write_lanes(const RegisterCall &call, const void *computed) {
    write_lanes(call.dst, computed, call.mask, call.size(), call.word.merges);
}

// What the vector function that is open has issued so far, and what it touched.
class RegisterFunction {
  public:
    void begin(Core &core);
    void end(Core &core);
    bool is_open() const { return open_; }
    void count(Instr instr, Type type, int64_t lanes);
    // `bytes` of UB; not exact: somewhere in there.
    void touch(Role role, Type type, uint64_t address, int64_t bytes, bool exact = true);

  private:
    struct Line { // `count` runs, `step` bytes apart
        uint64_t address;
        int64_t step, count, run;
        bool exact;
    };
    struct Touched {
        Type type;
        int64_t loops = 0, bytes = 0;
        std::vector<Line> lines;
    };
    struct Issued {
        Instr instr;
        Type type;
        int64_t loops, lanes;
    };
    std::vector<Issued> issued_;
    std::array<std::array<int16_t, kTypeCount>, kInstrCount> place_{}; // in issued_, from 1 on
    std::vector<Touched> loads_, stores_;
    bool open_ = false;
};

// Bytes of UB at an address that the kernel formed, checked and noted as read or written.
uint8_t *ub_bytes(const RegisterCall &call, Role role, uint64_t address, int64_t bytes, bool exact = true);

using RegisterSemantics = void (*)(const RegisterCall &call);
#define REGISTER(name, instr, form, semantics) void register_##semantics(const RegisterCall &call);
#include "insight_trace/isa/register.def"
#undef REGISTER

} // namespace insight_trace::engine
