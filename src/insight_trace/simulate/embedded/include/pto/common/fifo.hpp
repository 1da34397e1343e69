// Tiles in order between the cube core and the vector cores of a cluster: TPipe, TPUSH, TPOP, TFREE.
// TMPipe, whose slots are of one tile each, is in tile_fifo.hpp.
//
// A ring has SlotNum slots of SlotSize bytes: in global memory on a2a3 and for the _GM directions of a5, in
// the consumer's own memory otherwise. Flag FlagID says "a tile is there", FlagID + 1 "half of the ring is
// free again"; a pipe for both directions uses two flags more for vector to cube.
#pragma once

#include "pto/common/call_forms.hpp"
#include "pto/common/fixpipe.hpp"

namespace pto {

enum TileSplitAxis : uint8_t {
    TILE_NO_SPLIT = 0, // one vector core takes it all
    TILE_UP_DOWN = 1,  // upper rows to lane 0, lower rows to lane 1
    TILE_LEFT_RIGHT = 2,
    TILE_UP_DOWN_ODD = 3, // lane 0 has one row more
    TILE_LEFT_RIGHT_ODD = 4,
};

enum Direction : uint8_t {
    UNDEFINED = 0,
    DIR_C2V = 1,
    DIR_V2C = 2,
    DIR_BOTH = DIR_C2V | DIR_V2C,
    DIR_V2C_CTRL = 4,
    DIR_C2V_GM = 5,
    DIR_V2C_GM = 6,
    DIR_BOTH_GM = DIR_C2V_GM | DIR_V2C_GM,
};

enum TSyncCVMode : uint8_t {
    CUBE_ALL_CORE_SYNC = 0,
    VEC_ALL_CORE_SYNC = 0,
    VEC_SUBCORES_SYNC = 1,
    CV_CORES_SYNC = 2,
};

enum class FIFOType : uint8_t { GM_FIFO = 0, VEC_FIFO = 1, MAT_FIFO = 2, CTRL_FIFO = 3 };
enum class VecCubeRatio : uint8_t { V1C1_VEC0 = 0, V1C1_VEC1 = 1, V2C1_VECS = 2 };

namespace bundled {

#if defined(__DAV_CUBE__)
constexpr bool kOnCube = true;
#else
constexpr bool kOnCube = false;
#endif
#if defined(PTO_NPU_ARCH_A5)
constexpr bool kOnA5 = true;
#else
constexpr bool kOnA5 = false;
#endif

using RowsOfGlobal = Shape<1, 1, 1, DYNAMIC, DYNAMIC>;
using StepsOfGlobal = Stride<1, 1, 1, DYNAMIC, 1>;

constexpr uint64_t cross_core_message(TSyncCVMode mode, unsigned flag) {
    return 1u | (mode & 3u) << 4 | (flag & 15u) << 8;
}

// Where a lane's part of a slot begins, in elements, and how far its rows are apart.
struct LanePart {
    int64_t offset, step;
    static LanePart of(TileSplitAxis split, int64_t lane, int64_t rows, int64_t cols) {
        switch (split) {
        case TILE_UP_DOWN:
            return {lane * rows * cols, cols};
        case TILE_LEFT_RIGHT:
            return {lane * cols, 2 * cols};
        case TILE_UP_DOWN_ODD:
            return {lane * (rows + lane) * cols, cols};
        case TILE_LEFT_RIGHT_ODD:
            return {lane * (cols + lane), 2 * cols + 2 * lane - 1};
        default:
            return {0, cols};
        }
    }
};

// A flag to the other kind of core. On a2a3 it goes to every one of them; on a5 each pair of cores has its
// own, and the cube core knows that of the second vector core by a number 16 higher.
inline void raise_flag(unsigned flag, pipe_t pipe, bool on_both_lanes, insight_trace::Site at) {
    if constexpr (!kOnA5) {
        ffts_cross_core_sync(pipe, cross_core_message(CV_CORES_SYNC, flag), at);
    } else {
        set_intra_block(pipe, flag, at);
        if (on_both_lanes) set_intra_block(pipe, flag + 16, at);
    }
}
inline void await_flag(unsigned flag, pipe_t pipe, bool of_both_lanes, insight_trace::Site at) {
    if constexpr (!kOnA5) {
        wait_flag_dev(PIPE_S, flag, at);
    } else {
        wait_intra_block(pipe, flag, at);
        if (of_both_lanes) wait_intra_block(pipe, flag + 16, at);
    }
}

// Kernels name a place by its offset in the core's memory, or by the lower half of a tile's data().
template <TileType in> uint32_t place_on_chip(uint32_t place, insight_trace::Site at) {
    const auto base = static_cast<uint32_t>(
        reinterpret_cast<uint64_t>(insight_trace_local(static_cast<insight_trace::Space>(in), 0, 1, at)));
    return place - base < (1u << 20) ? place - base : place;
}

// Which flags the next push and the next pop use; kernels switch them off for the parts of a tile.
struct ProducerStatus {
    bool isAllocate = true, isRecord = true;
    void setAllocateStatus(bool on) { isAllocate = on; }
    void setRecordStatus(bool on) { isRecord = on; }
    bool getAllocateStatus() const { return isAllocate; }
    bool getRecordStatus() const { return isRecord; }
};
struct ConsumerStatus {
    bool isWait = true, isFree = true;
    void setWaitStatus(bool on) { isWait = on; }
    void setFreeStatus(bool on) { isFree = on; }
    bool getWaitStatus() const { return isWait; }
    bool getFreeStatus() const { return isFree; }
};

} // namespace bundled

template <int SlotSize, int SlotNum, int LocalSlotNum> struct RingFIFO {
    void *GM_SLOT_BUFFER = nullptr;
    uint32_t C2V_CONSUMER_BUF = 0; // in UB
    uint32_t V2C_CONSUMER_BUF = 0; // in L1
    static constexpr uint32_t SLOT_SIZE = SlotSize;
    static constexpr uint32_t SLOT_NUM = SlotNum;
    static constexpr uint32_t SLOT_SYNCT = SlotNum;
    static constexpr uint32_t LOCAL_SLOT_NUM = LocalSlotNum;
};

template <uint8_t FlagID, uint8_t DirType, uint32_t SlotSize, uint32_t SlotNum, uint32_t LocalSlotNum = 2,
          bool IsNoSplit = false, bool UnitFlag = false>
struct TPipe {
    static_assert(SlotNum >= 1 && FlagID + 1 < 16, "a pipe needs a slot and two of the 16 flags");
    static constexpr uint8_t direction = DirType & 7;
    static constexpr bool is_both = direction == DIR_BOTH || direction == DIR_BOTH_GM;
    static constexpr bool is_v2c_ctrl = direction == DIR_V2C_CTRL;
    static constexpr bool is_c2v = direction == DIR_C2V || direction == DIR_C2V_GM;
    static constexpr bool is_v2c = direction == DIR_V2C || direction == DIR_V2C_GM || is_v2c_ctrl;
    static constexpr bool on_chip = bundled::kOnA5 && direction <= DIR_BOTH;
    static constexpr bool unit_flag = UnitFlag;
    static constexpr uint32_t SyncPeriod = SlotNum <= 2 ? SlotNum : SlotNum / 2;
    static_assert(!is_both || FlagID + 3 < 16, "a pipe for both directions needs four of the 16 flags");
    static_assert(!is_v2c_ctrl, "control pipes (DIR_V2C_CTRL) are not supported");
    using RingFiFo = RingFIFO<SlotSize, SlotNum, LocalSlotNum>;

