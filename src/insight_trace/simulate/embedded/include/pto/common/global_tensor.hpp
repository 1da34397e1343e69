// Shape, Stride and GlobalTensor: a five-dimensional view of global memory.
#pragma once

#include <type_traits>

#include "pto/common/constants.hpp"

namespace pto {

namespace bundled {

// Five extents, each fixed by the type or given at run time. Short constructors name the run-time ones in
// order.
template <int64_t... N> struct Extents {
    static constexpr int64_t fixed[5] = {N...};
    static constexpr int dynamic_count = ((N == DYNAMIC) + ...);
    union { // the same numbers: kernels name those of a Shape and of a Stride
        int64_t value[5];
        int64_t shape[5];
        int64_t stride[5];
    };

    // no extent, the run-time ones, or all five
    template <int count>
    using Fits = std::enable_if_t<count == 0 || count == 5 || count == dynamic_count, int>;
    template <class... Ints, Fits<sizeof...(Ints)> = 0>
    constexpr Extents(Ints... given) : value{(N == DYNAMIC ? 1 : N)...} {
        constexpr int count = sizeof...(Ints);
        if constexpr (count > 0) {
            const int64_t list[] = {static_cast<int64_t>(given)...};
            int next = 0;
            for (int i = 0; i < 5; ++i) {
                if constexpr (count == 5 && dynamic_count != 5) {
                    if (fixed[i] == DYNAMIC) value[i] = list[i];
                } else {
                    if (fixed[i] == DYNAMIC) value[i] = list[next++];
                }
            }
        }
    }
};

} // namespace bundled

template <int64_t N1 = DYNAMIC, int64_t N2 = DYNAMIC, int64_t N3 = DYNAMIC, int64_t N4 = DYNAMIC,
          int64_t N5 = DYNAMIC>
struct Shape : bundled::Extents<N1, N2, N3, N4, N5> {
    static constexpr int64_t staticShape[5] = {N1, N2, N3, N4, N5};
    using bundled::Extents<N1, N2, N3, N4, N5>::Extents;
    constexpr Shape() : bundled::Extents<N1, N2, N3, N4, N5>() {}
};

template <int64_t N1 = DYNAMIC, int64_t N2 = DYNAMIC, int64_t N3 = DYNAMIC, int64_t N4 = DYNAMIC,
          int64_t N5 = DYNAMIC>
struct Stride : bundled::Extents<N1, N2, N3, N4, N5> {
    static constexpr int64_t staticStride[5] = {N1, N2, N3, N4, N5};
    using bundled::Extents<N1, N2, N3, N4, N5>::Extents;
    constexpr Stride() : bundled::Extents<N1, N2, N3, N4, N5>() {}
};

// Five extents without a type: all are given at run time.
template <class A, class B, class C, class D, class E> Shape(A, B, C, D, E) -> Shape<>;
template <class A, class B, class C, class D, class E> Stride(A, B, C, D, E) -> Stride<>;

template <class Element, class Shape_, class Stride_, Layout Layout_ = Layout::ND> struct GlobalTensor {
    using Shape = Shape_;
    using Stride = Stride_;
    using RawDType = std::remove_cv_t<Element>;
    using DType = RawDType;
    static constexpr Layout layout = Layout_;
    static constexpr const int64_t (&staticShape)[5] = Shape::staticShape;
    static constexpr const int64_t (&staticStride)[5] = Stride::staticStride;

    GlobalTensor() = default;
    GlobalTensor(const Element *data, const Shape &shape = Shape(), const Stride &stride = Stride())
        : data_(const_cast<DType *>(data)), shape_(shape), stride_(stride) {}

    DType *data() const { return data_; }
    void SetAddr(DType *address) { data_ = address; }
    int64_t GetShape(int dim) const { return shape_.value[dim]; }
    int64_t GetStride(int dim) const { return stride_.value[dim]; }
    template <int dim> static constexpr int64_t GetShape() { return Shape::staticShape[dim]; }
    template <int dim> static constexpr int64_t GetStride() { return Stride::staticStride[dim]; }
    template <int... dims, class... Ints> void SetShape(Ints... extents) {
        (void(shape_.value[dims] = extents), ...);
    }
    template <int... dims, class... Ints> void SetStride(Ints... steps) {
        (void(stride_.value[dims] = steps), ...);
    }

    insight_trace::GlobalRef ref(insight_trace::Type type) const {
        insight_trace::GlobalRef r{};
        r.address = reinterpret_cast<uint64_t>(data_);
        for (int i = 0; i < 5; ++i) {
            r.shape[i] = shape_.value[i];
            r.stride[i] = stride_.value[i];
        }
        r.type = type;
        r.layout = static_cast<uint8_t>(layout);
        return r;
    }

  private:
    DType *data_ = nullptr;
    Shape shape_;
    Stride stride_;
};

template <class T> struct is_global : std::false_type {};
template <class E, class S, class T, Layout L> struct is_global<GlobalTensor<E, S, T, L>> : std::true_type {};

// A row-by-column shape of a global tensor and the matching packed stride.
template <class T, int64_t Rows = DYNAMIC, int64_t Cols = DYNAMIC, Layout L = Layout::ND>
struct TileShape2D : Shape<1, 1, 1, Rows, Cols> {
    using Parent = Shape<1, 1, 1, Rows, Cols>;
    using Parent::Parent;
    TileShape2D() : Parent() {}
    TileShape2D(int64_t rows, int64_t cols) : Parent(1, 1, 1, rows, cols) {}
};
template <class T, int64_t Rows, int64_t Cols>
struct TileShape2D<T, Rows, Cols, Layout::NZ>
    : Shape<1, Cols == DYNAMIC ? DYNAMIC : Cols / (32 / int64_t(sizeof(T))),
            Rows == DYNAMIC ? DYNAMIC : Rows / 16, 16, 32 / int64_t(sizeof(T))> {
    static constexpr int64_t c0 = 32 / int64_t(sizeof(T));
    using Parent =
        Shape<1, Cols == DYNAMIC ? DYNAMIC : Cols / c0, Rows == DYNAMIC ? DYNAMIC : Rows / 16, 16, c0>;
    using Parent::Parent;
    TileShape2D() : Parent() {}
    TileShape2D(int64_t rows, int64_t cols) : Parent(1, cols / c0, rows / 16, 16, c0) {}
};

template <class T, int64_t Rows = DYNAMIC, int64_t Cols = DYNAMIC, Layout L = Layout::ND>
struct BaseShape2D : Stride<Rows == DYNAMIC || Cols == DYNAMIC ? DYNAMIC : Rows * Cols,
                            Rows == DYNAMIC || Cols == DYNAMIC ? DYNAMIC : Rows * Cols,
                            Rows == DYNAMIC || Cols == DYNAMIC ? DYNAMIC : Rows * Cols, Cols, 1> {
    static constexpr int64_t whole = Rows == DYNAMIC || Cols == DYNAMIC ? DYNAMIC : Rows * Cols;
    using Parent = Stride<whole, whole, whole, Cols, 1>;
    using Parent::Parent;
    BaseShape2D() : Parent() {}
    template <class R, class C>
    BaseShape2D(R rows, C cols)
        : Parent(int64_t(rows) * cols, int64_t(rows) * cols, int64_t(rows) * cols, cols, 1) {}
};
template <class T, int64_t Rows, int64_t Cols>
struct BaseShape2D<T, Rows, Cols, Layout::DN>
    : Stride<Rows == DYNAMIC || Cols == DYNAMIC ? DYNAMIC : Rows * Cols,
             Rows == DYNAMIC || Cols == DYNAMIC ? DYNAMIC : Rows * Cols,
             Rows == DYNAMIC || Cols == DYNAMIC ? DYNAMIC : Rows * Cols, 1, Rows> {
    static constexpr int64_t whole = Rows == DYNAMIC || Cols == DYNAMIC ? DYNAMIC : Rows * Cols;
    using Parent = Stride<whole, whole, whole, 1, Rows>;
    using Parent::Parent;
    BaseShape2D() : Parent() {}
    template <class R, class C>
    BaseShape2D(R rows, C cols)
        : Parent(int64_t(rows) * cols, int64_t(rows) * cols, int64_t(rows) * cols, 1, rows) {}
};
template <class T, int64_t Rows, int64_t Cols>
struct BaseShape2D<T, Rows, Cols, Layout::NZ>
    : Stride<Rows == DYNAMIC || Cols == DYNAMIC ? DYNAMIC : Rows * Cols,
             Rows == DYNAMIC ? DYNAMIC : Rows * 32 / int64_t(sizeof(T)), 16 * (32 / int64_t(sizeof(T))),
             32 / int64_t(sizeof(T)), 1> {
    static constexpr int64_t c0 = 32 / int64_t(sizeof(T));
    using Parent = Stride<Rows == DYNAMIC || Cols == DYNAMIC ? DYNAMIC : Rows * Cols,
                          Rows == DYNAMIC ? DYNAMIC : Rows * c0, 16 * c0, c0, 1>;
    using Parent::Parent;
    BaseShape2D() : Parent() {}
    template <class R, class C>
    BaseShape2D(R rows, C cols) : Parent(int64_t(rows) * cols, int64_t(rows) * c0, 16 * c0, c0, 1) {}
};

// Scales of groups that do not lie in boxes: pairs of them along k, line by line or pair by pair.
namespace bundled {
constexpr int64_t times(int64_t a, int64_t b) { return a == DYNAMIC || b == DYNAMIC ? DYNAMIC : a * b; }
constexpr int64_t pairs(int64_t a) { return a == DYNAMIC ? DYNAMIC : a / 2; }
} // namespace bundled
#define INSIGHT_TRACE_SCALES(layout, OUTER, INNER, STEP, outer, inner, step)                                 \
    template <class T, int64_t Rows, int64_t Cols>                                                           \
    struct TileShape2D<T, Rows, Cols, Layout::layout> : Shape<1, 1, OUTER, INNER, 2> {                       \
        using Parent = Shape<1, 1, OUTER, INNER, 2>;                                                         \
        using Parent::Parent;                                                                                \
        TileShape2D() : Parent() {}                                                                          \
        TileShape2D([[maybe_unused]] int64_t rows, [[maybe_unused]] int64_t cols)                            \
            : Parent(1, 1, outer, inner, 2) {}                                                               \
    };                                                                                                       \
    template <class T, int64_t Rows, int64_t Cols>                                                           \
    struct BaseShape2D<T, Rows, Cols, Layout::layout>                                                        \
        : Stride<bundled::times(Rows, Cols), bundled::times(Rows, Cols), STEP, 2, 1> {                       \
        using Parent = Stride<bundled::times(Rows, Cols), bundled::times(Rows, Cols), STEP, 2, 1>;           \
        using Parent::Parent;                                                                                \
        BaseShape2D() : Parent() {}                                                                          \
        BaseShape2D(int64_t rows, int64_t cols) : Parent(rows * cols, rows * cols, step, 2, 1) {}            \
    }
INSIGHT_TRACE_SCALES(MX_A_ND, Rows, bundled::pairs(Cols), Cols, rows, cols / 2, cols);
INSIGHT_TRACE_SCALES(MX_A_DN, bundled::pairs(Cols), Rows, bundled::times(Rows, 2), cols / 2, rows, rows * 2);
INSIGHT_TRACE_SCALES(MX_B_ND, bundled::pairs(Rows), Cols, bundled::times(Cols, 2), rows / 2, cols, cols * 2);
INSIGHT_TRACE_SCALES(MX_B_DN, Cols, bundled::pairs(Rows), Rows, cols, rows / 2, rows);
#undef INSIGHT_TRACE_SCALES

// Scales in boxes of 16 lines by a pair of groups, the groups of 16 lines side by side.
namespace bundled {
constexpr int64_t boxes(int64_t a) { return a == DYNAMIC ? DYNAMIC : a / 16; }
} // namespace bundled
#define INSIGHT_TRACE_SCALES_IN_BOXES(layout, LINES, GROUPS, lines, groups)                                  \
    template <class T, int64_t Rows, int64_t Cols>                                                           \
    struct TileShape2D<T, Rows, Cols, Layout::layout>                                                        \
        : Shape<1, bundled::boxes(LINES), bundled::pairs(GROUPS), 16, 2> {                                   \
        using Parent = Shape<1, bundled::boxes(LINES), bundled::pairs(GROUPS), 16, 2>;                       \
        using Parent::Parent;                                                                                \
        TileShape2D() : Parent() {}                                                                          \
        TileShape2D(int64_t rows, int64_t cols) : Parent(1, (lines) / 16, (groups) / 2, 16, 2) {}            \
    };                                                                                                       \
    template <class T, int64_t Rows, int64_t Cols>                                                           \
    struct BaseShape2D<T, Rows, Cols, Layout::layout>                                                        \
        : Stride<bundled::times(Rows, Cols), bundled::times(GROUPS, 16), 32, 2, 1> {                         \
        using Parent = Stride<bundled::times(Rows, Cols), bundled::times(GROUPS, 16), 32, 2, 1>;             \
        using Parent::Parent;                                                                                \
        BaseShape2D() : Parent() {}                                                                          \
        BaseShape2D(int64_t rows, int64_t cols) : Parent(rows * cols, (groups) * 16, 32, 2, 1) {}            \
    }
INSIGHT_TRACE_SCALES_IN_BOXES(MX_A_ZZ, Rows, Cols, rows, cols);
INSIGHT_TRACE_SCALES_IN_BOXES(MX_B_NN, Cols, Rows, cols, rows);
#undef INSIGHT_TRACE_SCALES_IN_BOXES

} // namespace pto
