// TMPipe: one direction between the cube core and the vector cores of a cluster, by tiles.
//
// Slots have the size of a tile, in global memory or, on a5, in the consumer's own memory. Flag FlagID says
// "a tile is there", FlagID + 1 "a place is free"; the consumer raises the second one once when the pipe is
// made, and the producer takes the last one when the pipe ends. Which pushes and pops take part is the
// kernel's choice: it names the tile, the part of it and the flags before each call.
#pragma once

#include "pto/common/fifo.hpp"

namespace pto {

// In the consumer's own memory.
template <class DataType, FIFOType Kind, int Depth, int Period, int LocalDepth = 0> struct DataFIFO {
    static constexpr int fifoDepth = Depth, fifoPeriod = Period;
    static constexpr FIFOType fifoType = Kind;
    uint32_t fifoBase;
    DataFIFO(uint32_t base) : fifoBase(base) {}
};

// In global memory; with a local depth, what is popped goes round so many places from localFiFoBase on.
template <class DataType, int Depth, int Period, int LocalDepth>
struct DataFIFO<DataType, FIFOType::GM_FIFO, Depth, Period, LocalDepth> {
    using DType = DataType;
    static constexpr int fifoDepth = Depth, fifoPeriod = Period;
    static constexpr FIFOType fifoType = FIFOType::GM_FIFO;
    static constexpr int localFiFoDepth = LocalDepth;
    static constexpr bool useLocalFiFo = LocalDepth > 0;
    DataType *fifoBase;
    uint32_t localFiFoBase;
    DataFIFO(DataType *base, uint32_t local_base = 0) : fifoBase(base), localFiFoBase(local_base) {}
    DataType *getBasePtr() { return fifoBase; }
};

template <uint8_t FlagID, FIFOType FiFoType, uint8_t FiFoDepth, uint8_t FiFoSyncT, class TileDataProd,
          class TileDataCons, bool EN_UNIT_FLAG = false, uint8_t LocalFiFoDepth = 2,
          VecCubeRatio VCRatio = VecCubeRatio::V2C1_VECS>
struct TMPipe {
    static_assert(FlagID + 1 < 16, "a pipe needs two of the 16 flags");
    static_assert(FiFoType != FIFOType::CTRL_FIFO, "control pipes (TMPipe with CTRL_FIFO) are not supported");
    static_assert(FiFoType == FIFOType::GM_FIFO || bundled::kOnA5,
                  "on this chip a TMPipe goes through global memory (GM_FIFO)");
    using Produced = TileDataProd;
    using Consumed = TileDataCons;
    static constexpr bool on_chip = FiFoType != FIFOType::GM_FIFO;
    static constexpr bool is_c2v = TileDataProd::Loc == TileType::Acc && TileDataCons::Loc == TileType::Vec &&
                                   FiFoType != FIFOType::MAT_FIFO;
    static constexpr bool is_v2c = TileDataProd::Loc == TileType::Vec && TileDataCons::Loc == TileType::Mat &&
                                   FiFoType != FIFOType::VEC_FIFO;
    static_assert(is_c2v || is_v2c, "TMPipe goes from Acc to Vec (GM_FIFO, VEC_FIFO) or from Vec to Mat "
                                    "(GM_FIFO, MAT_FIFO)");
    static constexpr bool unit_flag = EN_UNIT_FLAG;
    static constexpr int vector_cores = VCRatio == VecCubeRatio::V2C1_VECS ? 2 : 1;
    static constexpr bool produces = is_c2v == bundled::kOnCube;

    using DataFiFo = DataFIFO<std::conditional_t<on_chip, TileDataCons, typename TileDataCons::DType>,
                              FiFoType, FiFoDepth, FiFoSyncT, LocalFiFoDepth>;

    struct End {
        int tile_id = 0, sub_tile_id = 0, entryOffset = 0;
        void setTileId(int tile, int part) {
            tile_id = tile;
            sub_tile_id = part;
        }
        void setEntryOffset(int offset) { entryOffset = offset; }
        int getTileId() const { return tile_id; }
        int getSubTileId() const { return sub_tile_id; }
        uint32_t slot() const { return static_cast<uint32_t>(tile_id % FiFoDepth); }
    };
    // On the core of the other end some of these do nothing, and some are as wrong as on a device: allocate
    // and free, which the pipe's own making and ending call on both, always look where they are.
    struct Producer : End, bundled::ProducerStatus {
        void allocate(INSIGHT_TRACE_AT) const {
            if constexpr (produces)
                bundled::await_flag(FlagID + 1, is_c2v ? PIPE_FIX : PIPE_MTE3, is_c2v, at);
        }
        void record(INSIGHT_TRACE_AT) const {
            if constexpr (produces || is_v2c || !bundled::kOnA5)
                bundled::raise_flag(FlagID, is_c2v ? PIPE_FIX : PIPE_MTE3, is_c2v, at);
        }
    };
    struct Consumer : End, bundled::ConsumerStatus {
        void wait(INSIGHT_TRACE_AT) const {
            constexpr pipe_t reader = !on_chip ? PIPE_MTE2 : is_v2c ? PIPE_MTE1 : PIPE_V;
            if constexpr (!produces || !on_chip) bundled::await_flag(FlagID, reader, is_v2c, at);
        }
        void free(INSIGHT_TRACE_AT) const {
            constexpr pipe_t reader = bundled::kOnA5 && is_v2c ? PIPE_MTE1 : on_chip ? PIPE_V : PIPE_MTE2;
            if constexpr (!produces) bundled::raise_flag(FlagID + 1, reader, is_v2c, at);
        }
    };

