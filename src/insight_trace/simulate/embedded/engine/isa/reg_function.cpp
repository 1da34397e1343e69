// Vector functions made of register instructions: the calls of a kernel, what each is counted as, and the
// function that is issued at the end.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "isa/register_unit.hpp"
#include "late_work.hpp"
#include "machine.hpp"
#include "scalar_memory.hpp"
#include "vector_function.hpp"

namespace insight_trace::engine {

namespace {

// What a form does with its operands. Selections and moves may take registers that nobody wrote to: whether
// their lanes are used, the next instruction says.
enum Use : uint8_t { kNothing = 0, kTouchesMemory = 1, kTakesNumbers = 2, kMakesRegister = 4, kMakesTwo = 8 };
struct Row {
    const char *name;
    Instr cost;
    RegisterSemantics execute;
    uint8_t use;
};
constexpr uint8_t kComputes = kTakesNumbers | kMakesRegister;
constexpr uint8_t kUnary = kComputes, kBinary = kComputes, kScalar = kComputes, kParted = kComputes,
                  kCarry = kComputes, kCarryIn = kComputes, kConvert = kComputes, kTruncate = kComputes,
                  kReduce = kComputes, kWide = kComputes | kMakesTwo, kCompare = kTakesNumbers,
                  kCompareScalar = kTakesNumbers, kMove = kMakesRegister, kFill = kMakesRegister,
                  kBroadcast = kMakesRegister, kSequence = kMakesRegister, kSelect = kMakesRegister,
                  kPick = kMakesRegister, kHalf = kMakesRegister, kSqueeze = kMakesRegister,
                  kUnsqueeze = kMakesRegister, kHistogram = kMakesRegister,
                  kPair = kMakesRegister | kMakesTwo, kMemory = kTouchesMemory, kPredicate = kNothing,
                  kPredicateBinary = kNothing, kPredicateUnary = kNothing, kPredicateHalf = kNothing;
const Row kRows[] = {
#define REGISTER(name, instr, form, semantics) {#name, Instr::instr, register_##semantics, k##form},
#include "insight_trace/isa/register.def"
#undef REGISTER
};

bool loads(RegisterRow row) {
    switch (row) {
    case RegisterRow::vlds:
    case RegisterRow::vsldb:
    case RegisterRow::vldus:
    case RegisterRow::vgather2:
    case RegisterRow::vgather2_bc:
    case RegisterRow::vgatherb:
        return true;
    default:
        return false;
    }
}
bool adds_to_result(RegisterRow row) {
    return row == RegisterRow::vmula || row == RegisterRow::vmadd || row == RegisterRow::vaxpy;
}
bool is_written(const uint8_t *reg) {
    return !reg || memcmp(reg, kUnwrittenRegister, sizeof kUnwrittenRegister) != 0;
}
// What no lane of the instruction gave a number, or a run without numbers did not, is no longer unwritten.
void set_written(uint8_t *reg) {
    if (!is_written(reg)) memset(reg, 0, sizeof kUnwrittenRegister);
}

// A register that nothing was written to holds whatever was there: no result of it can be known.
void refuse_unwritten(const RegisterCall &call, const Row &row) {
    const RegisterRow name = call.word.row;
    if (call.a == call.b && (name == RegisterRow::vxor || name == RegisterRow::vsub)) return; // 0 of anything
    if (is_written(call.a) && is_written(call.b) && (!adds_to_result(name) || is_written(call.dst))) return;
    if (call.mask && !active_lanes(*call.mask, call.size())) return;
    call.core.at = site_of(call.caller);
    call.core.kernel_error("%s takes a vector register that nothing was written to", row.name);
}

void note_written(const RegisterCall &call, const Row &row) {
    const bool loaded = loads(call.word.row);
    if (row.use & kMakesRegister || loaded) set_written(call.dst);
    if (row.use & kMakesTwo) set_written(call.second());
    if (call.word.row == RegisterRow::vlds && call.a) set_written(const_cast<uint8_t *>(call.a));
}

} // namespace

void RegisterCall::unsupported(const char *what) const {
    core.at = site_of(caller);
    core.unsupported("%s: %s (%s, %s)", kRows[static_cast<size_t>(word.row)].name, what, type_name(word.to),
                     type_name(word.from));
}

int first_lanes(const Predicate &mask, int size) {
    const uint64_t pattern = element_bits(size);
    int count = 0;
    bool ended = false;
    for (uint64_t word : mask.bits) {
        const uint64_t off = ~word & pattern;
        if (ended) {
            if (word & pattern) return -1;
            continue;
        }
        if (!off) {
            count += 64 / size;
            continue;
        }
        const int first_off = __builtin_ctzll(off);
        if (word & pattern & ~((1ull << first_off) - 1)) return -1;
        count += first_off / size;
        ended = true;
    }
    return count;
}

int64_t active_lanes(const Predicate &mask, int size) {
    int64_t count = 0;
    for (uint64_t word : mask.bits) count += __builtin_popcountll(word & element_bits(size));
    return count;
}

namespace {
template <class T> void choose(T *dst, const T *computed, const Predicate &mask, bool merges) {
    constexpr int size = sizeof(T);
    for (int lane = 0; lane < kRegister / size; ++lane)
        dst[lane] = is_on(mask, lane * size) ? computed[lane] : merges ? dst[lane] : T(0);
}
} // namespace

void write_lanes(void *dst, const void *computed, const Predicate *mask, int size, bool merges) {
    const int first = mask ? first_lanes(*mask, size) : kRegister / size;
    if (first >= 0) {
        memcpy(dst, computed, size_t(first * size));
        if (!merges) memset(static_cast<uint8_t *>(dst) + first * size, 0, size_t(kRegister - first * size));
        return;
    }
    switch (size) {
    case 1:
        return choose(static_cast<uint8_t *>(dst), static_cast<const uint8_t *>(computed), *mask, merges);
    case 2:
        return choose(static_cast<uint16_t *>(dst), static_cast<const uint16_t *>(computed), *mask, merges);
    case 4:
        return choose(static_cast<uint32_t *>(dst), static_cast<const uint32_t *>(computed), *mask, merges);
    default:
        return choose(static_cast<uint64_t *>(dst), static_cast<const uint64_t *>(computed), *mask, merges);
    }
}

uint8_t *ub_bytes(const RegisterCall &call, Role role, uint64_t address, int64_t bytes, bool exact) {
    Core &core = call.core;
    const uint64_t offset = core.offset_of(Space::UB, address);
    const uint64_t room = core.space_size(Space::UB);
    if (offset > room || uint64_t(bytes) > room - offset) core.at = site_of(call.caller);
    uint8_t *place = core.local(Space::UB, offset, uint64_t(bytes));
    core.registers->touch(role, call.word.to, offset, bytes, exact);
    return place;
}

// --- what a function does

void RegisterFunction::begin(Core &core) {
    open_ = true;
    if (core.late) { // registers lie in the kernel's memory: a function is done when it is issued
        current_machine().interrupt(core);
        core.late->some();
        core.late->drain(PipeId::V);
    } else if (Journal *journal = core.journal()) {
        journal->begin_work(core.rows());
    }
}

void RegisterFunction::count(Instr instr, Type type, int64_t lanes) {
    int16_t &place = place_[static_cast<size_t>(instr)][static_cast<size_t>(type)];
    if (!place) {
        issued_.push_back({instr, type, 0, 0});
        place = static_cast<int16_t>(issued_.size());
    }
    Issued &row = issued_[static_cast<size_t>(place - 1)];
    ++row.loops;
    row.lanes += lanes;
}

void RegisterFunction::touch(Role role, Type type, uint64_t address, int64_t bytes, bool exact) {
    if (bytes <= 0) return;
    std::vector<Touched> &list = role == kReads ? loads_ : stores_;
    auto same = [type](const Touched &one) { return one.type == type; };
    auto found = std::find_if(list.begin(), list.end(), same);
    if (found == list.end()) {
        list.push_back({type, 0, 0, {}});
        found = list.end() - 1;
    }
    Touched &touched = *found;
    ++touched.loops;
    touched.bytes += bytes;
    // loops over several pointers take turns: their lines grow side by side
    constexpr size_t kSideBySide = 8, kMost = 4096;
    const size_t first = touched.lines.size() > kSideBySide ? touched.lines.size() - kSideBySide : 0;
    for (size_t i = touched.lines.size(); i-- > first;) {
        Line &line = touched.lines[i];
        if (line.run != bytes || line.exact != exact) continue;
        const auto step = static_cast<int64_t>(address - line.address);
        if (line.count == 1 && step >= 0 && (step == 0 || step >= bytes)) {
            if (step) {
                line.step = step;
                line.count = 2;
            }
            return;
        }
        if (line.count > 1 && step == line.step * line.count) {
            ++line.count;
            return;
        }
        if (line.count > 1 && step >= 0 && step % line.step == 0 && step / line.step < line.count) return;
    }
    if (touched.lines.size() < kMost) {
        touched.lines.push_back({address, 0, 1, bytes, exact});
        return;
    }
    Line &last = touched.lines.back(); // too many to tell apart: somewhere between the first and the last
    const uint64_t low = std::min(last.address, address),
                   high = std::max(last.address + uint64_t(last.run), address + uint64_t(bytes));
    last = {low, 0, 1, int64_t(high - low), false};
}

void RegisterFunction::end(Core &core) {
    open_ = false;
    for (Issued &row : issued_) {
        place_[static_cast<size_t>(row.instr)][static_cast<size_t>(row.type)] = 0;
        if (row.instr != Instr::VLD && row.instr != Instr::VST && row.instr != Instr::NOP)
            core.function->take(row.instr, row.type, row.loops, row.lanes);
    }
    auto lines_of = [](const Touched &touched) {
        std::vector<VectorFunction::Lines> areas;
        for (const Line &line : touched.lines)
            areas.push_back({lines_at(line.address, line.count, line.step, line.run), line.exact});
        return areas;
    };
    for (const Touched &touched : loads_)
        core.function->take_access(false, touched.type, touched.lines.front().address, touched.loops,
                                   touched.bytes, lines_of(touched));
    for (const Touched &touched : stores_)
        core.function->take_access(true, touched.type, touched.lines.front().address, touched.loops,
                                   touched.bytes, lines_of(touched));
    issued_.clear();
    loads_.clear();
    stores_.clear();
    core.function->flush(core);
    insight_trace_code = {}; // the loops of a function are not the scalar unit's
    if (Journal *journal = core.late ? nullptr : core.journal()) journal->end_call(core.rows());
}

} // namespace insight_trace::engine