    // What this core does at its end of the pipe.
    static constexpr bool produces = is_both || is_c2v == bundled::kOnCube;
    static constexpr bool consumes = is_both || is_c2v != bundled::kOnCube;
    static constexpr unsigned kFlagToVector = FlagID, kFreeToCube = FlagID + 1;
    static constexpr unsigned kFlagToCube = is_both ? FlagID + 2 : FlagID;
    static constexpr unsigned kFreeToVector = is_both ? FlagID + 3 : FlagID + 1;

    static constexpr bool shouldWaitFree(uint32_t index) {
        return index >= SlotNum && index % SyncPeriod == 0;
    }
    // Slots that were freed and that no push has waited for, after so many tiles.
    static constexpr uint32_t countPendingFreeCredits(uint32_t tiles) {
        uint32_t waited = 0;
        for (uint32_t index = 0; index < tiles; ++index) waited += shouldWaitFree(index);
        return tiles / SyncPeriod - waited;
    }
    static bool shouldNotifyFree(uint32_t index) { return (index + 1) % SyncPeriod == 0; }

    // Both ends keep their own count.
    struct End {
        uint32_t tileIndex = 0, subTileIndex = 0;
        int entryOffset = 0;
        void setTileId(int index, int sub) {
            tileIndex = static_cast<uint32_t>(index);
            subTileIndex = static_cast<uint32_t>(sub);
        }
        void setEntryOffset(int offset) {
            entryOffset = offset;
            offset_given = true;
        }
        // The lane whose part is meant. On a2a3 the register for it reads 0 on both lanes: kernels either
        // name the run-time's number in its place, or give the offset of their lane themselves.
        int64_t lane(insight_trace::Site at) const {
            return offset_given && !bundled::kOnA5 ? 0 : get_subblockid(at);
        }
        bool offset_given = false;
        int getTileId() const { return static_cast<int>(tileIndex); }
        int getSubTileId() const { return static_cast<int>(subTileIndex); }
    };
    struct Producer : End, bundled::ProducerStatus {
        template <TileSplitAxis split = TILE_UP_DOWN> void allocate(INSIGHT_TRACE_AT) const {
            wait_at<split>(bundled::kOnCube ? kFreeToCube : kFreeToVector, PIPE_S, at);
        }
        template <TileSplitAxis split = TILE_UP_DOWN> void record(INSIGHT_TRACE_AT) const {
            raise<split>(bundled::kOnCube ? kFlagToVector : kFlagToCube,
                         bundled::kOnCube ? PIPE_FIX : PIPE_MTE3, at);
        }
    };
    struct Consumer : End, bundled::ConsumerStatus {
        template <TileSplitAxis split = TILE_UP_DOWN> void wait(INSIGHT_TRACE_AT) const {
            wait_at<split>(bundled::kOnCube ? kFlagToCube : kFlagToVector, PIPE_S, at);
        }
        template <TileSplitAxis split = TILE_UP_DOWN> void free(INSIGHT_TRACE_AT) const {
            constexpr pipe_t reader = !on_chip ? PIPE_MTE2 : bundled::kOnCube ? PIPE_MTE1 : PIPE_V;
            raise<split>(bundled::kOnCube ? kFreeToVector : kFreeToCube, reader, at);
        }
    };

