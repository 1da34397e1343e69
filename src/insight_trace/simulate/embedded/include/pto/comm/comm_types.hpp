// Names of the communication API.
#pragma once

#include "pto/common/call_forms.hpp"

namespace pto::comm {

enum class NotifyOp : uint8_t { AtomicAdd = 0, Set = 1 };
enum class WaitCmp : uint8_t { EQ = 0, NE = 1, GT = 2, GE = 3, LT = 4, LE = 5 };
enum class ReduceOp : uint8_t { Sum = 0, Max = 1, Min = 2 };
enum class DmaEngine : uint8_t { SDMA = 0, URMA = 1, RDMA = 2 };
enum class CollEngine : uint8_t { AIV = 0, CCU = 1 };

// The same tensor as seen on each rank.
template <class G> struct ParallelGroup {
    using value_type = G;
    G *tensors = nullptr;
    int nranks = 0;
    int rootIdx = -1;

    constexpr ParallelGroup() = default;
    constexpr ParallelGroup(G *list, int size, int root) : tensors(list), nranks(size), rootIdx(root) {}
    static constexpr ParallelGroup Create(G *list, int size, int root) { return {list, size, root}; }
    constexpr int GetRootIdx() const { return rootIdx; }
    constexpr int GetSize() const { return nranks; }
    constexpr bool empty() const { return nranks == 0; }
    constexpr G &operator[](int rank) { return tensors[rank]; }
    constexpr const G &operator[](int rank) const { return tensors[rank]; }
};

struct AsyncSession {
    DmaEngine engine = DmaEngine::SDMA;
};

struct AsyncEvent {
    uint64_t handle = 0;
    DmaEngine engine = DmaEngine::SDMA;

    constexpr AsyncEvent() = default;
    constexpr AsyncEvent(uint64_t handle_, DmaEngine engine_) : handle(handle_), engine(engine_) {}
    constexpr bool valid() const { return handle != 0; }
    bool Wait(const AsyncSession &) const { return true; }
    bool Test(const AsyncSession &) const { return true; }
};

using Signal = GlobalTensor<int32_t, Shape<1, 1, 1, 1, 1>, Stride<1, 1, 1, 1, 1>, Layout::ND>;
template <class E, class S, class T, Layout L = Layout::ND> using GlobalSignal = GlobalTensor<E, S, T, L>;

template <int Rows, int Cols>
struct Signal2D : GlobalTensor<int32_t, Shape<1, 1, 1, Rows, Cols>, Stride<1, 1, 1, DYNAMIC, 1>, Layout::ND> {
    using Base = GlobalTensor<int32_t, Shape<1, 1, 1, Rows, Cols>, Stride<1, 1, 1, DYNAMIC, 1>, Layout::ND>;
    Signal2D(int32_t *data, int step = Cols)
        : Base(data, typename Base::Shape{}, typename Base::Stride{step}) {}
};

namespace sdma {
constexpr uint32_t UB_ALIGN_SIZE = 256;
struct SdmaBaseConfig {};
} // namespace sdma

} // namespace pto::comm
