#include "core.hpp"

#include <algorithm>
#include <cstring>

#include "elements.hpp"
#include "isa/register_unit.hpp"
#include "late_work.hpp"
#include "timing.hpp"
#include "vector_function.hpp"

namespace insight_trace::engine {

static const char *const kSpaceNames[] = {"UB", "L1", "L0A",       "L0B",       "L0C",
                                          "BT", "FB", "L0A scale", "L0B scale", "control"};

const char *space_name(Space space) {
    return space == Space::GM ? "global memory" : kSpaceNames[static_cast<int>(space)];
}

const Region *GlobalMemory::find(uint64_t address) const {
    auto after = std::upper_bound(regions.begin(), regions.end(), address,
                                  [](uint64_t a, const Region &r) { return a < r.address; });
    return after == regions.begin() ? nullptr : &*(after - 1);
}

Core::Core(const CoreIdentity &identity_, const Parameters &parameters_, Records &records, GlobalMemory &gm,
           bool timing_only, uint8_t unwritten)
    : identity(identity_), computes(!timing_only), clock(parameters_, records, identity_.cube),
      parameters(parameters_), tile_op_cost(parameters_.scalar_tile_op),
      function(parameters_.vector_functions ? new VectorFunction(parameters_) : nullptr),
      register_cost_(parameters_.register_write), unwritten_(unwritten), detailed_(records.detailed()),
      call_tiles_(&no_tiles_), records_(records), gm_(gm) {
    const int64_t sizes[] = {parameters.memory_ub,        parameters.memory_l1,
                             parameters.memory_l0a,       parameters.memory_l0b,
                             parameters.memory_l0c,       parameters.memory_bt,
                             parameters.memory_fb,        parameters.memory_l0a_scale,
                             parameters.memory_l0b_scale, parameters.memory_control};
    static_assert(sizeof sizes / sizeof sizes[0] == static_cast<size_t>(Space::GM), "a size for each memory");
    for (int i = 0; i < static_cast<int>(Space::GM); ++i) sizes_[i] = static_cast<uint64_t>(sizes[i] / 1000);
}

Core::~Core() = default;

uint8_t *Core::local(Space space, uint64_t address, uint64_t bytes) {
    int index = static_cast<int>(space);
    looked_ = true;
    if (space == Space::UB && address >= kRegisterFile && function &&
        address + bytes <= kRegisterFile + kRegisterFileBytes) {
        register_file_.resize(kRegisterFileBytes);
        return register_file_.data() + (address - kRegisterFile);
    }
    if (address > sizes_[index] || bytes > sizes_[index] - address)
        kernel_error("%s access of %llu bytes at 0x%llx goes past its %llu bytes", kSpaceNames[index],
                     (unsigned long long)bytes, (unsigned long long)address,
                     (unsigned long long)sizes_[index]);
    if (!memory_[index]) memory_[index].map(identity.index, space, sizes_[index], unwritten_);
    if (records_.journal)
        records_.journal->touch(identity.index, space, memory_[index].get(), sizes_[index], unwritten_,
                                address, bytes);
    return memory_[index].get() + address;
}

uint64_t Core::offset_of(Space space, uint64_t address) const {
    const LocalMemory &memory = memory_[static_cast<int>(space)];
    const uint64_t base = reinterpret_cast<uint64_t>(memory.get());
    if (base && address >= base && address - base < kLocalSpan) return address - base;
    if (address < kLocalSpan) return address;
    const LocalPlace place = local_place(address);
    if (place.known && place.space == space && place.core == identity.index) return place.offset;
    // a library whose pointers are offsets, whatever the memory: all of them stand on UB's address
    if (place.known && plain_offsets && place.space == Space::UB && place.core == identity.index)
        return place.offset;
    if (place.known)
        kernel_error("an operand in %s has an address in %s of core %d", kSpaceNames[static_cast<int>(space)],
                     kSpaceNames[static_cast<int>(place.space)], int(place.core));
    return address; // past every memory: refused with its size where it is used
}

uint8_t *Core::global(uint64_t address, uint64_t bytes, Role role) {
    address &= ~kPastL2;
    const Region *region = last_region_;
    looked_ = true;
    if (!region || address < region->address || address - region->address >= region->padded)
        region = gm_.find(address);
    if (!region) kernel_error("GM access at 0x%llx, below every buffer", (unsigned long long)address);
    uint64_t offset = address - region->address;
    if (offset > region->padded || bytes > region->padded - offset)
        kernel_error("GM access of %llu bytes at 0x%llx: %s ends %lld bytes earlier (%llu bytes from 0x%llx)",
                     (unsigned long long)bytes, (unsigned long long)address, region->name.c_str(),
                     (long long)(offset + bytes - region->padded), (unsigned long long)region->size,
                     (unsigned long long)region->address);
    if (role & kWrites && region->writable && offset + bytes > region->writable)
        kernel_error("GM store of %llu bytes at 0x%llx: %s ends %lld bytes earlier (%llu bytes from 0x%llx)",
                     (unsigned long long)bytes, (unsigned long long)address, region->name.c_str(),
                     (long long)(offset + bytes - region->size), (unsigned long long)region->size,
                     (unsigned long long)region->address);
    last_region_ = region;
    region->used |= role;
    if (region->exact && offset + bytes > region->size)
        remark("reaches %llu bytes past the end of %s", (unsigned long long)(offset + bytes - region->size),
               region->name.c_str());
    if (gm_.watched) gm_.watched->mark(address, bytes, role & kWrites);
    if (records_.journal) records_.journal->touch_global(address, bytes);
    return reinterpret_cast<uint8_t *>(address);
}

void Core::remark(const char *format, ...) {
    for (const Remark &known : remarks)
        if (known.at.file == at.file && known.at.line == at.line) return;
    char text[256];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    remarks.push_back({at, text});
}

void Core::vector(Operation operation, Type type, int repeat, int64_t elements, VectorOperand dst,
                  VectorOperand src0, VectorOperand src1) {
    if (repeat <= 0) return;
    if (operation.rows && operation.executes && computes) {
        execute_vector(operation, type, repeat, elements, dst, src0, src1, false);
        operation.executes = false;
    }
    // the repeat field has eight bits: longer work is several instructions, but where rows are repeats
    constexpr int kMost = 255;
    while (repeat > kMost && !operation.rows) {
        int64_t part = elements * kMost / repeat;
        vector(operation, type, kMost, part, dst, src0, src1);
        auto advance = [](VectorOperand &o) { o.address += uint32_t(o.repeat_stride) * 32u * kMost; };
        advance(dst);
        advance(src0);
        advance(src1);
        elements -= part;
        repeat -= kMost;
    }
    if (operation.executes && computes)
        execute_vector(operation, type, repeat, elements, dst, src0, src1, false);
    issue_vector(operation.instr, type, repeat, elements, dst, src0, src1, false);
}

void Core::issue_vector(Instr instr, Type type, int64_t repeat, int64_t elements, const VectorOperand &dst,
                        const VectorOperand &src0, const VectorOperand &src1, bool counted) {
    if (silent) return;
    if (function) {
        std::vector<Area> reads, writes;
        if (detailed_ && !function->replaces_body())
            gather_areas(instr, type, repeat, elements, {&dst, &src0, &src1}, counted, reads, writes);
        further_.clear();
        function->add(instr, type, repeat, elements, dst, src0, src1, reads, writes);
        if (!function->is_open()) function->flush(*this);
        return;
    }
    Record r = record(instr, PipeId::V, Form::Vector);
    const VectorOperand *const operands[] = {&dst, &src0, &src1};
    describe_vector(r, instr, type, repeat, elements, operands, counted);
    Conflicts conflicts;
    bool some_lanes = counted || elements * type_size(type) < repeat * 256;
    Cost cost = vector_cost(parameters, instr, type, static_cast<int>(repeat), dst, src0, src1, some_lanes,
                            conflicts);
    r.read_conflict = static_cast<uint32_t>(conflicts.read);
    r.write_conflict = static_cast<uint32_t>(conflicts.write);
    clock.issue(PipeId::V, r, cost, at);
}

void Core::vector_count(Operation operation, Type type, int64_t elements, VectorOperand dst,
                        VectorOperand src0, VectorOperand src1) {
    if (elements <= 0) return;
    set_register(PipeId::V, 1); // count mode on
    set_register(PipeId::V, static_cast<uint64_t>(elements));
    vector_counted(operation, type, elements, dst, src0, src1);
    set_register(PipeId::V, 0); // back to the bit mask
    set_register(PipeId::V, ~0ull);
}

void Core::vector_counted(Operation operation, Type type, int64_t elements, VectorOperand dst,
                          VectorOperand src0, VectorOperand src1) {
    if (elements <= 0) return;
    int64_t per_repeat = 256 / type_size(type);
    if (operation.executes && computes) execute_vector(operation, type, 0, elements, dst, src0, src1, true);
    issue_vector(operation.instr, type, (elements + per_repeat - 1) / per_repeat, elements, dst, src0, src1,
                 true);
}

void Core::transfer(Instr instr, Type type, const Area &gm, const Area &local, int64_t bursts,
                    int64_t burst_bytes, int64_t gm_step) {
    if (silent) return;
    if (bursts <= 0 || burst_bytes <= 0) return;
    if (gm.address & kPastL2) {
        Area place = gm;
        place.address &= ~kPastL2;
        past_l2_ = true;
        transfer(instr, type, place, local, bursts, burst_bytes, gm_step);
        past_l2_ = false;
        return;
    }
    PipeId pipe = instr_pipe(instr);
    Record r = record(instr, pipe, Form::Transfer);
    Geometry geometry;
    geometry.form = r.form;
    geometry.type = static_cast<uint8_t>(type);
    geometry.repeat = static_cast<uint32_t>(bursts);
    geometry.bytes = bursts * burst_bytes;
    geometry.burst_bytes = burst_bytes;
    geometry.gm_step = gm_step;
    geometry.atomic = atomic_store;
    const Ends ends = ends_of(instr);
    const bool stores = ends.to == Space::GM;
    geometry.looks_at_words = looks_at_words && !stores;
    r.geometry = geometry_of(geometry);
    const Area &there = gm.parts ? gm : lines_at(gm.address, bursts, gm_step, burst_bytes);
    operand(stores ? 0 : 1, stores ? kWrites : kReads, Space::GM, type, there, 0);
    operand(stores ? 1 : 0, stores ? kReads : kWrites, stores ? ends.from : ends.to, type, local,
            geometry.bytes);
    take_further_operands();
    Access access;
    const Cost cost = transfer_cost(parameters, instr, gm.address, bursts, burst_bytes, gm_step, access);
    access.atomic = stores && (atomic_store || atomic_type);
    access.past_l2 = past_l2_;
    // pieces of one load into UB come one after the other; the next op does not wait for them
    if (in_call_ && pieces_++ && pipe == PipeId::MTE2 && ends.to == Space::UB && access.turn == Turn::Free)
        access.turn = Turn::Follows;
    clock.issue(pipe, r, cost, at);
}

void Core::move(Instr instr, Type type, const Area &dst, const Area &src, int64_t repeat, int64_t bytes,
                const Space *into) {
    if (silent) return;
    if (bytes <= 0) return;
    PipeId pipe = instr_pipe(instr);
    if (function && pipe == PipeId::V) {
        auto to = static_cast<uint32_t>(dst.address), from = static_cast<uint32_t>(src.address);
        also(kWrites, Space::UB, type, dst.parts ? dst : lines_at(to, 1, 0, bytes));
        also(kReads, Space::UB, type, src.parts ? src : lines_at(from, 1, 0, bytes));
        issue_vector(instr, type, (bytes + 255) / 256, bytes / type_size(type), VectorOperand(to).elsewhere(),
                     VectorOperand(from).elsewhere(), {}, false);
        return;
    }
    Record r = record(instr, pipe, Form::Local);
    r.geometry = moved_geometry(r, type, repeat, bytes);
    const Ends ends = ends_of(instr);
    operand(0, kWrites, into ? *into : ends.to, type, dst, bytes);
    if (instr != Instr::SET_L1_2D) operand(1, kReads, ends.from, type, src, bytes);
    take_further_operands();
    clock.issue(pipe, r, move_cost(parameters, instr, repeat, bytes), at);
}

// The blocks of the accumulator that the running instruction has under its unit flag.
UnitUse Core::unit_of(const Area &area, int64_t bytes) {
    if (!unit_flag_) return {};
    uint64_t end = static_cast<uint64_t>(bytes);
    for (int i = 0; i < area.parts; ++i) {
        const Traversal &walk = area.walk[i];
        int64_t last = walk.offset + walk.run;
        for (int d = 0; d < 4; ++d) last += std::max<int64_t>(0, walk.step[d] * (int64_t(walk.count[d]) - 1));
        end = i ? std::max(end, static_cast<uint64_t>(last)) : static_cast<uint64_t>(last);
    }
    const UnitUse unit = UnitUse::of(unit_flag_, area.address, end);
    const uint32_t until = std::max(used_unit.end(), unit.end());
    const uint16_t first = used_unit ? std::min(used_unit.first, unit.first) : unit.first;
    used_unit = {first, static_cast<uint16_t>(until - first), used_unit.flips || unit.flips};
    return unit;
}

void Core::multiply(Type type, int64_t m, int64_t k, int64_t n, const Area &dst, const Area &left,
                    const Area &right) {
    if (silent) return;
    Record r = record(Instr::MMAD, PipeId::M, Form::Multiply);
    Geometry geometry;
    geometry.form = r.form;
    geometry.type = static_cast<uint8_t>(type);
    geometry.m = static_cast<uint32_t>(m);
    geometry.k = static_cast<uint32_t>(k);
    geometry.n = static_cast<uint32_t>(n);
    geometry.unit_flag = static_cast<uint16_t>(unit_flag_);
    r.geometry = geometry_of(geometry);
    const int64_t size = type_size(type);
    const bool whole_numbers = type == Type::I8 || type == Type::I4;
    operand(0, kWrites, Space::L0C, whole_numbers ? Type::I32 : Type::F32, dst, m * n * 4);
    operand(1, kReads, Space::L0A, type, left, m * k * size);
    operand(2, kReads, Space::L0B, type, right, k * n * size);
    take_further_operands();
    Cost cost = multiply_cost(parameters, type, m, k, n);
    cost.unit = unit_of(dst, m * n * 4);
    clock.issue(PipeId::M, r, cost, at);
}

void Core::fixpipe(Instr instr, Type type, const Area &gm, const Area &dst, const Area &src, int64_t rows,
                   int64_t cols, int64_t bytes, bool to_nd, int64_t gm_step) {
    if (silent) return;
    if (gm.address & kPastL2) {
        Area place = gm;
        place.address &= ~kPastL2;
        past_l2_ = true;
        fixpipe(instr, type, place, dst, src, rows, cols, bytes, to_nd, gm_step);
        past_l2_ = false;
        return;
    }
    const bool out = gm.address != 0;
    Record r = record(instr, PipeId::FIX, out ? Form::Transfer : Form::Local);
    r.geometry = moved_geometry(r, type, rows, bytes);
    operand(0, kWrites, out ? Space::GM : ends_of(instr).to, type, out ? gm : dst, bytes);
    operand(1, kReads, Space::L0C, Type::F32, src, rows * cols * 4);
    take_further_operands();
    Access access;
    if (!gm_step) gm_step = bytes / std::max<int64_t>(1, rows);
    Cost cost = fixpipe_cost(parameters, instr, rows, cols, bytes, to_nd, gm.address, gm_step, access);
    cost.unit = unit_of(src, rows * cols * 4);
    access.unit = cost.unit.packed();
    access.atomic = out && (atomic_store || atomic_type);
    access.past_l2 = past_l2_;
    clock.issue(PipeId::FIX, r, cost, at);
}

void Core::set_register(PipeId pipe, uint64_t value) {
    if (silent) return;
    // masks and modes are operands inside a function
    if (pipe == PipeId::V && function && function->is_open()) return;
    Record r = record(Instr::MOV_SPR_XN, pipe, Form::Plain);
    r.a = value;
    clock.issue(pipe, r, {register_cost_, register_cost_, 0, Stall::None}, at);
}

void Core::scalar(Instr instr, uint64_t value, int64_t milli, const Access *access) {
    if (silent) return;
    if (function && function->replaces_body()) return further_.clear();
    Record r = record(instr, PipeId::S, Form::Scalar);
    r.a = value;
    take_further_operands();
    Cost cost{milli, milli, 0, Stall::None};
    cost.access = access;
    clock.issue(PipeId::S, r, cost, at);
}

void Core::scalar_access(Instr instr, Space space, uint64_t address, int64_t bytes, int64_t milli,
                         const Access *access) {
    if (silent) return;
    const bool stores = instr != Instr::LD_XD_XN_IMM && instr != Instr::LD_DEV;
    if (!bytes) {
        const CallTile *tile = find_tile(space, address, !stores);
        bytes = tile ? tile->size : 4;
    }
    if (address < kRegisterFile || space != Space::UB)
        also(stores ? kWrites : kReads, space, Type::U8, lines_at(address, 1, 0, bytes));
    // loads of one block are issued before the first value is used
    const bool loads = space == Space::UB && !stores;
    looked |= loads;
    scalar(instr, address, loads && loads_overlap_ ? std::min(milli, parameters.scalar_issue) : milli,
           access);
    loads_overlap_ = loads;
}

// Pieces of code that the core enters for the first time come from memory.
void Core::fetch(const std::array<uint64_t, 4> &pieces) {
    bool fresh = false;
    for (size_t i = 0; i < pieces.size(); ++i) fresh |= (pieces[i] & ~fetched_[i]) != 0;
    if (!fresh) return;
    auto in = [](const std::array<uint64_t, 4> &set, size_t piece) {
        return set[piece / 64] >> piece % 64 & 1;
    };
    const size_t page = static_cast<size_t>(std::max<int64_t>(1, parameters.page_small / 1000 / kCodePiece));
    int64_t count = 0, pages = 0;
    for (size_t first = 0; first < 64 * pieces.size(); first += page) {
        bool known = false, entered = false;
        for (size_t i = first; i < first + page && i < 64 * pieces.size(); ++i) {
            known |= in(fetched_, i);
            entered |= in(pieces, i);
            count += in(pieces, i) && !in(fetched_, i);
        }
        pages += entered && !known;
    }
    for (size_t i = 0; i < pieces.size(); ++i) fetched_[i] |= pieces[i];
    if (!silent) clock.fetch(count * parameters.code_fill, pages);
}

void Core::take_code() {
    CodeCounts &code = insight_trace_code;
    const int64_t milli = code.plain * parameters.scalar_code + code.multiplies * parameters.scalar_multiply +
                          code.divides * parameters.scalar_divide + code.floats * parameters.scalar_float +
                          code.float_divides * parameters.scalar_float_divide;
    const int64_t count = code.plain + code.multiplies + code.divides + code.floats + code.float_divides;
    const uint64_t where = code.loop ? code.loop : code.where; // a loop has most of it
    if (parameters.code_fill) fetch(code.fetched);
    code.clear();
    loads_overlap_ = false;
    constexpr int64_t kWorthARow = 32000; // less is the gap before the next instruction
    if (milli < kWorthARow) return scalar_work(milli);
    const Site here = at, found = site_in_kernel(where);
    if (found.file) at = found;
    scalar(Instr::SCALAR_CODE, static_cast<uint64_t>(count), milli);
    at = here;
}

void Core::barrier(PipeId pipe) {
    if (silent) return;
    if (pipe == PipeId::V && function && function->is_open()) return;
    Record r = record(Instr::BAR, pipe == PipeId::ALL ? PipeId::S : pipe, Form::Barrier);
    r.a = static_cast<uint64_t>(pipe);
    clock.barrier(pipe, r, at);
}

void Core::unsupported(const char *format, ...) const {
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    throw Failure(Fault::NotSupported, at, text);
}

void Core::kernel_error(const char *format, ...) const {
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    throw Failure(Fault::Kernel, at, text);
}

} // namespace insight_trace::engine
