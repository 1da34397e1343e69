// Events between ops: a flag from the pipe of one op to the pipe of another, set where the first is recorded
// and waited for before the second.
#pragma once

#include "insight_trace/device.hpp"
#include "pto/common/type.hpp"

namespace pto {

// Ops in the order of the pipes that run them: pipe_of goes by the first of each.
// clang-format off
enum class Op : uint16_t {
    // PIPE_S
    SCALAR, TRESHAPE, SETFMATRIX, SET_IMG2COL_RPT, SET_IMG2COL_PADDING,
    // PIPE_MTE2
    TLOAD, TEXPANDS_MAT, TPREFETCH, TFILLPAD_MAT, MGATHER_MAT,
    // PIPE_MTE3
    TSTORE_VEC, TSTORE_MAT,
    // PIPE_M
    TMATMUL, TGEMV,
    // PIPE_MTE1
    TMOV_M2B, TMOV_M2L, TMOV_M2R, TEXTRACT_M2LR, TIMG2COL,
    // PIPE_FIX
    TMOV_V2M, TEXTRACT_V2M, TMOV_M2S, TMOV_A2V, TMOV_A2M, TSTORE_ACC, TEXTRACT_A2M, TINSERT_A2M,
    // PIPE_V
    VECTOR, TADD, TADDS, TAXPY, TSUB, TMUL, TMULS, TDIV, TDIVS, TMIN, TMINS, TMAX, TAND, TOR, TSEL, TSHL,
    TSHR, TEXP, TSELS, TSQRT, TRSQRT, TEXPANDS, TPARTADD, TPARTMUL, TPARTMAX, TPARTMIN, TPOW, TPOWS,
    TCMPS, TMRGSORT, TSORT32, TCI, TGATHER, TGATHERB, TCVT, TROWSUM, TROWPROD, TROWMAX, TROWMIN,
    TROWEXPAND, TRANDOM, TCOLSUM, TCOLPROD, TCOLMAX, TCOLMIN, TTRANS, TTRI, TREM, TFMOD, TREMS, TFMODS,
    TSUBS, TMAXS, TLRELU, TPRELU, TMOV_V2V, TANDS, TORS, TSHLS, TSHRS, TXOR, TXORS, TCONCAT, TDEQUANT,
    TADDDEQRELU, TABS, TNEG, TRELU, TNOT, TLOG, TRECIP, TCMP, TSCATTER, TCOLEXPAND, TCOLEXPANDDIV,
    TCOLEXPANDMUL, TCOLEXPANDADD, TCOLEXPANDMAX, TCOLEXPANDMIN, TCOLEXPANDSUB, TCOLEXPANDEXPDIF,
    TROWEXPANDDIV, TROWEXPANDMUL, TROWEXPANDSUB, TROWEXPANDADD, TROWEXPANDMAX, TROWEXPANDMIN,
    TROWEXPANDEXPDIF, TPAIRREDUCESUM, TSUBRELUCONV, TADDRELUCONV, TFUSEDMULADD, TMULADDDST, TSUBRELU,
    TFUSEDMULADDRELU, TPARTARGMAX, TPARTARGMIN, TCOLARGMAX, TCOLARGMIN, TROWARGMAX, TROWARGMIN,
    TFILLPAD_VEC, MGATHER_VEC, MSCATTER, TQUANT, THISTOGRAM, TINTERLEAVE, TDEINTERLEAVE,
    OP_COUNT
};
// clang-format on

namespace bundled {
constexpr pipe_t pipe_of(Op op) {
    return op < Op::TLOAD        ? PIPE_S
           : op < Op::TSTORE_VEC ? PIPE_MTE2
           : op < Op::TMATMUL    ? PIPE_MTE3
           : op < Op::TMOV_M2B   ? PIPE_M
           : op < Op::TMOV_V2M   ? PIPE_MTE1
           : op < Op::VECTOR     ? PIPE_FIX
           : op < Op::OP_COUNT   ? PIPE_V
                                 : PIPE_ALL;
}

// Eight flags between two pipes, taken in turn.
template <pipe_t From, pipe_t To> event_t next_event() {
    static uint8_t next = 0;
    return static_cast<event_t>(next++ % 8);
}

// Cores of one cluster meet through flags of their own.
constexpr uint8_t kNoFlag = 0xff;
constexpr bool crosses_cores(Op from, [[maybe_unused]] pipe_t to) {
#if defined(PTO_NPU_ARCH_A5)
    return from == Op::TMOV_A2V || from == Op::TMOV_V2M || from == Op::TEXTRACT_V2M;
#else
    return (from == Op::TMOV_A2V && to == PIPE_V) ||
           ((from == Op::TMOV_V2M || from == Op::TEXTRACT_V2M) && to == PIPE_MTE1);
#endif
}
} // namespace bundled

// What ffts_cross_core_sync is told: whom it reaches, and the number of the flag.
constexpr uint16_t getFFTSMsg(uint16_t mode, uint16_t flag, uint16_t base = 1) {
    return static_cast<uint16_t>((base & 15) + ((mode & 3) << 4) + ((flag & 15) << 8));
}

// What an op gives back: assigned to an event, it sets the event's flag.
struct RecordEvent {
    insight_trace::Site at{};
};

struct EventBaseTag {};
template <class T> struct is_event : std::is_base_of<EventBaseTag, T> {};

template <Op From, Op To, bool AutoToken = true, event_t Id = EVENT_ID0> struct Event : EventBaseTag {
    static constexpr Op srcOp = From;
    static constexpr Op dstOp = To;
    static constexpr pipe_t srcPipe = bundled::pipe_of(From);
    static constexpr pipe_t dstPipe = bundled::pipe_of(To);
    static constexpr bool isSamePipe = srcPipe == dstPipe;
    static constexpr bool IsCrossCore = bundled::crosses_cores(From, dstPipe);
    const event_t token = AutoToken ? bundled::next_event<srcPipe, dstPipe>() : Id;

    Event() = default;
    Event(RecordEvent record) { set<bundled::kNoFlag>(record.at); }
    Event &operator=(RecordEvent record) { return set<bundled::kNoFlag>(record.at); }
    Event &InitAddr(uint64_t base, INSIGHT_TRACE_AT) {
        set_ffts_base_addr(base, at);
        return *this;
    }
    template <uint8_t Flag = bundled::kNoFlag> Event &Init(INSIGHT_TRACE_AT) { return set<Flag>(at); }
    template <uint8_t Flag = bundled::kNoFlag> Event &Record(INSIGHT_TRACE_AT) { return set<Flag>(at); }
    template <uint8_t Flag = bundled::kNoFlag> Event &Wait(INSIGHT_TRACE_AT) {
        if constexpr (IsCrossCore) {
            static_assert(Flag != bundled::kNoFlag, "an event between cores needs the number of its flag");
#if defined(PTO_NPU_ARCH_A5)
            wait_intra_block(srcPipe, Flag, at);
#else
            wait_flag_dev(Flag, at);
#endif
        } else if constexpr (!isSamePipe) {
            wait_flag(srcPipe, dstPipe, token, at);
        } else {
#if defined(PTO_NPU_ARCH_A5)
            if constexpr (srcPipe == PIPE_MTE2 || dstPipe == PIPE_MTE3) pipe_barrier(srcPipe, at);
#else
            pipe_barrier(srcPipe, at);
#endif
        }
        return *this;
    }

  private:
    template <uint8_t Flag> Event &set(insight_trace::Site at) {
        if constexpr (IsCrossCore) {
            static_assert(Flag != bundled::kNoFlag, "an event between cores needs the number of its flag");
#if defined(PTO_NPU_ARCH_A5)
            set_intra_block(srcPipe, Flag, at);
            set_intra_block(srcPipe, Flag + 16, at);
#else
            ffts_cross_core_sync(srcPipe, 1 | 2 << 4 | uint64_t(Flag & 0xf) << 8, at);
#endif
        } else if constexpr (!isSamePipe) {
            set_flag(srcPipe, dstPipe, token, at);
        }
        return *this;
    }
};

template <class... Events> inline void WaitAllEvents(Events &...events) { (events.Wait(), ...); }

template <pipe_t From, pipe_t To>
inline void PtoSetWaitFlag(event_t set = EVENT_ID0, event_t wait = EVENT_ID0, INSIGHT_TRACE_AT) {
    set_flag(From, To, set, at);
    wait_flag(From, To, wait, at);
}

template <Op op> inline void TSYNC(INSIGHT_TRACE_AT) { pipe_barrier(bundled::pipe_of(op), at); }
template <class... Events,
          std::enable_if_t<(sizeof...(Events) > 0) && (is_event<Events>::value && ...), int> = 0>
inline void TSYNC(Events &...events) {
    WaitAllEvents(events...);
}

} // namespace pto
