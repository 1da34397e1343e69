// TPUSH with a conversion on the way out of the accumulator, and the SET_QUANT_* before it.
#pragma once

#include <initializer_list>

#include "pto/common/fifo.hpp"

namespace pto {

namespace bundled {
// What SET_QUANT_* leave for it.
struct QuantRegisters {
    uint64_t word = 0;
    insight_trace::TileRef words{};
};
inline QuantRegisters &quant_registers() {
    static thread_local QuantRegisters registers; // a core is a thread
    return registers;
}
constexpr bool is_one_of(QuantMode_t mode, std::initializer_list<QuantMode_t> list) {
    for (QuantMode_t one : list)
        if (one == mode) return true;
    return false;
}
template <QuantMode_t mode, class Element> constexpr auto converted_element() {
    if constexpr (is_one_of(mode, {F322F16, QF322F16_PRE, VQF322F16_PRE, DEQF16, VDEQF16}))
        return half{};
    else if constexpr (is_one_of(mode,
                                 {F322BF16, QF322BF16_PRE, VQF322BF16_PRE, QS322BF16_PRE, VQS322BF16_PRE}))
        return bfloat16_t{};
    else if constexpr (is_one_of(mode, {QF322B8_PRE, VQF322B8_PRE, REQ8, VREQ8}))
        return int8_t{};
    else {
        static_assert(mode == NoQuant, "TPUSH with this conversion is not supported");
        return Element{};
    }
}
} // namespace bundled
template <class Out> inline RecordEvent SET_QUANT_SCALAR(float scale, INSIGHT_TRACE_AT) {
    const uint64_t is_signed = std::is_same_v<Out, int8_t> ? 1ull << 46 : 0;
    bundled::quant_registers().word = bundled::value_bits(scale) | is_signed;
    return {at};
}
template <class Out, PTO_EVENT(0)>
inline RecordEvent SET_QUANT_SCALAR(float scale, PTO_AFTER(0), INSIGHT_TRACE_AT) {
    event0.Wait(at);
    return SET_QUANT_SCALAR<Out>(scale, at);
}
template <class T> inline RecordEvent SET_QUANT_VECTOR(const T &scales, INSIGHT_TRACE_AT) {
    static_assert(T::Loc == TileType::Scaling, "SET_QUANT_VECTOR takes a Scaling tile");
    bundled::quant_registers().words = scales.ref();
    return {at};
}
template <class T, PTO_EVENT(0)>
inline RecordEvent SET_QUANT_VECTOR(const T &scales, PTO_AFTER(0), INSIGHT_TRACE_AT) {
    event0.Wait(at);
    return SET_QUANT_VECTOR(scales, at);
}
template <class Pipe, class T, class Config,
          std::enable_if_t<is_tile<T>::value && Config::LayoutMode == Config::LayoutMode, int> = 0>
inline void TPUSH(Pipe &pipe, T &tile, INSIGHT_TRACE_AT) {
    static_assert(T::Loc == TileType::Acc, "TPUSH with a conversion takes an Acc tile");
    static_assert(Config::LayoutMode == LayoutMode_t::NZ2ND, "TPUSH with a conversion gives rows");
    constexpr QuantMode_t mode = Config::QuantPre;
    using Element = decltype(bundled::converted_element<mode, typename T::DType>());
    constexpr bool by_column = bundled::is_one_of(
        mode, {VDEQF16, VREQ8, VQF322B8_PRE, VQF322F16_PRE, VQF322BF16_PRE, VQS322BF16_PRE});
    constexpr bool scaled = by_column || bundled::is_one_of(mode, {DEQF16, REQ8, QF322B8_PRE, QF322F16_PRE,
                                                                   QF322BF16_PRE, QS322BF16_PRE});
    if (pipe.prod.isAllocate && Pipe::shouldWaitFree(pipe.prod.tileIndex))
        pipe.prod.template allocate<TILE_NO_SPLIT>(at);
    if constexpr (Pipe::produces) {
        const int64_t rows = tile.GetValidRow(), cols = tile.GetValidCol();
        const auto &registers = bundled::quant_registers();
        insight_trace::Operand scale = bundled::describe(registers.word);
        if constexpr (by_column) scale = bundled::operand_of(registers.words);
        const insight_trace::Operand from = bundled::describe(bundled::in_phase<Config::Phase>(tile)),
                                     relu = bundled::describe(Config::ReluMode);
        if constexpr (Pipe::on_chip) {
            Tile<TileType::Vec, Element, T::Rows, T::Cols, BLayout::RowMajor, DYNAMIC, DYNAMIC> there(
                static_cast<int>(rows), static_cast<int>(cols));
            there.assign(pipe.fifo.C2V_CONSUMER_BUF + pipe.slot(pipe.prod.tileIndex) + pipe.prod.entryOffset);
            const insight_trace::Operand operands[] = {
                bundled::describe(there), from, relu,
                bundled::describe(static_cast<AccToVecMode>(Config::SubBlockId)), scale};
            insight_trace_op(insight_trace::Op::TMOV, operands, scaled ? 5 : 4, at);
        } else {
            const auto part = bundled::LanePart::of(TILE_NO_SPLIT, pipe.prod.lane(at), rows, cols);
            GlobalTensor<Element, bundled::RowsOfGlobal, bundled::StepsOfGlobal> slot(
                reinterpret_cast<Element *>(pipe.slot_in_gm(pipe.prod)) + part.offset,
                bundled::RowsOfGlobal(rows, cols), bundled::StepsOfGlobal(part.step));
            const insight_trace::Operand operands[] = {bundled::describe(slot), from,
                                                       bundled::describe(Config::AtomicT), relu, scale};
            insight_trace_op(insight_trace::Op::TSTORE, operands, scaled ? 5 : 4, at);
        }
    }
    ++pipe.prod.tileIndex;
    if (pipe.prod.isRecord) pipe.prod.template record<TILE_NO_SPLIT>(at);
}

} // namespace pto
