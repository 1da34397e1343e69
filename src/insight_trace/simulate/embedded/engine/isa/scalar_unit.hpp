// What the scalar unit does between instructions of other pipes: its own loads and stores, registers that it
// fills, and numbers as the bits of a type.
#pragma once

#include "core.hpp"

namespace insight_trace::engine {

// What it loads; 0 where nothing is computed.
uint64_t scalar_load(Core &core, uint64_t address, int bytes, Space space = Space::UB);
void scalar_store(Core &core, uint64_t address, uint64_t value, int bytes, Space space = Space::UB);
// The same where a condition on data holds. It is issued either way: timing alone has no data.
void scalar_store_if(Core &core, bool holds, uint64_t address, uint64_t value, int bytes);
// One element that a load of the 950 spreads over a register: part of the load, no access of the scalar unit.
uint64_t spread_value(Core &core, uint64_t address, int bytes);
// What an instruction of the vector unit would give for one element: the scalar unit has the same arithmetic.
uint64_t scalar_result(Core &core, Instr instr, Type type, uint64_t a, uint64_t b);

// CMPMASK from 16 bytes of UB.
void load_compare_mask(Core &core, uint32_t address);
// Eight places in UB for an address register; with functions they are operands.
void set_address_register(Core &core, int which, const uint64_t *places);
// RSVD_CNT: how many elements the last squeeze kept.
int64_t kept_count(Core &core);

// A number in a type, as its bits, and back. Integers keep their low bits.
uint64_t bits_of_number(Type type, double number);
double number_of_bits(Type type, uint64_t bits);
uint64_t negated_bits(Type type, uint64_t bits);        // by way of a float, held at the largest integer
uint64_t scalar_bits(const Operand &scalar, Type type); // a scalar operand in the tile's type

} // namespace insight_trace::engine
