// What the instruction set of the chip excludes, read off one instruction at a time.
#include "../elements.hpp"
#include "checker.hpp"

namespace insight_trace::engine::check {

void Checker::look_at_contract(uint32_t row) {
    const Record &r = records_[row];
    const SiteRow &site = records_.sites()[r.site];
    auto broken = [&](Rule rule, int64_t value) {
        report({Kind::Contract, Severity::Error, kNoPartner, row, 0, r.core, false, false,
                static_cast<uint64_t>(rule), static_cast<uint64_t>(value)});
    };
    const auto form = static_cast<Form>(r.form);
    const bool works = form != Form::Flag && form != Form::Barrier && form != Form::Plain;
    const bool of_cube = site.pipe == PipeId::M || site.pipe == PipeId::MTE1 || site.pipe == PipeId::FIX;
    if (works && (cores_[r.core].cube ? site.pipe == PipeId::V : of_cube))
        broken(Rule::Core, static_cast<int64_t>(site.pipe));
    for (uint32_t i = r.operands; i < operand_end(row); ++i) {
        const OperandRow &operand = records_.operand(i);
        const Footprint &footprint = records_.footprints.rows()[operand.footprint];
        const auto space = static_cast<Space>(footprint.memory);
        // boxes of 512 bytes, which the cube core takes as wholes
        if ((space == Space::L0A || space == Space::L0B || space == Space::L0C) && form != Form::Scalar &&
            footprint.which < 3 && operand.address % 512 != 0)
            broken(Rule::Alignment, static_cast<int64_t>(operand.address));
        if (operand.tile == kNoTile || tile_told_[operand.tile]) continue;
        tile_told_[operand.tile] = 1;
        const TileRow &tile = records_.tiles.rows()[operand.tile];
        if (tile.memory == static_cast<uint8_t>(Space::GM)) continue;
        if (tile.valid_rows > tile.rows) broken(Rule::Valid, tile.valid_rows);
        if (tile.valid_cols > tile.cols) broken(Rule::Valid, tile.valid_cols);
    }
    if (r.geometry == kNoGeometry) return;
    const Geometry &geometry = records_.geometries.rows()[r.geometry];
    if (form == Form::Transfer && site.pipe != PipeId::FIX) {
        // fields of 12 and 16 bits; the 950 has wider ones
        const uint32_t bursts = options_.vector_in_order ? 65535 : 4095;
        const int64_t longest = options_.vector_in_order ? 1 << 21 : 65535 * 32;
        if (geometry.repeat > bursts) broken(Rule::Bursts, geometry.repeat);
        if (geometry.burst_bytes > longest) broken(Rule::BurstBytes, geometry.burst_bytes);
    }
    if (form == Form::Vector && !options_.vector_in_order && geometry.repeat > 1)
        for (uint16_t stride : geometry.repeat_stride)
            if (stride > 255) broken(Rule::Stride, stride);
    constexpr uint32_t kMost = 4095; // 12 bits
    if (form == Form::Multiply)
        for (uint32_t size : {geometry.m, geometry.k, geometry.n})
            if (size > kMost) broken(Rule::Product, size);
}

} // namespace insight_trace::engine::check
