// What an instruction is to the order of things.
#include <algorithm>

#include "checker.hpp"
#include "walks.hpp"

namespace insight_trace::engine::check {

// False for what neither touches memory nor orders anything.
bool Checker::step_of(uint32_t row, Step &step) const {
    const Record &r = records_[row];
    const SiteRow &site = records_.sites()[r.site];
    step = {row, r.core, site.pipe, StepKind::Work};
    switch (site.instr) {
    case Instr::SET_FLAG:
    case Instr::WAIT_FLAG:
        step.kind = site.instr == Instr::SET_FLAG ? StepKind::Set : StepKind::Wait;
        step.from = static_cast<PipeId>(r.a & 0xff);
        step.to = static_cast<PipeId>(r.a >> 8 & 0xff);
        step.event = static_cast<int>(r.a >> 16);
        if (step.event < kEvents) step.event &= 7; // the hardware keeps three bits
        return true;
    case Instr::BAR:
        step.kind = StepKind::Barrier;
        step.pipe = static_cast<PipeId>(r.a);
        return true;
    case Instr::SET_CROSS_CORE:
        step.kind = StepKind::CrossSet;
        step.mode = static_cast<int>(r.a >> 4 & 3);
        step.event = static_cast<int>(r.a >> 8 & 15);
        return true;
    case Instr::WAIT_FLAG_DEV:
        step.kind = StepKind::CrossWait;
        step.event = static_cast<int>(r.a);
        if (!options_.vector_in_order) step.pipe = PipeId::S; // there the whole core waits
        return true;
    case Instr::SET_INTRA_BLOCK:
        step.kind = StepKind::IntraSet;
        step.event = static_cast<int>(r.a);
        return true;
    case Instr::WAIT_INTRA_BLOCK:
        step.kind = StepKind::IntraWait;
        step.event = static_cast<int>(r.a);
        return true;
    case Instr::ST_DEV:
    case Instr::ST_ATOMIC:
        step.kind = StepKind::Publish;
        step.address = r.a;
        return true;
    case Instr::LD_DEV:
        step.kind = StepKind::Observe;
        step.address = r.a;
        return true;
    case Instr::DCCI:
        return true;
    default:
        if (site.pipe == PipeId::M || site.pipe == PipeId::FIX) look_for_unit_flag(r, step);
        return operand_end(row) > r.operands;
    }
}

void Checker::look_for_unit_flag(const Record &r, Step &step) const {
    if (r.geometry == kNoGeometry) return;
    const uint32_t flag = records_.geometries.rows()[r.geometry].unit_flag;
    if (!flag) return;
    uint64_t begin = ~uint64_t(0), end = 0;
    for (uint32_t i = r.operands; i < operand_end(step.row); ++i) {
        const OperandRow &operand = records_.operand(i);
        const Footprint &footprint = records_.footprints.rows()[operand.footprint];
        if (footprint.memory != static_cast<uint8_t>(Space::L0C)) continue;
        for_each_run(footprint.walk, operand.address, 1, [&](uint64_t at, uint64_t bytes) {
            begin = std::min(begin, at);
            end = std::max(end, at + bytes);
        });
    }
    if (begin < end) step.unit = UnitUse::of(flag, begin, end - begin);
}

} // namespace insight_trace::engine::check