using namespace insight_trace;
using namespace insight_trace::engine;

static RegisterFunction &registers_of(Core &core) {
    if (!core.function) core.unsupported("vector registers on a chip that has none");
    if (!core.registers) core.registers = std::make_unique<RegisterFunction>();
    return *core.registers;
}

extern "C" void insight_trace_begin_function(Site at) {
    Core &core = current_core();
    core.at = at.file ? at : site_of(__builtin_return_address(0));
    current_machine().progressed();
    RegisterFunction &function = registers_of(core);
    if (!function.is_open()) function.begin(core);
}

extern "C" void insight_trace_end_function() {
    Core &core = *running_core();
    if (core.registers && core.registers->is_open()) core.registers->end(core);
}

extern "C" void insight_trace_register(RegisterWord word, void *dst, const void *a, const void *b,
                                       const Predicate *mask, uint64_t number) {
    Core &core = *running_core();
    const void *caller = __builtin_return_address(0);
    const Row &row = kRows[static_cast<size_t>(word.row)];
    if (!core.registers || !core.registers->is_open()) { // outside of a function: one of its own
        core.at = site_of(caller);
        registers_of(core).begin(core);
        insight_trace_register(word, dst, a, b, mask, number);
        return core.registers->end(core);
    }
    const RegisterCall call{core,
                            word,
                            static_cast<uint8_t *>(dst),
                            static_cast<const uint8_t *>(a),
                            static_cast<const uint8_t *>(b),
                            mask,
                            number,
                            caller};
    if (row.cost != Instr::NOP) {
        const int size = type_size(word.to);
        core.registers->count(row.cost, word.to, mask ? active_lanes(*mask, size) : kRegister / size);
    }
    if (row.use & kTakesNumbers) refuse_unwritten(call, row);
    if (core.computes || row.use & kTouchesMemory || row.cost == Instr::NOP) row.execute(call);
    note_written(call, row);
}