    DataFiFo fifo;
    Producer prod;
    Consumer cons;

    template <FIFOType kind = FiFoType, std::enable_if_t<kind == FIFOType::GM_FIFO, int> = 0>
    explicit TMPipe(typename TileDataCons::DType *in_gm, uint32_t local_base, INSIGHT_TRACE_AT)
        : fifo(in_gm, bundled::place_on_chip<TileDataCons::Loc>(local_base, at)), made_at_(at) {
        cons.free(at);
    }
    // Nothing is said of local places where there are none: on a2a3, with a local depth of 0.
    template <int local = LocalFiFoDepth,
              std::enable_if_t<local == 0 && FiFoType == FIFOType::GM_FIFO && !bundled::kOnA5, int> = 0>
    explicit TMPipe(typename TileDataCons::DType *in_gm, INSIGHT_TRACE_AT) : fifo(in_gm), made_at_(at) {
        cons.free(at);
    }
    template <FIFOType kind = FiFoType, std::enable_if_t<kind != FIFOType::GM_FIFO, int> = 0>
    explicit TMPipe(uint32_t on_chip_base, INSIGHT_TRACE_AT)
        : fifo(bundled::place_on_chip<TileDataCons::Loc>(on_chip_base, at)), made_at_(at) {
        cons.free(at);
    }
    TMPipe(const TMPipe &) = delete;
    ~TMPipe() { prod.allocate(made_at_); }

    // The place of a tile of `elements` in the ring, behind what the kernel gave as the part's offset.
    template <class Element> Element *in_gm(const End &end, size_t elements) const {
        return reinterpret_cast<Element *>(reinterpret_cast<uint64_t>(fifo.fifoBase) +
                                           end.slot() * elements * sizeof(Element) +
                                           static_cast<int64_t>(end.entryOffset));
    }

