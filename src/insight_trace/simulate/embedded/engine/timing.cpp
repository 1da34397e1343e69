#include "timing.hpp"

#include <algorithm>

#include "banks.hpp"
#include "elements.hpp"

namespace insight_trace::engine {

// Two-source arithmetic, which is dispatched more slowly when not all lanes take part.
static bool minds_its_mask(Instr instr) {
    switch (instr) {
    case Instr::VADD:
    case Instr::VSUB:
    case Instr::VMUL:
    case Instr::VDIV:
    case Instr::VMAX:
    case Instr::VMIN:
    case Instr::VAND:
    case Instr::VOR:
        return true;
    default:
        return false;
    }
}

// A vector instruction takes head + repeats × the slowest of: its arithmetic, its reads, its writes.
Cost vector_cost(const Parameters &parameters, Instr instr, Type type, int repeat, const VectorOperand &dst,
                 const VectorOperand &src0, const VectorOperand &src1, bool some_lanes,
                 Conflicts &conflicts) {
    const VectorCost &cost = parameters.vector(instr, type);
    BankPattern banks = bank_pattern(dst, src0, src1);
    int64_t own = cost.slope;
    int64_t reading = banks.read_turns > 1 ? banks.read_turns * parameters.bank_turn : 0;
    int64_t writing = banks.write_turns > 1 ? banks.write_turns * parameters.bank_turn : 0;
    int64_t mixed = banks.read_write ? parameters.bank_read_write : 0;
    int64_t slope = std::max({own, reading, writing, mixed});
    conflicts.read = (std::max(own, reading) - own) * repeat / 1000;
    conflicts.write = (std::max({own, writing, mixed}) - own) * repeat / 1000;
    int64_t body = slope * repeat;
    if (some_lanes && minds_its_mask(instr)) body += parameters.mask_dispatch;
    Stall why = slope > own ? Stall::Bank : Stall::None;
    return {std::max<int64_t>(1000, body + cost.gap), std::max<int64_t>(1000, body + cost.head), 0, why};
}

// Cycles for one transfer by its size: straight lines between the points of the chip's table.
static int64_t on_curve(const MoveCost &cost, int64_t bytes) {
    const CurvePoint *points = cost.curve;
    if (bytes <= points[0].bytes) return points[0].milli;
    int last = cost.points - 1;
    int i = 1;
    while (i < last && bytes > points[i].bytes) ++i;
    int64_t run = points[i].bytes - points[i - 1].bytes, rise = points[i].milli - points[i - 1].milli;
    return points[i - 1].milli + (bytes - points[i - 1].bytes) * rise / run;
}

// The time on the data channel, and the whole time of one transfer that finds it free.
static Cost moved(const MoveCost &cost, int64_t bursts, int64_t bytes) {
    int64_t data = bytes * 1000000 / std::max<int64_t>(1, cost.rate);
    data = std::max(data, cost.per_burst * bursts);
    if (cost.burst_rate)
        data = std::max(data, bytes / std::max<int64_t>(1, bursts) * 1000000 / cost.burst_rate);
    int64_t whole = cost.points ? std::max(on_curve(cost, bytes), data) : cost.latency + data;
    whole = std::max({whole, cost.floor, int64_t(1000)});
    int64_t occupy = cost.interval ? std::min(cost.interval, whole) : whole;
    return {occupy, whole, std::max<int64_t>(1, std::min(data, whole)), Stall::None};
}

static bool writes_memory(Instr instr) {
    return instr == Instr::MOV_UB_TO_OUT || instr == Instr::MOV_UB_TO_OUT_ALIGN ||
           instr == Instr::MOV_L1_TO_OUT || instr == Instr::FIX_L0C_TO_OUT;
}

static Access access_of(Instr instr, uint64_t gm, int64_t bursts, int64_t burst_bytes, int64_t gm_step) {
    Access access;
    access.address = gm;
    access.bursts = static_cast<uint32_t>(std::min<int64_t>(bursts, UINT32_MAX));
    access.burst_bytes = static_cast<uint32_t>(std::min<int64_t>(burst_bytes, UINT32_MAX));
    access.step = gm_step;
    access.write = writes_memory(instr);
    access.to_l1 = instr == Instr::MOV_OUT_TO_L1 || instr == Instr::MOV_OUT_TO_L1_MULTI_ND2NZ;
    return access;
}

Cost transfer_cost(const Parameters &parameters, Instr instr, uint64_t gm, int64_t bursts,
                   int64_t burst_bytes, int64_t gm_step, Access &access) {
    const MoveCost &cost = parameters.move(instr);
    // GM moves whole blocks of 32 bytes; a start within a sector of L2 costs bandwidth
    int64_t bytes = bursts * ((burst_bytes + 31) / 32 * 32);
    access = access_of(instr, gm, bursts, burst_bytes, gm_step);
    // rows that start off 32 bytes are put together from two blocks each
    const bool ragged = instr == Instr::MOV_OUT_TO_L1_MULTI_ND2NZ && bursts > 1 && gm_step % 32 != 0;
    const auto aligned = static_cast<uint64_t>(std::max<int64_t>(1, parameters.gm_aligned / 1000));
    if ((gm % aligned || ragged) && bytes > parameters.gm_unaligned_from / 1000) {
        const int64_t more = ragged ? parameters.gm_unaligned_cost_l1 : parameters.gm_unaligned_cost;
        bytes = bytes * more / 1000;
        access.weight = static_cast<uint16_t>(more);
    }
    Cost result = moved(cost, bursts, bytes);
    access.data = result.channel;
    access.piece = static_cast<uint16_t>(cost.per_burst);
    access.missed_piece = static_cast<uint16_t>(std::max(cost.per_burst, cost.missed_burst));
    access.turn = cost.interval == 0 ? Turn::Holds : Turn::Free;
    access.in_flight = static_cast<uint8_t>(std::min<int64_t>(cost.in_flight, UINT8_MAX));
    result.access = &access;
    return result;
}

Cost move_cost(const Parameters &parameters, Instr instr, int64_t repeat, int64_t bytes) {
    const MoveCost &cost = parameters.move(instr);
    Cost result = moved(cost, repeat, bytes);
    result.occupy = result.latency + cost.interval; // on-chip moves follow each other
    result.channel = 0;
    return result;
}

Cost multiply_cost(const Parameters &parameters, Type type, int64_t m, int64_t k, int64_t n) {
    // a box is 32 bytes along k
    const bool four_bits = type == Type::F4E2M1 || type == Type::F4E1M2 || type == Type::I4;
    int64_t k_box = four_bits ? 64 : 32 / type_size(type);
    int64_t fractals = ((m + 15) / 16) * ((k + k_box - 1) / k_box) * ((n + 15) / 16);
    int64_t passes = type == Type::F32      ? parameters.mmad_passes_f32
                     : type == Type::F4E2M1 ? parameters.mmad_passes_e2m1
                                            : 1000;
    int64_t body = fractals * passes;
    return {body + parameters.mmad_gap, body + parameters.mmad_head, 0, Stall::None};
}

Cost fixpipe_cost(const Parameters &parameters, Instr instr, int64_t rows, int64_t cols, int64_t bytes,
                  bool to_nd, uint64_t gm, int64_t gm_step, Access &access) {
    const MoveCost &cost = parameters.move(instr);
    Cost result = moved(cost, rows, bytes);
    int64_t data = result.channel;
    if (to_nd) {
        // row by row: the slower of a row's start and its bytes, and one more pass for each odd part of its
        // blocks
        const int64_t row_bytes = bytes / std::max<int64_t>(1, rows);
        int64_t row = std::max(parameters.fixpipe_row,
                               row_bytes * 1000000 / std::max<int64_t>(1, parameters.fixpipe_rate));
        int64_t odd = std::max<int64_t>(1, (cols + 7) / 8);
        while (odd % 2 == 0) odd /= 2;
        data = rows * (row + parameters.fixpipe_pass * (odd - 1));
        result.latency = parameters.fixpipe_head + data;
    }
    result.occupy = result.latency;
    result.channel = 0;
    if (instr == Instr::FIX_L0C_TO_OUT) {
        access = access_of(instr, gm, rows, bytes / std::max<int64_t>(1, rows), gm_step);
        access.data = std::max<int64_t>(1, data);
        access.turn = Turn::Holds;
        result.access = &access;
    }
    return result;
}

} // namespace insight_trace::engine
