// The communication ops. Data goes through a staging tile, so a put is loads and stores of this core. What a
// DMA engine beside the core is asked for happens at once, and takes no time of that engine.
#pragma once

#include "pto/comm/comm_types.hpp"

namespace pto::comm {

namespace bundled {

[[noreturn]] inline void not_modelled(const char *what, insight_trace::Site at) {
    insight_trace_intrinsic(insight_trace::Intrinsic::Unsupported, reinterpret_cast<uint64_t>(what), 0, 0,
                            at);
    __builtin_unreachable();
}

template <class T>
using Staging = Tile<TileType::Vec, typename T::DType, T::Rows, T::Cols, BLayout::RowMajor, DYNAMIC, DYNAMIC>;
using Rows2D = Shape<1, 1, 1, DYNAMIC, DYNAMIC>;
using Steps2D = Stride<1, 1, 1, DYNAMIC, DYNAMIC>;

// Piece by piece through the staging tiles, which take turns.
template <AtomicType atomic, int count, class D, class S, class T>
void copy_through(const D &dst, const S &src, T *const (&tiles)[count], insight_trace::Site at) {
    using Element = typename T::DType;
    using Piece = GlobalTensor<Element, Rows2D, Steps2D>;
    const int64_t rows = src.GetShape(3), cols = src.GetShape(4);
    int turn = 0;
    for (int64_t i = 0; i < src.GetShape(0); ++i)
        for (int64_t j = 0; j < src.GetShape(1); ++j)
            for (int64_t k = 0; k < src.GetShape(2); ++k)
                for (int64_t row = 0; row < rows; row += T::Rows)
                    for (int64_t col = 0; col < cols; col += T::Cols) {
                        const auto event = static_cast<event_t>(turn % count);
                        const int64_t height = rows - row < T::Rows ? rows - row : T::Rows;
                        const int64_t width = cols - col < T::Cols ? cols - col : T::Cols;
                        auto place = [&](const auto &g) {
                            return g.data() + i * g.GetStride(0) + j * g.GetStride(1) + k * g.GetStride(2) +
                                   row * g.GetStride(3) + col * g.GetStride(4);
                        };
                        Staging<T> tile(height, width);
                        tile.assign(tiles[turn % count]->address());
                        Piece from(place(src), Rows2D(height, width),
                                   Steps2D(src.GetStride(3), src.GetStride(4)));
                        Piece to(place(dst), Rows2D(height, width),
                                 Steps2D(dst.GetStride(3), dst.GetStride(4)));
                        if (turn >= count) wait_flag(PIPE_MTE3, PIPE_MTE2, event, at);
                        TLOAD(tile, from, at);
                        set_flag(PIPE_MTE2, PIPE_MTE3, event, at);
                        wait_flag(PIPE_MTE2, PIPE_MTE3, event, at);
                        TSTORE<Staging<T>, Piece, atomic>(to, tile, at);
                        set_flag(PIPE_MTE3, PIPE_MTE2, event, at);
                        ++turn;
                    }
    for (int open = 0; open < count && open < turn; ++open)
        wait_flag(PIPE_MTE3, PIPE_MTE2, static_cast<event_t>(open), at);
}

// By a DMA engine, row by row.
template <class D, class S> void copy_by_dma(const D &dst, const S &src, insight_trace::Site at) {
    constexpr uint64_t size = sizeof(*src.data());
    const bool rows = src.GetStride(4) == 1 && dst.GetStride(4) == 1;
    const int64_t width = rows ? 1 : src.GetShape(4);
    const uint64_t bytes = size * static_cast<uint64_t>(rows ? src.GetShape(4) : 1);
    for (int64_t i = 0; i < src.GetShape(0); ++i)
        for (int64_t j = 0; j < src.GetShape(1); ++j)
            for (int64_t k = 0; k < src.GetShape(2); ++k)
                for (int64_t row = 0; row < src.GetShape(3); ++row)
                    for (int64_t col = 0; col < width; ++col) {
                        auto place = [&](const auto &g) {
                            return reinterpret_cast<uint64_t>(g.data() + i * g.GetStride(0) +
                                                              j * g.GetStride(1) + k * g.GetStride(2) +
                                                              row * g.GetStride(3) + col * g.GetStride(4));
                        };
                        insight_trace_intrinsic(insight_trace::Intrinsic::DmaCopy, place(dst), place(src),
                                                bytes, at);
                    }
}

template <class G, class Each> bool all_of(const G &signal, const Each &each) {
    for (int64_t row = 0; row < signal.GetShape(3); ++row)
        for (int64_t col = 0; col < signal.GetShape(4); ++col)
            if (!each(signal.data() + row * signal.GetStride(3) + col * signal.GetStride(4))) return false;
    return true;
}

} // namespace bundled

template <AtomicType atomic = AtomicType::AtomicNone, class D, class S, class T>
inline void TPUT(const D &dst, const S &src, T &staging, INSIGHT_TRACE_AT) {
    bundled::copy_through<atomic, 1>(dst, src, {&staging}, at);
}
template <AtomicType atomic = AtomicType::AtomicNone, class D, class S, class T>
inline void TPUT(const D &dst, const S &src, T &ping, T &pong, INSIGHT_TRACE_AT) {
    bundled::copy_through<atomic, 2>(dst, src, {&ping, &pong}, at);
}
template <class D, class S, class T>
inline void TGET(const D &dst, const S &src, T &staging, INSIGHT_TRACE_AT) {
    bundled::copy_through<AtomicType::AtomicNone, 1>(dst, src, {&staging}, at);
}
template <class D, class S, class T>
inline void TGET(const D &dst, const S &src, T &ping, T &pong, INSIGHT_TRACE_AT) {
    bundled::copy_through<AtomicType::AtomicNone, 2>(dst, src, {&ping, &pong}, at);
}

template <class G> inline void TNOTIFY(const G &signal, int32_t value, NotifyOp op, INSIGHT_TRACE_AT) {
    const auto how =
        op == NotifyOp::Set ? insight_trace::Intrinsic::StoreDev : insight_trace::Intrinsic::AtomicAdd;
    bundled::all_of(signal, [&](int32_t *one) {
        insight_trace_intrinsic(how, reinterpret_cast<uint64_t>(one), 4, static_cast<uint32_t>(value), at);
        return true;
    });
}
// Waits until every signal compares true; a signal that nobody will send is a deadlock, and reported as one.
template <class G> inline void TWAIT(const G &signal, int32_t value, WaitCmp cmp, INSIGHT_TRACE_AT) {
    bundled::all_of(signal, [&](int32_t *one) {
        insight_trace_intrinsic(insight_trace::Intrinsic::WaitSignal, reinterpret_cast<uint64_t>(one),
                                static_cast<uint64_t>(cmp), static_cast<uint32_t>(value), at);
        return true;
    });
}
template <class G> inline bool TTEST(const G &signal, int32_t value, WaitCmp cmp, INSIGHT_TRACE_AT) {
    return bundled::all_of(signal, [&](int32_t *one) {
        return insight_trace_intrinsic(insight_trace::Intrinsic::TestSignal, reinterpret_cast<uint64_t>(one),
                                       static_cast<uint64_t>(cmp), static_cast<uint32_t>(value), at) != 0;
    });
}

#define PTO_COLLECTIVE(name)                                                                                 \
    template <class Group, class... Rest> inline void name(const ParallelGroup<Group> &, Rest &&...) {       \
        bundled::not_modelled("the collective " #name ", which needs several ranks",                         \
                              insight_trace::Site::here());                                                  \
    }
PTO_COLLECTIVE(TGATHER)
PTO_COLLECTIVE(TSCATTER)
PTO_COLLECTIVE(TBROADCAST)
PTO_COLLECTIVE(TREDUCE)
#undef PTO_COLLECTIVE

template <DmaEngine engine = DmaEngine::SDMA, class D, class S>
inline AsyncEvent TPUT_ASYNC(const D &dst, const S &src, const AsyncSession &, INSIGHT_TRACE_AT) {
    bundled::copy_by_dma(dst, src, at);
    return {}; // it is done
}
template <DmaEngine engine = DmaEngine::SDMA, class D, class S>
inline AsyncEvent TGET_ASYNC(const D &dst, const S &src, const AsyncSession &, INSIGHT_TRACE_AT) {
    bundled::copy_by_dma(dst, src, at);
    return {};
}
template <DmaEngine engine = DmaEngine::SDMA, class T>
inline bool BuildAsyncSession(T &, uint8_t *, AsyncSession &session, uint32_t = 0) {
    session.engine = engine;
    return true;
}
template <DmaEngine engine> inline bool BuildAsyncSession(uint8_t *, uint32_t, AsyncSession &session) {
    session.engine = engine;
    return true;
}

} // namespace pto::comm

namespace pto {

// Fetches into the cache: nothing that the model of one core shows.
template <class... Ts> inline void TPREFETCH(const Ts &...) {}

struct PrefetchAsyncContext {
    comm::AsyncSession session;
    explicit PrefetchAsyncContext(uint8_t *) {}
};
template <class G> inline comm::AsyncEvent TPREFETCH_ASYNC(const G &, const PrefetchAsyncContext &context) {
    return {1, context.session.engine};
}

} // namespace pto