    RingFiFo fifo;
    Producer prod;
    Consumer cons;

    TPipe(void *ring, uint32_t in_ub, uint32_t in_l1, INSIGHT_TRACE_AT)
        : fifo{ring, bundled::place_on_chip<TileType::Vec>(in_ub, at),
               bundled::place_on_chip<TileType::Mat>(in_l1, at)},
          made_at_(at) {
        // the ring of the second direction lies behind that of the first
        if constexpr (is_both && !on_chip) {
            constexpr int behind = static_cast<int>(SlotNum) * static_cast<int>(SlotSize);
            if constexpr (bundled::kOnCube)
                cons.entryOffset = behind;
            else
                prod.entryOffset = behind;
        }
    }
    TPipe(const TPipe &) = delete;
    // Takes the "free" flags that no push waited for, so that the next pipe on these flags starts clean.
    ~TPipe() {
        const uint32_t raised = prod.tileIndex / SyncPeriod;
        uint32_t taken = 0;
        for (uint32_t index = SlotNum; index < prod.tileIndex; ++index) taken += shouldWaitFree(index);
        for (; taken < raised; ++taken) prod.allocate(made_at_);
    }

    uint64_t slot(uint32_t index) const { return uint64_t(index % SlotNum) * SlotSize; }
    uint64_t slot_in_gm(const End &end) const {
        return reinterpret_cast<uint64_t>(fifo.GM_SLOT_BUFFER) + slot(end.tileIndex) + end.entryOffset;
    }

