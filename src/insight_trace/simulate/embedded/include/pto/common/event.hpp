// Events between ops: a flag from the pipe of one op to the pipe of another, set where the first is recorded
// and waited for before the second.
#pragma once

#include "insight_trace/device.hpp"
#include "pto/common/type.hpp"

namespace pto {

// Ops by the pipe that runs them.
#define PTO_OPS_OF_VECTOR(X)                                                                                 \
    X(VECTOR)                                                                                                \
    X(TADD)                                                                                                  \
    X(TADDS) X(TAXPY) X(TSUB) X(TMUL) X(TMULS) X(TDIV) X(TDIVS) X(TMIN) X(TMINS) X(TMAX) X(TAND) X(TOR)      \
        X(TSEL) X(TSHL) X(TSHR) X(TEXP) X(TSELS) X(TSQRT) X(TRSQRT) X(TEXPANDS) X(TPARTADD) X(TPARTMUL)      \
            X(TPARTMAX) X(TPARTMIN) X(TPOW) X(TPOWS) X(TCMPS) X(TMRGSORT) X(TSORT32) X(TCI) X(TGATHER)       \
                X(TGATHERB) X(TCVT) X(TROWSUM) X(TROWPROD) X(TROWMAX) X(TROWMIN) X(TROWEXPAND) X(TRANDOM)    \
                    X(TCOLSUM) X(TCOLPROD) X(TCOLMAX) X(TCOLMIN) X(TTRANS) X(TTRI) X(TREM) X(TFMOD) X(TREMS) \
                        X(TFMODS) X(TSUBS) X(TMAXS) X(TLRELU) X(TPRELU) X(TMOV_V2V) X(TANDS) X(TORS)         \
                            X(TSHLS) X(TSHRS) X(TXOR) X(TXORS) X(TCONCAT) X(TDEQUANT) X(TADDDEQRELU) X(TABS) \
                                X(TNEG) X(TRELU) X(TNOT) X(TLOG) X(TRECIP) X(TCMP) X(TSCATTER) X(TCOLEXPAND) \
                                    X(TCOLEXPANDDIV) X(TCOLEXPANDMUL) X(TCOLEXPANDADD) X(TCOLEXPANDMAX)      \
                                        X(TCOLEXPANDMIN) X(TCOLEXPANDSUB) X(TCOLEXPANDEXPDIF)                \
                                            X(TROWEXPANDDIV) X(TROWEXPANDMUL) X(TROWEXPANDSUB)               \
                                                X(TROWEXPANDADD) X(TROWEXPANDMAX) X(TROWEXPANDMIN)           \
                                                    X(TROWEXPANDEXPDIF) X(TPAIRREDUCESUM) X(TSUBRELUCONV)    \
                                                        X(TADDRELUCONV) X(TFUSEDMULADD) X(TMULADDDST)        \
                                                            X(TSUBRELU) X(TFUSEDMULADDRELU) X(TPARTARGMAX)   \
                                                                X(TPARTARGMIN) X(TCOLARGMAX) X(TCOLARGMIN)   \
                                                                    X(TROWARGMAX) X(TROWARGMIN)              \
                                                                        X(TFILLPAD_VEC) X(MGATHER_VEC)       \
                                                                            X(MSCATTER) X(TQUANT)            \
                                                                                X(THISTOGRAM) X(TINTERLEAVE) \
                                                                                    X(TDEINTERLEAVE)
#define PTO_OPS_OF_LOAD(X)    X(TLOAD) X(TEXPANDS_MAT) X(TPREFETCH) X(TFILLPAD_MAT) X(MGATHER_MAT)
#define PTO_OPS_OF_STORE(X)   X(TSTORE_VEC) X(TSTORE_MAT)
#define PTO_OPS_OF_SCALAR(X)  X(SCALAR) X(TRESHAPE) X(SETFMATRIX) X(SET_IMG2COL_RPT) X(SET_IMG2COL_PADDING)
#define PTO_OPS_OF_CUBE(X)    X(TMATMUL) X(TGEMV)
#define PTO_OPS_OF_EXTRACT(X) X(TMOV_M2B) X(TMOV_M2L) X(TMOV_M2R) X(TEXTRACT_M2LR) X(TIMG2COL)
#define PTO_OPS_OF_FIXPIPE(X)                                                                                \
    X(TMOV_V2M)                                                                                              \
    X(TEXTRACT_V2M) X(TMOV_M2S) X(TMOV_A2V) X(TMOV_A2M) X(TSTORE_ACC) X(TEXTRACT_A2M) X(TINSERT_A2M)

#define PTO_OP_NAME(name) name,
enum class Op : uint16_t {
    PTO_OPS_OF_VECTOR(PTO_OP_NAME) PTO_OPS_OF_LOAD(PTO_OP_NAME) PTO_OPS_OF_STORE(PTO_OP_NAME)
        PTO_OPS_OF_SCALAR(PTO_OP_NAME) PTO_OPS_OF_CUBE(PTO_OP_NAME) PTO_OPS_OF_EXTRACT(PTO_OP_NAME)
            PTO_OPS_OF_FIXPIPE(PTO_OP_NAME) OP_COUNT
};
#undef PTO_OP_NAME

namespace detail {
constexpr pipe_t pipe_of(Op op) {
#define PTO_OP_CASE(name) case Op::name:
    switch (op) {
        PTO_OPS_OF_VECTOR(PTO_OP_CASE) return PIPE_V;
        PTO_OPS_OF_LOAD(PTO_OP_CASE) return PIPE_MTE2;
        PTO_OPS_OF_STORE(PTO_OP_CASE) return PIPE_MTE3;
        PTO_OPS_OF_SCALAR(PTO_OP_CASE) return PIPE_S;
        PTO_OPS_OF_CUBE(PTO_OP_CASE) return PIPE_M;
        PTO_OPS_OF_EXTRACT(PTO_OP_CASE) return PIPE_MTE1;
        PTO_OPS_OF_FIXPIPE(PTO_OP_CASE) return PIPE_FIX;
    default:
        return PIPE_ALL;
    }
#undef PTO_OP_CASE
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
} // namespace detail

// What an op gives back: assigned to an event, it sets the event's flag.
struct RecordEvent {
    insight_trace::Site at{};
};

struct EventBaseTag {};
template <class T> struct is_event : std::is_base_of<EventBaseTag, T> {};

template <Op From, Op To, bool AutoToken = true, event_t Id = EVENT_ID0> struct Event : EventBaseTag {
    static constexpr Op srcOp = From;
    static constexpr Op dstOp = To;
    static constexpr pipe_t srcPipe = detail::pipe_of(From);
    static constexpr pipe_t dstPipe = detail::pipe_of(To);
    static constexpr bool isSamePipe = srcPipe == dstPipe;
    static constexpr bool IsCrossCore = detail::crosses_cores(From, dstPipe);
    const event_t token = AutoToken ? detail::next_event<srcPipe, dstPipe>() : Id;

    Event() = default;
    Event(RecordEvent record) { set<detail::kNoFlag>(record.at); }
    Event &operator=(RecordEvent record) { return set<detail::kNoFlag>(record.at); }
    Event &InitAddr(uint64_t base, INSIGHT_TRACE_AT) {
        set_ffts_base_addr(base, at);
        return *this;
    }
    template <uint8_t Flag = detail::kNoFlag> Event &Init(INSIGHT_TRACE_AT) { return set<Flag>(at); }
    template <uint8_t Flag = detail::kNoFlag> Event &Record(INSIGHT_TRACE_AT) { return set<Flag>(at); }
    template <uint8_t Flag = detail::kNoFlag> Event &Wait(INSIGHT_TRACE_AT) {
        if constexpr (IsCrossCore) {
            static_assert(Flag != detail::kNoFlag, "an event between cores needs the number of its flag");
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
            static_assert(Flag != detail::kNoFlag, "an event between cores needs the number of its flag");
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

template <Op op> inline void TSYNC(INSIGHT_TRACE_AT) { pipe_barrier(detail::pipe_of(op), at); }
template <class... Events,
          std::enable_if_t<(sizeof...(Events) > 0) && (is_event<Events>::value && ...), int> = 0>
inline void TSYNC(Events &...events) {
    WaitAllEvents(events...);
}

} // namespace pto