  private:
    insight_trace::Site made_at_;
};

namespace bundled {

template <class P> struct is_tile_pipe : std::false_type {};
template <uint8_t F, FIFOType K, uint8_t D, uint8_t S, class A, class B, bool U, uint8_t L, VecCubeRatio V>
struct is_tile_pipe<TMPipe<F, K, D, S, A, B, U, L, V>> : std::true_type {};

template <int rows, int cols, class Element> auto rows_in_gm(Element *at) {
    return GlobalTensor<Element, Shape<1, 1, 1, rows, cols>, Stride<1, 1, 1, cols, 1>>(at);
}

// How the tiles of both ends lie to each other: the wider one is as wide as several of the narrower one,
// which are behind each other in the slot.
template <class Pipe> struct Sides {
    using Produced = typename Pipe::Produced;
    using Consumed = typename Pipe::Consumed;
    static constexpr int wide = Pipe::is_c2v ? Consumed::Cols : Produced::Cols;
    static constexpr int narrow = Pipe::is_c2v ? Produced::Cols : Consumed::Cols;
    static_assert(Pipe::on_chip || (wide >= narrow && wide % narrow == 0),
                  "TMPipe through global memory: the vector tile is as wide as one or more of the cube's");
    static constexpr int parts = wide / narrow;
    // rows of the cube core's tile: a vector core may have a part of them
    static constexpr int rows = Pipe::is_c2v ? Produced::Rows : Consumed::Rows;
    static constexpr size_t elements = size_t(parts) * rows * narrow;
};

// The parts of a wide tile of a vector core, and where each lies in global memory.
template <class Pipe, class T, class Body> void for_each_part(Pipe &pipe, T &tile, Body body) {
    using S = Sides<Pipe>;
    using Element = typename T::DType;
    const auto &end = [&pipe]() -> const typename Pipe::End & {
        if constexpr (Pipe::is_c2v)
            return pipe.cons;
        else
            return pipe.prod;
    }();
    Element *const base = pipe.template in_gm<Element>(end, S::elements);
    for (int part = 0; part < S::parts; ++part) {
        Tile<TileType::Vec, Element, T::Rows, T::Cols, BLayout::RowMajor, T::Rows, S::narrow> there;
        there.assign(tile.address() + part * S::narrow * sizeof(Element));
        auto slot = rows_in_gm<T::Rows, S::narrow>(base + size_t(part) * S::rows * S::narrow);
        body(there, slot);
    }
}

// Straight into the other core's memory: the tile there is the consumer's, or half of it for each vector
// core.
template <class Pipe, class T> void push_tile_on_chip(Pipe &pipe, T &tile, insight_trace::Site at) {
    using Consumed = typename Pipe::Consumed;
    constexpr bool rows_differ = T::Rows != Consumed::Rows, cols_differ = T::Cols != Consumed::Cols;
    constexpr bool two = Pipe::vector_cores == 2;
    static_assert(
        two ? rows_differ != cols_differ : !rows_differ && !cols_differ,
        "TPUSH on chip: two vector cores have half of the rows or of the columns each, one has all");
    if constexpr (Pipe::is_c2v) {
        constexpr int rows = rows_differ ? T::Rows / 2 : T::Rows, cols = cols_differ ? T::Cols / 2 : T::Cols;
        constexpr auto mode = rows_differ   ? AccToVecMode::DualModeSplitM
                              : cols_differ ? AccToVecMode::DualModeSplitN
                                            : AccToVecMode::SingleModeVec0;
        std::conditional_t<two, Tile<TileType::Vec, typename T::DType, rows, cols>, Consumed> there;
        there.assign(pipe.fifo.fifoBase + pipe.prod.slot() * there.GetSizeInBytes() +
                     static_cast<int64_t>(pipe.prod.entryOffset));
        TMOV<decltype(there), T, mode>(there, tile, at);
    } else {
        // no offset of a part here: the lane says where
        Consumed there;
        there.assign(pipe.fifo.fifoBase + pipe.prod.slot() * Consumed::GetSizeInBytes());
        const auto lane = static_cast<int>(two ? get_subblockid(at) : 0);
        call(insight_trace::Op::TINSERT, at, there, tile,
             static_cast<uint16_t>(rows_differ ? lane * (Consumed::Rows / 2) : 0),
             static_cast<uint16_t>(cols_differ ? lane * T::Cols : 0));
    }
}

} // namespace bundled

template <class T, class Pipe,
          std::enable_if_t<is_tile<T>::value && bundled::is_tile_pipe<Pipe>::value, int> = 0>
inline RecordEvent TPUSH(T &tile, Pipe &pipe, INSIGHT_TRACE_AT) {
    static_assert(std::is_same_v<T, typename Pipe::Produced>, "TPUSH takes the tile that its TMPipe names");
    if (pipe.prod.isAllocate) pipe.prod.allocate(at);
    if constexpr (Pipe::on_chip) {
        bundled::push_tile_on_chip(pipe, tile, at);
    } else if constexpr (Pipe::is_c2v) {
        auto slot = bundled::rows_in_gm<T::Rows, T::Cols>(
            pipe.template in_gm<typename T::DType>(pipe.prod, bundled::Sides<Pipe>::elements));
        bundled::store_into_slot<Pipe>(slot, tile, at);
    } else {
        bundled::for_each_part(pipe, tile, [at](auto &part, auto &slot) { TSTORE(slot, part, at); });
    }
    // the library counts on a2a3 alone; kernels name the tile before each call
    if constexpr (!bundled::kOnA5) ++pipe.prod.tile_id;
    if (pipe.prod.isRecord) pipe.prod.record(at);
    return {at};
}

template <class T, class Pipe,
          std::enable_if_t<is_tile<T>::value && bundled::is_tile_pipe<Pipe>::value, int> = 0>
inline RecordEvent TPOP(T &tile, Pipe &pipe, INSIGHT_TRACE_AT) {
    static_assert(std::is_same_v<T, typename Pipe::Consumed>, "TPOP takes the tile that its TMPipe names");
    if (pipe.cons.isWait) pipe.cons.wait(at);
    // on chip the kernel has placed its tiles in the slots itself, and says with TFREE when it has read them
    if constexpr (!Pipe::on_chip) {
        if constexpr (Pipe::DataFiFo::useLocalFiFo)
            tile.assign(pipe.fifo.localFiFoBase +
                        pipe.cons.tile_id % Pipe::DataFiFo::localFiFoDepth * T::GetSizeInBytes());
        if constexpr (Pipe::is_c2v) {
            bundled::for_each_part(pipe, tile, [at](auto &part, auto &slot) { TLOAD(part, slot, at); });
        } else {
            auto slot = bundled::rows_in_gm<T::Rows, T::Cols>(
                pipe.template in_gm<typename T::DType>(pipe.cons, bundled::Sides<Pipe>::elements));
            TLOAD(tile, slot, at);
        }
        if constexpr (!bundled::kOnA5) ++pipe.cons.tile_id;
        if (pipe.cons.isFree) pipe.cons.free(at);
    }
    return {at};
}

template <class Pipe, std::enable_if_t<bundled::is_tile_pipe<Pipe>::value, int> = 0>
inline RecordEvent TFREE(Pipe &pipe, INSIGHT_TRACE_AT) {
    if constexpr (bundled::kOnA5) {
        if (pipe.cons.isFree) pipe.cons.free(at);
    }
    return {at};
}

} // namespace pto