  private:
    template <TileSplitAxis split> static int lanes(insight_trace::Site at) {
        return IsNoSplit || split == TILE_NO_SPLIT || get_subblockdim(at) < 2 ? 1 : 2;
    }
    template <TileSplitAxis split> static void raise(unsigned flag, pipe_t pipe, insight_trace::Site at) {
        bundled::raise_flag(flag, pipe, bundled::kOnCube && lanes<split>(at) == 2, at);
    }
    template <TileSplitAxis split> static void wait_at(unsigned flag, pipe_t pipe, insight_trace::Site at) {
        bundled::await_flag(flag, pipe, bundled::kOnCube && lanes<split>(at) == 2, at);
    }
    insight_trace::Site made_at_;
};

namespace bundled {

// Of an accumulator, with the unit flag between cube unit and FIXPIPE where the pipe takes part in it.
template <class Pipe, class G, class T>
void store_into_slot(const G &slot, const T &tile, insight_trace::Site at) {
    if constexpr (T::Loc == TileType::Acc && Pipe::unit_flag)
        TSTORE<STPhase::Final>(slot, tile, at);
    else
        TSTORE(slot, tile, at);
}

// Into the ring in global memory.
template <TileSplitAxis split, class Pipe, class T>
void push_to_gm(Pipe &pipe, T &tile, int64_t lane, insight_trace::Site at) {
    using Element = typename T::DType;
    const int64_t rows = tile.GetValidRow(), cols = tile.GetValidCol();
    const LanePart part = LanePart::of(kOnCube ? TILE_NO_SPLIT : split, lane, rows, cols);
    GlobalTensor<Element, RowsOfGlobal, StepsOfGlobal> slot(
        reinterpret_cast<Element *>(pipe.slot_in_gm(pipe.prod)) + part.offset, RowsOfGlobal(rows, cols),
        StepsOfGlobal(part.step));
    store_into_slot<Pipe>(slot, tile, at);
}

// Straight into the other core's memory: operands are the place there, the tile, and which part of it.
template <TileSplitAxis split, class Pipe, class T>
void push_on_chip(Pipe &pipe, T &tile, int64_t lane, insight_trace::Site at) {
    using Element = typename T::DType;
    constexpr bool down = split == TILE_UP_DOWN, right = split == TILE_LEFT_RIGHT;
    static_assert(split <= TILE_LEFT_RIGHT, "odd splits go through global memory");
    const uint64_t offset = pipe.slot(pipe.prod.tileIndex) + pipe.prod.entryOffset;
    if constexpr (kOnCube) {
        Tile<TileType::Vec, Element, down ? T::Rows / 2 : T::Rows, right ? T::Cols / 2 : T::Cols,
             BLayout::RowMajor, DYNAMIC, DYNAMIC>
            there(tile.GetValidRow() / (down ? 2 : 1), tile.GetValidCol() / (right ? 2 : 1));
        there.assign(pipe.fifo.C2V_CONSUMER_BUF + offset);
        for (int to = 0; to < (split == TILE_NO_SPLIT ? 1 : 2); ++to)
            call(insight_trace::Op::TPUSH, at, there, tile, to, down ? to * there.GetValidRow() : 0,
                 right ? to * there.GetValidCol() : 0);
    } else {
        Tile<TileType::Mat, Element, down ? T::Rows * 2 : T::Rows, right ? T::Cols * 2 : T::Cols,
             BLayout::ColMajor, DYNAMIC, DYNAMIC, SLayout::RowMajor>
            there(tile.GetValidRow() * (down ? 2 : 1), tile.GetValidCol() * (right ? 2 : 1));
        there.assign(pipe.fifo.V2C_CONSUMER_BUF + offset);
        const int row = down ? int(lane) * tile.GetValidRow() : 0,
                  col = right ? int(lane) * tile.GetValidCol() : 0;
        call(insight_trace::Op::TPUSH, at, there, tile, int(lane), row, col);
    }
}

template <TileSplitAxis split, class Pipe, class T>
void push(Pipe &pipe, T &tile, int64_t lane, insight_trace::Site at) {
    if (pipe.prod.isAllocate && Pipe::shouldWaitFree(pipe.prod.tileIndex))
        pipe.prod.template allocate<split>(at);
    if constexpr (Pipe::produces) {
        if constexpr (Pipe::on_chip)
            push_on_chip<split>(pipe, tile, lane, at);
        else
            push_to_gm<split>(pipe, tile, lane, at);
    }
    ++pipe.prod.tileIndex;
    if (pipe.prod.isRecord) pipe.prod.template record<split>(at);
}

template <TileSplitAxis split, class Pipe, class T>
void pop(Pipe &pipe, T &tile, int64_t lane, insight_trace::Site at) {
    static_assert(T::Loc == TileType::Vec || T::Loc == TileType::Mat, "TPOP gives a Vec or Mat tile");
    using Element = typename T::DType;
    if (pipe.cons.isWait) pipe.cons.template wait<split>(at);
    const uint64_t base = T::Loc == TileType::Vec ? pipe.fifo.C2V_CONSUMER_BUF : pipe.fifo.V2C_CONSUMER_BUF;
    if constexpr (Pipe::on_chip) {
        tile.assign(base + pipe.slot(pipe.cons.tileIndex) + pipe.cons.entryOffset);
    } else {
        const int64_t rows = tile.GetValidRow(), cols = tile.GetValidCol();
        const LanePart part = LanePart::of(T::Loc == TileType::Vec ? split : TILE_NO_SPLIT, lane, rows, cols);
        GlobalTensor<Element, RowsOfGlobal, StepsOfGlobal> slot(
            reinterpret_cast<Element *>(pipe.slot_in_gm(pipe.cons)) + part.offset, RowsOfGlobal(rows, cols),
            StepsOfGlobal(part.step));
        // a5 packs its local slots by the tile's own size, a2a3 by the slot's
        constexpr uint64_t local_slot = kOnA5 ? T::GetSizeInBytes() : Pipe::RingFiFo::SLOT_SIZE;
        tile.assign(base + (pipe.cons.tileIndex % Pipe::RingFiFo::LOCAL_SLOT_NUM) * local_slot);
        TLOAD(tile, slot, at);
        // what was loaded is out of the ring; on chip the consumer says so itself, with TFREE
        if (pipe.cons.isFree && Pipe::shouldNotifyFree(pipe.cons.tileIndex))
            pipe.cons.template free<split>(at);
    }
    ++pipe.cons.tileIndex;
}

} // namespace bundled

template <class Pipe, class T, TileSplitAxis split, std::enable_if_t<is_tile<T>::value, int> = 0>
inline void TPUSH(Pipe &pipe, T &tile, INSIGHT_TRACE_AT) {
    bundled::push<split>(pipe, tile, pipe.prod.lane(at), at);
}
template <class Pipe, class T, TileSplitAxis split, std::enable_if_t<is_tile<T>::value, int> = 0>
inline void TPUSH(Pipe &pipe, T &tile, int32_t lane, INSIGHT_TRACE_AT) {
    bundled::push<split>(pipe, tile, lane, at);
}
template <class Pipe, class T, TileSplitAxis split, std::enable_if_t<is_tile<T>::value, int> = 0>
inline void TPOP(Pipe &pipe, T &tile, INSIGHT_TRACE_AT) {
    bundled::pop<split>(pipe, tile, pipe.cons.lane(at), at);
}
template <class Pipe, class T, TileSplitAxis split, std::enable_if_t<is_tile<T>::value, int> = 0>
inline void TPOP(Pipe &pipe, T &tile, int32_t lane, INSIGHT_TRACE_AT) {
    bundled::pop<split>(pipe, tile, lane, at);
}
template <class Pipe, TileSplitAxis split = TILE_UP_DOWN, class = typename Pipe::RingFiFo>
inline void TFREE(Pipe &pipe, INSIGHT_TRACE_AT) {
    if constexpr (Pipe::on_chip) {
        if (pipe.cons.isFree && Pipe::shouldNotifyFree(pipe.cons.tileIndex - 1))
            pipe.cons.template free<split>(at);
    }
}

// A slot of the ring itself, as a global tensor: reserve it, say that it is filled, take it, give it back.
template <class Pipe, class G, TileSplitAxis split, std::enable_if_t<is_global<G>::value, int> = 0>
inline void TALLOC(Pipe &pipe, G &slot, INSIGHT_TRACE_AT) {
    static_assert(!Pipe::on_chip, "a slot in global memory needs a pipe through global memory");
    if (pipe.prod.isAllocate && Pipe::shouldWaitFree(pipe.prod.tileIndex))
        pipe.prod.template allocate<split>(at);
    const int64_t rows = slot.GetShape(DIM_3), cols = slot.GetShape(DIM_4);
    const auto part =
        bundled::LanePart::of(bundled::kOnCube ? TILE_NO_SPLIT : split, pipe.prod.lane(at), rows, cols);
    slot.SetAddr(reinterpret_cast<typename G::DType *>(pipe.slot_in_gm(pipe.prod)) + part.offset);
    ++pipe.prod.tileIndex;
}
template <class Pipe, class G, TileSplitAxis split, std::enable_if_t<is_global<G>::value, int> = 0>
inline void TPUSH(Pipe &pipe, G &, INSIGHT_TRACE_AT) {
    pipe.prod.template record<split>(at);
}
template <class Pipe, class G, TileSplitAxis split, std::enable_if_t<is_global<G>::value, int> = 0>
inline void TPOP(Pipe &pipe, G &slot, INSIGHT_TRACE_AT) {
    pipe.cons.template wait<split>(at);
    const int64_t rows = slot.GetShape(DIM_3), cols = slot.GetShape(DIM_4);
    const auto part =
        bundled::LanePart::of(bundled::kOnCube ? TILE_NO_SPLIT : split, pipe.cons.lane(at), rows, cols);
    slot.SetAddr(reinterpret_cast<typename G::DType *>(pipe.slot_in_gm(pipe.cons)) + part.offset);
    ++pipe.cons.tileIndex;
}
template <class Pipe, class G, TileSplitAxis split, std::enable_if_t<is_global<G>::value, int> = 0>
inline void TFREE(Pipe &pipe, G &, INSIGHT_TRACE_AT) {
    if (pipe.cons.isFree && Pipe::shouldNotifyFree(pipe.cons.tileIndex - 1))
        pipe.cons.template free<split>(at);
}

} // namespace pto
