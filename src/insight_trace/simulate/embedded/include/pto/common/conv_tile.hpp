// ConvTile: a feature map or a filter in one of a core's memories, with up to six extents and no padding.
#pragma once

#include "pto/common/pto_tile.hpp"

namespace pto {

template <int64_t... N> struct ConvTileShape {
    static constexpr int totalDimCount = sizeof...(N);
    static constexpr int dynamicDimCount = ((N == DYNAMIC ? 1 : 0) + ... + 0);
    static constexpr int64_t given[sizeof...(N)] = {N...};
    static constexpr int64_t extent(int dim) { return dim < totalDimCount ? given[dim] : 1; }
    static constexpr int64_t staticShape[6] = {extent(0), extent(1), extent(2),
                                               extent(3), extent(4), extent(5)};
    int64_t shape[6] = {extent(0), extent(1), extent(2), extent(3), extent(4), extent(5)};

    ConvTileShape() = default;
    template <class... Ints> ConvTileShape(Ints... run_time) {
        static_assert(sizeof...(Ints) == dynamicDimCount, "give the run-time extents");
        const int64_t list[] = {static_cast<int64_t>(run_time)...};
        int next = 0;
        for (int64_t &value : shape)
            if (value == DYNAMIC) value = list[next++];
    }
};

template <TileType Loc_, class Element, int BufferSize, Layout Layout_, class Shape_> struct ConvTile {
    using DType = Element;
    using TileDType = Element *;
    using ShapeType = Shape_;
    static constexpr TileType Loc = Loc_;
    static constexpr int bufferSize = BufferSize;
    static constexpr Layout layout = Layout_;
    static constexpr int totalDimCount = ShapeType::totalDimCount;
    static constexpr int dynamicDimCount = ShapeType::dynamicDimCount;
    static constexpr const int64_t (&staticShape)[6] = ShapeType::staticShape;
    int64_t shape[6] = {staticShape[0], staticShape[1], staticShape[2],
                        staticShape[3], staticShape[4], staticShape[5]};

    ConvTile() = default;
    template <class... Ints> explicit ConvTile(Ints... run_time) { SetDynamicShape(run_time...); }
    template <class... Ints> void SetDynamicShape(Ints... run_time) {
        static_assert(sizeof...(Ints) == dynamicDimCount, "give the run-time extents");
        const int64_t list[] = {static_cast<int64_t>(run_time)..., 0};
        int next = 0;
        for (int i = 0; i < 6; ++i)
            if (staticShape[i] == DYNAMIC) shape[i] = list[next++];
    }
    constexpr int64_t GetShape(int dim) const { return dim < 0 || dim >= totalDimCount ? -1 : shape[dim]; }

    TileDType data(INSIGHT_TRACE_AT) const {
        return static_cast<TileDType>(
            insight_trace_local(static_cast<insight_trace::Space>(Loc), address_, 1, at));
    }
    uint64_t address() const { return address_; }
    void assign(uint64_t address) { address_ = address; }
    // The same bytes as plain rows.
    insight_trace::TileRef ref(int64_t rows, int64_t cols) const {
        insight_trace::TileRef r{};
        r.address = static_cast<uint32_t>(address_);
        r.rows = r.valid_rows = static_cast<int32_t>(rows);
        r.cols = r.valid_cols = static_cast<int32_t>(cols);
        r.space = static_cast<insight_trace::Space>(Loc);
        r.type = bundled::type_of<Element>();
        r.row_major = 1;
        r.fractal = TileConfig::fractalABSize;
        return r;
    }
    int64_t elements() const {
        int64_t product = 1;
        for (int i = 0; i < totalDimCount; ++i) product *= shape[i];
        return product;
    }

#define PTO_CONV_FIELD(type, name, start)                                                                    \
    type Get##name() const { return name##_; }                                                               \
    void Set##name(type value) { name##_ = value; }                                                          \
    type name##_ = start;
    PTO_CONV_FIELD(uint16_t, FmapH, 0)
    PTO_CONV_FIELD(uint16_t, FmapW, 0)
    PTO_CONV_FIELD(uint16_t, FilterH, 1)
    PTO_CONV_FIELD(uint16_t, FilterW, 1)
    PTO_CONV_FIELD(uint8_t, DilationH, 1)
    PTO_CONV_FIELD(uint8_t, DilationW, 1)
    PTO_CONV_FIELD(uint8_t, StrideH, 1)
    PTO_CONV_FIELD(uint8_t, StrideW, 1)
    PTO_CONV_FIELD(Element, PadValue, Element{})
    PTO_CONV_FIELD(uint16_t, ChannelSize, 0)
    PTO_CONV_FIELD(uint16_t, RepeatStride, 0)
    PTO_CONV_FIELD(uint8_t, RepeatTime, 1)
    PTO_CONV_FIELD(uint8_t, RepeatMode, 0)
    PTO_CONV_FIELD(uint16_t, DstStride, 0)
    PTO_CONV_FIELD(uint16_t, DstMposition, 0)
    PTO_CONV_FIELD(bool, Transpose, false)
#undef PTO_CONV_FIELD
    // Left, right, top, bottom.
    uint8_t GetPadList(uint8_t index) const { return pads_[index]; }
    void SetPadList(uint8_t index, uint8_t value) { pads_[index] = value; }
    const uint8_t *GetPadListArray() const { return pads_; }
    void SetPadListArray(const uint8_t values[4]) {
        for (int i = 0; i < 4; ++i) pads_[i] = values[i];
    }

  private:
    uint64_t address_ = 0;
    uint8_t pads_[4] = {};
};

template <class T> struct is_conv_tile : std::false_type {};
template <TileType L, class E, int B, Layout Y, class S>
struct is_conv_tile<ConvTile<L, E, B, Y, S>> : std::true_type {};
template <class T> inline constexpr bool is_conv_tile_v = is_conv_tile<std::remove_cv_t<T>>::value;
template <class T> inline constexpr bool is_tile_data_v = is_tile<std::remove_cv_t<T>>::value;
template <class T> inline constexpr bool is_global_data_v = is_global<std::remove_cv_t<T>>::value;

// A tile's layout in one word.
enum class TileLayoutCustom : uint8_t { ND, DN, NZ, ZN, ZZ, NN, NONE };
template <class T> constexpr TileLayoutCustom GetTileLayoutCustom() {
    if constexpr (T::SFractal == SLayout::NoneBox)
        return T::isRowMajor ? TileLayoutCustom::ND : TileLayoutCustom::DN;
    else if constexpr (T::SFractal == SLayout::RowMajor)
        return T::isRowMajor ? TileLayoutCustom::ZZ : TileLayoutCustom::NZ;
    else
        return T::isRowMajor ? TileLayoutCustom::ZN : TileLayoutCustom::NN;
}

} // namespace pto
