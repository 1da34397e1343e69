#include "division.hpp"

#include <ucontext.h>

#include <cstdint>

namespace insight_trace::engine {

#if defined(__x86_64__)
namespace {

// The registers in the order of the processor's encoding.
constexpr int kRegisters[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                              REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

struct Division {
    int length = 0, bits = 0;
    int divisor = -1; // a register, or -1: in memory
    bool is_signed = false;
};

// What stands behind the opcode: a register, or an address of one to six bytes.
int operand_length(const uint8_t *code) {
    const int mode = code[0] >> 6, base = code[0] & 7;
    if (mode == 3) return 1;
    int length = 1 + (base == 4);
    const bool no_base = mode == 0 && (base == 5 || (base == 4 && (code[1] & 7) == 5));
    if (mode == 1) length += 1;
    if (mode == 2 || no_base) length += 4;
    return length;
}

Division decoded(const uint8_t *code) {
    Division found;
    const uint8_t *at = code;
    bool half = false;
    uint8_t rex = 0;
    if (*at == 0x66) half = true, ++at;
    if ((*at & 0xf0) == 0x40) rex = *at++;
    if (*at != 0xf7) return found; // bytes are divided as 32 bits by compilers
    const uint8_t how = at[1] >> 3 & 7;
    if (how != 6 && how != 7) return found;
    found.is_signed = how == 7;
    found.bits = rex & 8 ? 64 : half ? 16 : 32;
    if (at[1] >> 6 == 3) found.divisor = kRegisters[(at[1] & 7) | (rex & 1) << 3];
    found.length = int(at - code) + 1 + operand_length(at + 1);
    return found;
}

} // namespace

bool go_on_after_division(void *context) {
    auto &registers = static_cast<ucontext_t *>(context)->uc_mcontext.gregs;
    const auto *code = reinterpret_cast<const uint8_t *>(registers[REG_RIP]);
    const Division division = decoded(code);
    if (!division.bits) return false;
    const uint64_t mask = division.bits == 64 ? ~0ull : (1ull << division.bits) - 1;
    const uint64_t divided = uint64_t(registers[REG_RAX]) & mask;
    const bool overflow =
        division.is_signed && division.divisor >= 0 && (uint64_t(registers[division.divisor]) & mask) == mask;
    const uint64_t kept = division.bits == 16 ? ~0xffffull : 0; // the upper bits stay
    auto set = [&](int which, uint64_t value) {
        registers[which] = static_cast<greg_t>((uint64_t(registers[which]) & kept) | (value & mask));
    };
    set(REG_RAX, overflow ? divided : 0);
    set(REG_RDX, overflow ? 0 : divided);
    registers[REG_RIP] += division.length;
    return true;
}
#else
bool go_on_after_division(void *) { return false; } // others do not stop
#endif

} // namespace insight_trace::engine
