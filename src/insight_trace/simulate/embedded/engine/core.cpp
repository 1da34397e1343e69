#include "core.hpp"

#include <algorithm>
#include <cstring>

#include "elements.hpp"
#include "timing.hpp"
#include "vector_function.hpp"

namespace insight_trace::engine {

static const char *const kSpaceNames[] = {"UB", "L1", "L0A",       "L0B",       "L0C",
                                          "BT", "FB", "L0A scale", "L0B scale", "control"};

const Region *GlobalMemory::find(uint64_t address) const {
    auto after = std::upper_bound(regions.begin(), regions.end(), address,
                                  [](uint64_t a, const Region &r) { return a < r.address; });
    return after == regions.begin() ? nullptr : &*(after - 1);
}

Core::Core(const CoreIdentity &identity_, const Parameters &parameters_, Records &records, GlobalMemory &gm,
           bool timing_only)
    : identity(identity_), computes(!timing_only), clock(parameters_, records), parameters(parameters_),
      tile_op_cost(parameters_.scalar_tile_op),
      function(parameters_.vector_functions ? new VectorFunction(parameters_) : nullptr),
      register_cost_(parameters_.register_write), records_(records), gm_(gm) {
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
    if (address > sizes_[index] || bytes > sizes_[index] - address)
        kernel_error("%s access of %llu bytes at 0x%llx goes past its %llu bytes", kSpaceNames[index],
                     (unsigned long long)bytes, (unsigned long long)address,
                     (unsigned long long)sizes_[index]);
    if (!memory_[index])
        memory_[index].reset(new uint8_t[sizes_[index]]()); // zeroed, pages come when touched
    return memory_[index].get() + address;
}

uint8_t *Core::global(uint64_t address, uint64_t bytes) {
    const Region *region = last_region_;
    if (!region || address < region->address || address - region->address >= region->padded)
        region = gm_.find(address);
    if (!region) kernel_error("GM access at 0x%llx, below every buffer", (unsigned long long)address);
    uint64_t offset = address - region->address;
    if (offset > region->padded || bytes > region->padded - offset)
        kernel_error("GM access of %llu bytes at 0x%llx: %s ends %lld bytes earlier (%llu bytes from 0x%llx)",
                     (unsigned long long)bytes, (unsigned long long)address, region->name.c_str(),
                     (long long)(offset + bytes - region->padded), (unsigned long long)region->size,
                     (unsigned long long)region->address);
    last_region_ = region;
    if (region->exact && offset + bytes > region->size)
        remark("reaches %llu bytes past the end of %s", (unsigned long long)(offset + bytes - region->size),
               region->name.c_str());
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

Record Core::record(Instr instr, PipeId pipe, Form form) const {
    Record r{};
    r.site = records_.site(at, instr, pipe);
    r.core = identity.index;
    r.form = static_cast<uint8_t>(form);
    r.partner = kNoPartner;
    return r;
}

static uint32_t packed(uint32_t address, uint8_t above) {
    return (address & 0xffffffu) | (uint32_t(above) << 24);
}

void Core::vector(Instr instr, Type type, int repeat, int64_t elements, VectorOperand dst, VectorOperand src0,
                  VectorOperand src1) {
    if (repeat <= 0) return;
    // the repeat field has eight bits: longer work is several instructions
    constexpr int kMost = 255;
    while (repeat > kMost) {
        int64_t part = elements * kMost / repeat;
        vector(instr, type, kMost, part, dst, src0, src1);
        auto advance = [](VectorOperand &o) { o.address += uint32_t(o.repeat_stride) * 32u * kMost; };
        advance(dst);
        advance(src0);
        advance(src1);
        elements -= part;
        repeat -= kMost;
    }
    issue_vector(instr, type, repeat, elements, dst, src0, src1, false);
}

void Core::issue_vector(Instr instr, Type type, int64_t repeat, int64_t elements, const VectorOperand &dst,
                        const VectorOperand &src0, const VectorOperand &src1, bool counted) {
    if (function) {
        function->add(instr, type, repeat, elements, dst, src0, src1);
        if (!function->is_open()) function->flush(*this);
        return;
    }
    Record r = record(instr, PipeId::V, Form::Vector);
    r.dst = packed(dst.address, static_cast<uint8_t>(type));
    r.src0 = packed(src0.address, src0.used);
    r.src1 = packed(src1.address, src1.used);
    r.repeat = static_cast<uint16_t>(std::min<int64_t>(repeat, 65535));
    r.bytes = static_cast<uint32_t>(elements);
    auto byte = [](uint16_t v) { return uint64_t(std::min<uint16_t>(v, 255)); };
    r.a = byte(dst.block_stride) | byte(src0.block_stride) << 8 | byte(src1.block_stride) << 16 |
          byte(dst.repeat_stride) << 24 | byte(src0.repeat_stride) << 32 | byte(src1.repeat_stride) << 40;
    Conflicts conflicts;
    bool some_lanes = counted || elements * type_size(type) < repeat * 256;
    Cost cost = vector_cost(parameters, instr, type, static_cast<int>(repeat), dst, src0, src1, some_lanes,
                            conflicts);
    r.read_conflict = static_cast<uint16_t>(std::min<int64_t>(conflicts.read, 65535));
    r.partner = static_cast<uint32_t>(conflicts.write);
    clock.issue(PipeId::V, r, cost, at);
}

void Core::vector_count(Instr instr, Type type, int64_t elements, VectorOperand dst, VectorOperand src0,
                        VectorOperand src1) {
    if (elements <= 0) return;
    set_register(PipeId::V, 1); // count mode on
    set_register(PipeId::V, static_cast<uint64_t>(elements));
    vector_counted(instr, type, elements, dst, src0, src1);
    set_register(PipeId::V, 0); // back to the bit mask
    set_register(PipeId::V, ~0ull);
}

void Core::vector_counted(Instr instr, Type type, int64_t elements, VectorOperand dst, VectorOperand src0,
                          VectorOperand src1) {
    if (elements <= 0) return;
    int64_t per_repeat = 256 / type_size(type);
    issue_vector(instr, type, (elements + per_repeat - 1) / per_repeat, elements, dst, src0, src1, true);
}

void Core::transfer(Instr instr, Type type, uint64_t gm, uint32_t local, int64_t bursts, int64_t burst_bytes,
                    int64_t gm_step) {
    if (bursts <= 0 || burst_bytes <= 0) return;
    PipeId pipe = instr_pipe(instr);
    Record r = record(instr, pipe, Form::Transfer);
    r.a = gm;
    r.dst = packed(local, static_cast<uint8_t>(type));
    r.repeat = static_cast<uint16_t>(std::min<int64_t>(bursts, 65535));
    r.bytes = static_cast<uint32_t>(std::min<int64_t>(bursts * burst_bytes, 0xffffffff));
    Access access;
    clock.issue(pipe, r, transfer_cost(parameters, instr, gm, bursts, burst_bytes, gm_step, access), at);
}

void Core::move(Instr instr, Type type, uint32_t dst, uint32_t src, int64_t repeat, int64_t bytes) {
    if (bytes <= 0) return;
    PipeId pipe = instr_pipe(instr);
    if (function && pipe == PipeId::V) {
        issue_vector(instr, type, (bytes + 255) / 256, bytes / type_size(type), dst, src, {}, false);
        return;
    }
    Record r = record(instr, pipe, Form::Local);
    r.dst = packed(dst, static_cast<uint8_t>(type));
    r.src0 = packed(src, 0);
    r.repeat = static_cast<uint16_t>(std::min<int64_t>(repeat, 65535));
    r.a = static_cast<uint64_t>(bytes);
    clock.issue(pipe, r, move_cost(parameters, instr, repeat, bytes), at);
}

void Core::multiply(Type type, int64_t m, int64_t k, int64_t n, uint32_t dst, uint32_t left, uint32_t right) {
    Record r = record(Instr::MMAD, PipeId::M, Form::Multiply);
    r.dst = packed(dst, static_cast<uint8_t>(type));
    r.src0 = packed(left, 1);
    r.src1 = packed(right, 1);
    r.a = uint64_t(m) | uint64_t(k) << 20 | uint64_t(n) << 40;
    clock.issue(PipeId::M, r, multiply_cost(parameters, type, m, k, n), at);
}

void Core::fixpipe(Instr instr, Type type, uint64_t gm, uint32_t dst, uint32_t src, int64_t rows,
                   int64_t cols, int64_t bytes, bool to_nd, int64_t gm_step) {
    Record r = record(instr, PipeId::FIX, gm ? Form::Transfer : Form::Local);
    r.a = gm ? gm : static_cast<uint64_t>(bytes);
    r.dst = packed(gm ? src : dst, static_cast<uint8_t>(type));
    r.src0 = packed(src, 0);
    r.repeat = static_cast<uint16_t>(std::min<int64_t>(rows, 65535));
    r.bytes = gm ? static_cast<uint32_t>(bytes) : 0;
    Access access;
    if (!gm_step) gm_step = bytes / std::max<int64_t>(1, rows);
    clock.issue(PipeId::FIX, r,
                fixpipe_cost(parameters, instr, rows, cols, bytes, to_nd, gm, gm_step, access), at);
}

void Core::set_register(PipeId pipe, uint64_t value) {
    // masks and modes are operands inside a function
    if (pipe == PipeId::V && function && function->is_open()) return;
    Record r = record(Instr::MOV_SPR_XN, pipe, Form::Plain);
    r.a = value;
    clock.issue(pipe, r, {register_cost_, register_cost_, 0, Stall::None}, at);
}

void Core::scalar(Instr instr, uint64_t value, int64_t milli, const Access *access) {
    if (function && function->replaces_body()) return;
    Record r = record(instr, PipeId::S, Form::Scalar);
    r.a = value;
    Cost cost{milli, milli, 0, Stall::None};
    cost.access = access;
    clock.issue(PipeId::S, r, cost, at);
}

void Core::barrier(PipeId pipe) {
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
